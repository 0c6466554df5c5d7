"""The weights along a label's paths, decoded for the features of one row."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from longleaf._ranker import LabelRanker
from longleaf.tree import LabelTree

Doubles = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class LabelPath:
    """A label's nodes in one tree from below the root down to its leaf, as one row sees them.

    Attributes
    ----------
    bias : float64 array [nodes]
        The margin of each node's classifier for the empty row.
    products : float64 array [nodes, features of the row]
        What each feature adds to it: weight times value.
    """

    bias: Doubles
    products: Doubles

    @property
    def margin(self) -> Doubles:
        """What all features together add to the margin of each node."""
        return np.asarray(self.products.sum(axis=1), np.float64)


def label_path(model: LabelRanker, tree: int, label: int, features: Ints, values: Doubles) -> LabelPath:
    """Decode what `features` with `values` add along the path to `label`.

    Parameters
    ----------
    model : PLT or BR
    tree : int
        Which tree of the model.
    label : int
        It must have a leaf in the tree.
    features, values : arrays [features of the row]
        The row, as it is scored.
    """
    nodes = path_nodes(model.trees_[tree], label)
    forest = model._prepare().forest
    weights = [forest.node_weights(tree, node, features.astype(np.int32)) for node in nodes]
    products = np.asarray(weights, np.float64) * values
    return LabelPath(np.asarray(model.weights_[tree]["bias"], np.float64)[nodes], products)


def path_nodes(tree: LabelTree, label: int) -> Ints:
    """List the nodes from below the root down to the leaf of `label`."""
    node = int(np.flatnonzero(tree.label == label)[0])
    nodes = []
    while node > 0:
        nodes.append(node)
        # first_child never falls, so the parent is the last node whose children begin here or before
        node = int(np.searchsorted(tree.first_child, node, side="right")) - 1
    return np.array(nodes[::-1], np.int64)
