"""What the arrays of a tree's weights are; ``native/weights/weights.h`` has the same in C++.

A chunk has the weights of up to ``CHUNK_WIDTH`` consecutive siblings. Its features are found by two bitmaps:
one per page of ``PAGE_FEATURES`` features, and one per word of ``WORD_FEATURES`` features.

node [chunks + 1]
    Where each chunk's nodes begin, then the number of nodes.
word, byte [chunks + 1]
    Where each chunk's words and bytes begin.
weights [chunks]
    How many weights each chunk has.
page_words, page_first [chunks x pages]
    A bitmap per page, of the words that have any feature; and the first word, counted from the chunk's first.
words [words x WORD_NUMBERS]
    A bitmap per word in two halves, and where its bytes begin; plus ``DENSE_WORD`` if it has a weight for
    every child of each of its features, and so needs no child numbers.
bytes
    Which children have a weight of each feature, and the weights; ``SPARE_BYTES`` follow the last.
low, step [chunks]
    Of 8-bit weights, the smallest magnitude and the distance of two levels; empty for 32-bit weights.
bias [nodes]
    The bias of each node's classifier.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from longleaf import _core
from longleaf._validation import ModelError

CHUNK_WIDTH, PAGE_FEATURES, WORD_FEATURES = _core.CHUNK_WIDTH, _core.PAGE_FEATURES, _core.WORD_FEATURES
WORD_NUMBERS, SPARE_BYTES, DENSE_WORD = _core.WORD_NUMBERS, _core.SPARE_BYTES, _core.DENSE_WORD

COUNTED = ("word", "byte")
"""Arrays that say where each chunk's share of others begins, and last where all end."""
PER_CHUNK = ("weights", "low", "step")
PER_PAGE = ("page_words", "page_first")

ARRAYS = {
    "node": "int32",
    "word": "int64",
    "byte": "int64",
    "weights": "int64",
    "page_words": "uint64",
    "page_first": "uint32",
    "words": "uint32",
    "bytes": "uint8",
    "low": "float32",
    "step": "uint32",
    "bias": "float32",
}
"""All arrays, and their types."""


def fixed_bytes(n_chunks: int, n_features: int, weight_bits: int) -> int:
    """Return the bytes of some chunks that do not grow with their weights."""
    pages = -(-n_features // PAGE_FEATURES)
    levels = _core.LEVEL_BYTES if weight_bits == 8 else 0
    return n_chunks * (_core.PAGE_BYTES * pages + _core.CHUNK_BYTES + levels)


def chunk_features(weights: _core.WeightArrays, chunk: int) -> npt.NDArray[np.int64]:
    """Return the features that have a weight in a chunk, in order."""
    pages = len(weights["page_words"]) // len(weights["weights"])
    words = np.flatnonzero(_ones(weights["page_words"][chunk * pages : (chunk + 1) * pages]))
    records = weights["words"].reshape(-1, WORD_NUMBERS)[weights["word"][chunk] : weights["word"][chunk + 1]]
    word, bit = np.nonzero(_ones(records[:, :2]).reshape(-1, WORD_FEATURES))
    return np.asarray(words[word] * WORD_FEATURES + bit, np.int64)


def chunks_of(weights: _core.WeightArrays, nodes: npt.ArrayLike) -> npt.NDArray[np.int64]:
    """Return the chunks that have the weights of some nodes."""
    return np.asarray(np.searchsorted(weights["node"], nodes, side="right") - 1, np.int64)


def mark_dense_words(
    dense: npt.NDArray[np.uint8],
    word: npt.NDArray[np.int64],
    words: npt.NDArray[np.uint32],
    place: str,
) -> npt.NDArray[np.uint32]:
    """Mark the words of dense chunks, as format 2 does; format 1 has an array `dense` of chunks."""
    if not dense.any():
        return words
    sizes = np.diff(word)
    if len(sizes) != len(dense) or word[0] != 0 or (sizes < 0).any() or word[-1] * WORD_NUMBERS != len(words):
        raise ModelError(f"{place}word.npy must say where the words of each chunk begin.")
    marked = np.array(words).reshape(-1, WORD_NUMBERS)
    marked[np.repeat(dense != 0, sizes), 2] |= np.uint32(DENSE_WORD)
    return marked.ravel()


def _ones(bitmaps: npt.NDArray[np.unsignedinteger[Any]]) -> npt.NDArray[np.uint8]:
    little = bitmaps.astype(bitmaps.dtype.newbyteorder("<"))
    return np.unpackbits(little.view(np.uint8).ravel(), bitorder="little")
