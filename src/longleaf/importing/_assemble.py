"""The result of every reader, trees with a linear classifier per node, and its conversion to a model."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from longleaf import _core
from longleaf._validation import ModelError
from longleaf.training.solver import LOGISTIC_LINK
from longleaf.trees.label_tree import LabelTree
from longleaf.weights.layout import CHUNK_WIDTH

Ints = npt.NDArray[np.int64]

MOST_NODES = 2**31 - 2
MOST_LABELS, MOST_LABELS_PER_LEAF = 10**7, 100
"""A larger label number means damage, rather than many labels that training never saw."""


@dataclass(frozen=True, eq=False)
class SourceTree:
    """A tree as stored in its file.

    Attributes
    ----------
    name : str
        The file, for error messages.
    parent : int64 array [nodes]
        -1 for the root, which has no classifier; -2 for nodes that are removed with all nodes below them.
    label : int64 array [nodes]
        The label of a leaf, -1 for other nodes.
    weights : csr_array [nodes, at most the features]
        Weights without that of the bias.
    bias : float array [nodes]
        The margin of each node for the empty row.
    """

    name: str
    parent: Ints
    label: Ints
    weights: sp.csr_array
    bias: npt.NDArray[Any]


@dataclass(frozen=True, eq=False)
class Source:
    """A model as stored in its folder.

    Attributes
    ----------
    kind : str
        The system that wrote it.
    trees : list of SourceTree
        Their probabilities are averaged.
    link : int
        0: margins become probabilities by the logistic function; else by ``exp(-max(0, 1 - m)**link)``.
    n_features, n_labels : int
        Minimum numbers, if the files do not contain them.
    normalize : bool
        Whether rows are scaled to unit length before they are scored.
    bias : float
        The value of the bias feature.
    facts : dict
        Other facts about the training, for the model's origin.
    """

    kind: str
    trees: list[SourceTree]
    link: int
    n_features: int
    n_labels: int
    normalize: bool
    bias: float
    facts: dict[str, Any] = field(default_factory=dict)

    @property
    def params(self) -> dict[str, Any]:
        """The corresponding parameters of `longleaf.PLT`."""
        logistic = self.link == LOGISTIC_LINK
        return {
            "n_trees": len(self.trees),
            "loss": "log" if logistic else "squared-hinge",
            "normalize": self.normalize,
            "bias": self.bias,
            "threshold": 0.0,
        } | ({} if logistic else {"hinge_power": self.link})


def no_weights(columns: int) -> sp.csr_array:
    """Return a row of zeros, for a node without weights."""
    empty = (np.zeros(0, np.float32), np.zeros(0, np.int32), np.zeros(2, np.int32))
    return sp.csr_array(empty, shape=(1, columns))


def assemble(tree: SourceTree, n_features: int, weight_bits: int) -> tuple[LabelTree, _core.WeightArrays]:
    """Convert a tree to breadth-first order and its weights to chunks of siblings."""
    order, first_child = _breadth_first(tree)
    shape = LabelTree(first_child, tree.label[order].astype(np.int32))
    weights = _check_weights(tree, n_features)[order]
    bias = np.asarray(tree.bias, np.float32)[order]
    if not np.isfinite(bias).all():
        raise ModelError(f"{tree.name} is damaged: weights must be finite numbers.")
    features, children, values = [], [], []
    for first, end in _chunks(first_child):
        inside = slice(weights.indptr[first], weights.indptr[end])
        child = np.repeat(np.arange(end - first), np.diff(weights.indptr[first : end + 1]))
        # stable, so by child within a feature
        by_feature = np.argsort(weights.indices[inside], kind="stable")
        features.append(weights.indices[inside][by_feature].astype(np.int32))
        children.append(child[by_feature].astype(np.uint8))
        values.append(weights.data[inside][by_feature].astype(np.float32))
    packed = _core.assemble_chunks(
        shape.first_child, shape.label, features, children, values, bias, n_features, weight_bits
    )
    return shape, packed


def _chunks(first_child: npt.NDArray[np.int32]) -> list[tuple[int, int]]:
    """Return the first node and the end of every chunk, a range of consecutive siblings."""
    inner = np.flatnonzero(np.diff(first_child))
    bounds = zip(first_child[inner].tolist(), first_child[inner + 1].tolist(), strict=True)
    width = CHUNK_WIDTH
    return [(first, min(first + width, end)) for begin, end in bounds for first in range(begin, end, width)]


def _breadth_first(tree: SourceTree) -> tuple[Ints, npt.NDArray[np.int32]]:
    """Return the nodes in breadth-first order and the first child of each.

    Nodes without a label below them are removed, because they have no effect. Nodes with a single child are
    kept, because their probability is a factor of every score below.
    """
    _check_shape(tree)
    kept = _with_labels(tree)
    if not kept[tree.parent == -1].any():
        raise ModelError(f"{tree.name} must have a label below its root; got none.")
    listed = np.flatnonzero(kept & (tree.parent >= 0))
    by_parent = listed[np.argsort(tree.parent[listed], kind="stable")]
    begin = np.searchsorted(tree.parent[by_parent], np.arange(len(tree.parent) + 1))
    level, order, counts = np.flatnonzero(tree.parent == -1), [], []
    while len(level):
        order.append(level)
        count = begin[level + 1] - begin[level]
        counts.append(count)
        starts = np.repeat(begin[level] - np.concatenate([[0], np.cumsum(count)[:-1]]), count)
        level = by_parent[starts + np.arange(count.sum())]
    first_child = np.concatenate([[1], 1 + np.cumsum(np.concatenate(counts))])
    return np.concatenate(order), first_child.astype(np.int32)


def _check_shape(tree: SourceTree) -> None:
    parent, label, nodes = tree.parent, tree.label, len(tree.parent)
    if nodes > MOST_NODES:
        raise ModelError(f"{tree.name} must have at most {MOST_NODES} nodes; got {nodes}.")
    if (parent == -1).sum() != 1 or parent.min() < -2 or parent.max() >= nodes:
        raise ModelError(f"{tree.name} is damaged: every node but one root must have a parent in the tree.")
    above = parent.copy()
    for _ in range(
        nodes.bit_length() + 1
    ):  # pointer doubling: afterwards every path has ended, or is a cycle
        above = np.where(above >= 0, above[above], above)
    if (above >= 0).any():
        raise ModelError(f"{tree.name} is damaged: parents must not form a cycle.")
    if (label[parent[parent >= 0]] >= 0).any():
        raise ModelError(f"{tree.name} must have its labels at leaves; a node with children has one.")
    named = label[label >= 0]
    if not len(named) or len(np.unique(named)) != len(named):
        raise ModelError(f"{tree.name} is damaged: it must have every label at one leaf.")
    most = max(MOST_LABELS, MOST_LABELS_PER_LEAF * len(named))
    if named.max() >= most:
        raise ModelError(
            f"{tree.name} is damaged: its {len(named)} labels must be below {most}; got {named.max()}."
        )


def _with_labels(tree: SourceTree) -> npt.NDArray[np.bool_]:
    """Return which nodes have a label at or below them."""
    marked = tree.label >= 0
    at = np.flatnonzero(marked)
    while len(at):
        above = tree.parent[at]
        above = np.unique(above[above >= 0])
        at = above[~marked[above]]
        marked[at] = True
    return marked


def _check_weights(tree: SourceTree, n_features: int) -> sp.csr_array:
    """Return the weights with as many columns as features, sorted, without zeros."""
    stored = tree.weights
    shape = (stored.shape[0], n_features)
    weights = sp.csr_array((stored.data, stored.indices, stored.indptr), shape=shape)
    weights.sort_indices()
    row = np.repeat(np.arange(weights.shape[0]), np.diff(weights.indptr))
    if np.any((np.diff(row) == 0) & (np.diff(weights.indices) == 0)):
        raise ModelError(f"{tree.name} is damaged: a node must name each feature once.")
    if not np.isfinite(weights.data).all():
        raise ModelError(f"{tree.name} is damaged: weights must be finite numbers.")
    weights.eliminate_zeros()
    return weights
