"""Chunks of weights one by one: taken from models, read back into entries; see `longleaf.weights.layout`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from longleaf import _core
from longleaf.trees.label_tree import LabelTree
from longleaf.weights.layout import (
    CHUNK_WIDTH,
    COUNTED,
    PER_CHUNK,
    PER_PAGE,
    SPARE_BYTES,
    WORD_NUMBERS,
)

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Entries:
    """Some nodes' weights, one entry each, in order of chunk, then feature, then node."""

    feature: Ints
    node: Ints
    value: Floats


def chunk_starts(tree: LabelTree) -> Ints:
    """Return the first node of every chunk: up to ``CHUNK_WIDTH`` consecutive siblings each."""
    begin, size = tree.first_child[:-1].astype(np.int64), np.diff(tree.first_child).astype(np.int64)
    count = -(-size // CHUNK_WIDTH)
    return np.repeat(begin, count) + CHUNK_WIDTH * ranges(np.zeros_like(count), count)


def ranges(begin: Ints, size: Ints) -> Ints:
    """Join the ranges ``begin[i] .. begin[i] + size[i] - 1``."""
    skipped = np.cumsum(size) - size
    return np.asarray(np.repeat(begin - skipped, size) + np.arange(size.sum()), np.int64)


def select_chunks(
    sources: Sequence[_core.WeightArrays],
    source: npt.ArrayLike,
    chunk: npt.ArrayLike,
    tree: LabelTree,
    bias: Floats,
) -> _core.WeightArrays:
    """Put chunks of several models together, byte by byte as they are.

    Parameters
    ----------
    sources : sequence of WeightArrays
        All of the same features and kind of weights.
    source, chunk : int arrays [chunks]
        Where each chunk comes from, in the order of the chunks of `tree`.
    tree : LabelTree
        The tree that the result is for.
    bias : float32 array [nodes]
    """
    source, chunk = np.asarray(source, np.int64), np.asarray(chunk, np.int64)
    breaks = np.flatnonzero((np.diff(source) != 0) | (np.diff(chunk) != 1)) + 1
    runs = [
        (sources[int(source[a])], int(chunk[a]), int(chunk[b - 1]) + 1)
        for a, b in zip(np.append(0, breaks), np.append(breaks, len(source)), strict=True)
        if a < b
    ]
    pieces = [_slice(*run) for run in runs]
    result = {name: np.concatenate([piece[name] for piece in pieces]) for name in pieces[0]}
    for name in COUNTED:
        sizes = np.concatenate([np.diff(arrays[name][a : b + 1]) for arrays, a, b in runs])
        result[name] = np.append(0, np.cumsum(sizes)).astype(np.int64)
    result["bytes"] = np.append(result["bytes"], np.zeros(SPARE_BYTES, np.uint8))
    result["node"] = np.append(chunk_starts(tree), tree.n_nodes).astype(np.int32)
    result["bias"] = np.ascontiguousarray(bias, np.float32)
    return result


def _slice(arrays: _core.WeightArrays, begin: int, end: int) -> _core.WeightArrays:
    """Return the arrays of consecutive chunks, without those that must be counted again."""
    pages = len(arrays["page_words"]) // len(arrays["weights"])
    words = slice(*(WORD_NUMBERS * int(arrays["word"][chunk]) for chunk in (begin, end)))
    byte = slice(*(int(arrays["byte"][chunk]) for chunk in (begin, end)))
    piece = {name: arrays[name][begin:end] for name in PER_CHUNK}
    piece |= {name: arrays[name][begin * pages : end * pages] for name in PER_PAGE}
    return piece | {"words": arrays["words"][words], "bytes": arrays["bytes"][byte]}


def forest_of(tree: LabelTree, weights: _core.WeightArrays, n_features: int, link: int = 0) -> _core.Forest:
    """Make a tree and its weights ready to be searched or read."""
    n_labels = int(tree.label.max()) + 1
    return _core.Forest([tree.first_child], [tree.label], [weights], n_features, n_labels, link)


@dataclass(frozen=True, eq=False)
class WeightedTree:
    """A tree and its weights, in one piece since they change together."""

    tree: LabelTree
    weights: _core.WeightArrays

    def forest(self, n_features: int, link: int) -> _core.Forest:
        """Make it ready to be searched."""
        return forest_of(self.tree, self.weights, n_features, link)


def unpack(tree: LabelTree, weights: _core.WeightArrays, chunks: Ints, n_features: int) -> Entries:
    """Read the weights of some chunks of a tree."""
    forest = forest_of(tree, weights, n_features)
    found = [forest.chunk_entries(0, int(chunk)) for chunk in chunks]
    first = weights["node"][chunks].astype(np.int64)
    nodes = [start + child.astype(np.int64) for start, (_, child, _) in zip(first, found, strict=True)]
    return Entries(
        np.concatenate([np.zeros(0, np.int64), *(feature for feature, _, _ in found)]),
        np.concatenate([np.zeros(0, np.int64), *nodes]),
        np.concatenate([np.zeros(0, np.float32), *(value for _, _, value in found)]),
    )


def weight_bits_of(weights: _core.WeightArrays) -> int:
    """Say how weights are stored: 8 bits each, or 32."""
    return 8 if len(weights["low"]) else 32
