"""Weights that follow their nodes into a changed tree, or into a subtree of it and back."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from longleaf import _core
from longleaf.learning.tree_edits import EditedTree, Subtree
from longleaf.trees.label_tree import LabelTree
from longleaf.weights.chunks import chunk_starts, forest_of, select_chunks
from longleaf.weights.layout import chunks_of

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float32]


def carry(
    old: LabelTree,
    weights: _core.WeightArrays,
    edited: EditedTree,
    bias: Floats,
    n_features: int,
    threads: int,
) -> _core.WeightArrays:
    """Return an edited tree the weights of the nodes that it kept.

    Families that are as they were keep their chunks, byte by byte; only the others are packed again.

    Parameters
    ----------
    old, weights
        The tree before, and its weights.
    edited : EditedTree
    bias : float32 array [nodes of the edited tree]
        The bias of new nodes, which have no weights; what it says of old nodes is not read.
    n_features, threads : int
    """
    tree, origin = edited.tree, edited.origin
    bias = np.where(origin >= 0, weights["bias"][np.maximum(origin, 0)], bias).astype(np.float32)
    forest = forest_of(old, weights, n_features)
    return forest.regroup_chunks(0, tree.first_child, tree.label, origin, bias, threads)


def subtree_weights(weights: _core.WeightArrays, subtree: Subtree) -> _core.WeightArrays:
    """Return the weights of a subtree."""
    chunks = _subtree_chunks(weights, subtree)
    return select_chunks(
        [weights], np.zeros_like(chunks), chunks, subtree.tree, weights["bias"][subtree.nodes]
    )


def put_back(
    tree: LabelTree, weights: _core.WeightArrays, subtree: Subtree, trained: _core.WeightArrays
) -> _core.WeightArrays:
    """Replace the weights of a subtree; all other chunks stay as they are."""
    chunks = _subtree_chunks(weights, subtree)
    n_chunks = len(weights["weights"])
    source, chunk = np.zeros(n_chunks, np.int64), np.arange(n_chunks)
    source[chunks], chunk[chunks] = 1, np.arange(len(chunks))
    bias = np.array(weights["bias"], np.float32)
    bias[subtree.nodes[1:]] = trained["bias"][1:]
    return select_chunks([weights, trained], source, chunk, tree, bias)


def _subtree_chunks(weights: _core.WeightArrays, subtree: Subtree) -> Ints:
    """Name the chunks of the whole tree that hold the subtree's nodes."""
    starts = subtree.nodes[chunk_starts(subtree.tree)]
    return chunks_of(weights, starts)
