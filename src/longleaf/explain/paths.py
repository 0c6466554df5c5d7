"""The weights along a label's paths, decoded for the features of one row."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from longleaf.estimator import LabelEstimator
from longleaf.trees.label_tree import LabelTree
from longleaf.weights.layout import chunk_features, chunks_of

Doubles = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class LabelPath:
    """A label's nodes in one tree, from below the root to its leaf, evaluated for one row.

    Attributes
    ----------
    bias : float64 array [nodes]
        The margin of each node's classifier for the empty row.
    products : float64 array [nodes, features of the row]
        What each feature adds to the margin: weight times value.
    """

    bias: Doubles
    products: Doubles

    @property
    def margin(self) -> Doubles:
        """The sum that all features add to the margin of each node."""
        return np.asarray(self.products.sum(axis=1), np.float64)


def label_path(model: LabelEstimator, tree: int, label: int, features: Ints, values: Doubles) -> LabelPath:
    """Decode the weights along the path to `label` and multiply them by the row.

    Parameters
    ----------
    model : PLT or BR
    tree : int
        Index of the tree.
    label : int
        The label, which must have a leaf in the tree.
    features, values : arrays [features of the row]
        The row, normalized as for scoring.
    """
    nodes = path_nodes(model.trees_[tree], label)
    products = np.array([node_weights(model, tree, node, features) * values for node in nodes])
    return LabelPath(np.asarray(model.weights_[tree]["bias"], np.float64)[nodes], products)


def path_nodes(tree: LabelTree, label: int) -> Ints:
    """Return the nodes from below the root to the leaf of `label`."""
    leaves = np.flatnonzero(tree.label == label)
    if not len(leaves):
        raise ValueError(f"label must have a leaf in every tree to be explained; got {label}.")
    node = int(leaves[0])
    nodes = []
    while node > 0:
        nodes.append(node)
        # first_child is nondecreasing, so the parent is the last node whose children start here or before
        node = int(np.searchsorted(tree.first_child, node, side="right")) - 1
    return np.array(nodes[::-1], np.int64)


def node_weights(model: LabelEstimator, tree: int, node: int, features: Ints) -> Doubles:
    """Return one node's weights of `features`; 0 where it has none."""
    found = model._prepare().forest.node_weights(tree, node, features.astype(np.int32))
    return found.astype(np.float64)


def node_terms(model: LabelEstimator, tree: int, node: int) -> tuple[Ints, Doubles]:
    """Return the features for which a node has weights, and the weights."""
    weights = model.weights_[tree]
    features = chunk_features(weights, int(chunks_of(weights, node)))
    values = node_weights(model, tree, node, features)
    return features[values != 0], values[values != 0]
