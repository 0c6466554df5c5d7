"""Chunks of weights one by one: taken from models, read back into entries, packed again.

``ChunkView`` in ``native/core.h`` says what each array holds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from longleaf import _core
from longleaf.tree import LabelTree

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float32]

SPARE_BYTES = 8
PER_CHUNK = ("dense", "weights", "low", "step")
PER_PAGE = ("page_words", "page_first")
PER_WORD = ("bits", "first_slot", "first_byte")


@dataclass(frozen=True, eq=False)
class Entries:
    """Some nodes' weights, one entry each, in order of chunk, then feature, then node."""

    feature: Ints
    node: Ints
    value: Floats


def chunk_starts(tree: LabelTree) -> Ints:
    """Give the first node of every chunk: up to ``CHUNK_WIDTH`` consecutive siblings each."""
    begin, size = tree.first_child[:-1].astype(np.int64), np.diff(tree.first_child).astype(np.int64)
    count = -(-size // _core.CHUNK_WIDTH)
    return np.repeat(begin, count) + _core.CHUNK_WIDTH * ranges(np.zeros_like(count), count)


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
    for name in ("word", "slot", "byte"):
        sizes = np.concatenate([np.diff(arrays[name][a : b + 1]) for arrays, a, b in runs])
        result[name] = np.append(0, np.cumsum(sizes)).astype(np.int64)
    result["bytes"] = np.append(result["bytes"], np.zeros(SPARE_BYTES, np.uint8))
    result["node"] = np.append(chunk_starts(tree), tree.n_nodes).astype(np.int32)
    result["bias"] = np.ascontiguousarray(bias, np.float32)
    return result


def _slice(arrays: _core.WeightArrays, begin: int, end: int) -> _core.WeightArrays:
    """Give the arrays of consecutive chunks, without those that must be counted anew."""
    pages = len(arrays["page_words"]) // len(arrays["dense"])
    word, slot, byte = (slice(int(arrays[n][begin]), int(arrays[n][end])) for n in ("word", "slot", "byte"))
    piece = {name: arrays[name][begin:end] for name in PER_CHUNK}
    piece |= {name: arrays[name][begin * pages : end * pages] for name in PER_PAGE}
    piece |= {name: arrays[name][word] for name in PER_WORD}
    return piece | {"end": arrays["end"][slot], "bytes": arrays["bytes"][byte]}


def unpack(weights: _core.WeightArrays, chunks: Ints) -> Entries:
    """Read the weights of some chunks."""
    found = [_unpack_chunk(weights, int(chunk)) for chunk in chunks]
    if not found:
        return Entries(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.float32))
    return Entries(*(np.concatenate(parts) for parts in zip(*found, strict=True)))  # type: ignore[arg-type]


def pack(
    tree: LabelTree, entries: Entries, bias: Floats, n_features: int, weight_bits: int
) -> _core.WeightArrays:
    """Pack entries of a tree's nodes, in any order, into the arrays that a model holds."""
    starts = chunk_starts(tree)
    chunk = np.searchsorted(starts, entries.node, side="right") - 1
    order = np.lexsort((entries.node, entries.feature, chunk))
    chunk, feature, node = chunk[order], entries.feature[order], entries.node[order]
    cuts = np.searchsorted(chunk, np.arange(1, len(starts)))
    return _core.assemble_chunks(
        tree.first_child,
        tree.label,
        np.split(feature.astype(np.int32), cuts),
        np.split((node - starts[chunk]).astype(np.uint8), cuts),
        np.split(entries.value[order], cuts),
        np.ascontiguousarray(bias, np.float32),
        n_features,
        weight_bits,
    )


def weight_bits_of(weights: _core.WeightArrays) -> int:
    """Say how weights are stored: 8 bits each, or 32."""
    return 8 if len(weights["low"]) else 32


def chunk_features(weights: _core.WeightArrays, chunk: int) -> Ints:
    """List the features of a chunk by its bitmaps."""
    pages = len(weights["page_words"]) // len(weights["dense"])
    words = np.flatnonzero(_ones(weights["page_words"][chunk * pages : (chunk + 1) * pages]))
    bits = _ones(weights["bits"][weights["word"][chunk] : weights["word"][chunk + 1]])
    word, bit = np.nonzero(bits.reshape(-1, 64))
    return np.asarray(words[word] * 64 + bit, np.int64)


def _ones(bitmaps: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint8]:
    return np.unpackbits(bitmaps.astype("<u8").view(np.uint8), bitorder="little")


def _unpack_chunk(weights: _core.WeightArrays, chunk: int) -> tuple[Ints, Ints, Floats]:
    """Give features, nodes and values of one chunk."""
    first, last = int(weights["node"][chunk]), int(weights["node"][chunk + 1])
    feature = chunk_features(weights, chunk)
    data = weights["bytes"][int(weights["byte"][chunk]) : int(weights["byte"][chunk + 1])]
    if weights["dense"][chunk]:
        values = _decode(weights, chunk, data).reshape(len(feature), last - first)
        slot, child = np.nonzero(values)
        return feature[slot], first + child, values[slot, child]
    slot, child, values = _unpack_slots(weights, chunk, data, last - first)
    return feature[slot], first + child, values


def _unpack_slots(
    weights: _core.WeightArrays, chunk: int, data: npt.NDArray[np.uint8], width: int
) -> tuple[Ints, Ints, Floats]:
    """Give slot, child and value of the weights of a chunk whose slots name their children."""
    size, mask = (1 if len(weights["low"]) else 4), -(-width // 8)
    word = slice(int(weights["word"][chunk]), int(weights["word"][chunk + 1]))
    ends = weights["end"][int(weights["slot"][chunk]) : int(weights["slot"][chunk + 1])].astype(np.int64)
    slots_of_word = np.diff(np.append(weights["first_slot"][word], len(ends)).astype(np.int64))
    ends = ends + np.repeat(weights["first_byte"][word].astype(np.int64), slots_of_word)
    begins = np.append(0, ends[:-1])[: len(ends)]
    length = ends - begins
    listed = length <= mask * (size + 1)  # else a bitmap over all children is shorter
    n = np.where(listed, length // (size + 1), (length - mask) // size)
    offset = np.cumsum(n) - n
    child = np.empty(int(n.sum()), np.int64)
    child[ranges(offset[listed], n[listed])] = data[ranges(begins[listed], n[listed])]
    maps = data[ranges(begins[~listed], np.full((~listed).sum(), mask))].reshape(-1, mask)
    named = np.nonzero(np.unpackbits(maps, axis=1, bitorder="little"))[1]
    child[ranges(offset[~listed], n[~listed])] = named
    coded = data[ranges(begins + np.where(listed, n, mask), n * size)]
    return np.repeat(np.arange(len(n)), n), child, _decode(weights, chunk, coded)


def _decode(weights: _core.WeightArrays, chunk: int, stored: npt.NDArray[np.uint8]) -> Floats:
    """Turn bytes into weights: 32-bit floats, or levels with the sign in the low bit."""
    if not len(weights["low"]):
        return np.frombuffer(stored.tobytes(), np.float32)
    level = np.arange(128, dtype=np.uint32)
    low = weights["low"][chunk : chunk + 1].view(np.uint32)
    table = (low + (np.maximum(level, 1) - 1) * weights["step"][chunk]).astype(np.uint32).view(np.float32)
    table = np.where(level > 0, table, np.float32(0))
    return np.stack([table, -table], axis=1).reshape(-1)[stored]
