"""Weights that follow their nodes into a changed tree, or into a part of it and back."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from longleaf import _core
from longleaf._growth.chunks import Entries, chunk_starts, pack, select_chunks, unpack, weight_bits_of
from longleaf._growth.tree_edits import EditedTree, Part, holders, part_of
from longleaf.tree import LabelTree

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float32]


def carry(
    old: LabelTree, weights: _core.WeightArrays, edited: EditedTree, bias: Floats, n_features: int
) -> _core.WeightArrays:
    """Give an edited tree the weights of the nodes that it kept.

    Families that are as they were keep their chunks, byte by byte; only the others are packed anew.

    Parameters
    ----------
    old, weights
        The tree before, and its weights.
    edited : EditedTree
    bias : float32 array [nodes of the edited tree]
        The bias of new nodes, which have no weights; what it says of old nodes is not read.
    n_features : int
    """
    tree, origin = edited.tree, edited.origin
    bias = np.where(origin >= 0, weights["bias"][np.maximum(origin, 0)], bias).astype(np.float32)
    starts = chunk_starts(tree)
    changed = _changed_families(old, edited)
    part = part_of(tree, holders(tree, np.flatnonzero(changed)))
    repacked = _repack(old, weights, edited, part, changed, bias, n_features)
    old_chunk = np.searchsorted(weights["node"], origin[starts], side="right") - 1
    part_chunk = np.searchsorted(part.nodes[chunk_starts(part.tree)], starts, side="right") - 1
    anew = changed[tree.parent[starts]]
    return select_chunks(
        [weights, repacked], anew.astype(np.int64), np.where(anew, part_chunk, old_chunk), tree, bias
    )


def _changed_families(old: LabelTree, edited: EditedTree) -> npt.NDArray[np.bool_]:
    """Mark the nodes whose children are not those of one old node, all of them and in their order."""
    tree, origin = edited.tree, edited.origin
    inner = np.flatnonzero(tree.label < 0)
    begin, end = tree.first_child[inner], tree.first_child[inner + 1]
    first = origin[begin]
    shift = origin[1:] - np.arange(1, tree.n_nodes)
    same_shift = np.minimum.reduceat(shift, begin - 1) == np.maximum.reduceat(shift, begin - 1)
    above = old.parent[np.maximum(first, 0)]
    same_begin = (first > 0) & (old.first_child[above] == first)
    same_size = np.diff(old.first_child)[above] == end - begin
    changed = np.zeros(tree.n_nodes, bool)
    changed[inner] = ~(same_shift & same_begin & same_size)
    return changed


def _repack(
    old: LabelTree,
    weights: _core.WeightArrays,
    edited: EditedTree,
    part: Part,
    changed: npt.NDArray[np.bool_],
    bias: Floats,
    n_features: int,
) -> _core.WeightArrays:
    """Pack the changed families of a part; the chunks of its other families stay empty."""
    moved = np.flatnonzero(changed[np.maximum(edited.tree.parent, 0)] & (edited.origin > 0))
    chunks = np.unique(np.searchsorted(weights["node"], edited.origin[moved], side="right") - 1)
    entries = unpack(old, weights, chunks, n_features)
    place = np.full(len(weights["bias"]), -1, np.int64)
    place[edited.origin[moved]] = np.searchsorted(part.nodes, moved)
    node = place[entries.node]
    kept = node >= 0
    entries = Entries(entries.feature[kept], node[kept], entries.value[kept])
    return pack(part.tree, entries, bias[part.nodes], n_features, weight_bits_of(weights))


def part_weights(weights: _core.WeightArrays, part: Part) -> _core.WeightArrays:
    """Give the weights of a part of a tree."""
    chunks = _part_chunks(weights, part)
    return select_chunks([weights], np.zeros_like(chunks), chunks, part.tree, weights["bias"][part.nodes])


def put_back(
    tree: LabelTree, weights: _core.WeightArrays, part: Part, trained: _core.WeightArrays
) -> _core.WeightArrays:
    """Replace the weights of a part of a tree; all other chunks stay as they are."""
    chunks = _part_chunks(weights, part)
    source, chunk = np.zeros(len(weights["dense"]), np.int64), np.arange(len(weights["dense"]))
    source[chunks], chunk[chunks] = 1, np.arange(len(chunks))
    bias = np.array(weights["bias"], np.float32)
    bias[part.nodes[1:]] = trained["bias"][1:]
    return select_chunks([weights, trained], source, chunk, tree, bias)


def _part_chunks(weights: _core.WeightArrays, part: Part) -> Ints:
    """Name the chunks of the whole tree that hold the part's nodes."""
    starts = part.nodes[chunk_starts(part.tree)]
    return np.searchsorted(weights["node"], starts, side="right") - 1
