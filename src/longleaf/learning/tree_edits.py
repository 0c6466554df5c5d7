"""Trees that change: leaves added, removed and regrouped, some families alone; pure functions.

Nodes keep their order among siblings, new ones come last. Unlike `LabelTree.from_parents` nothing is
spliced out: a node with a single child stays, since its classifier is part of every probability below it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from longleaf.trees.label_tree import LabelTree, breadth_first

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class EditedTree:
    """A tree made of another one.

    Attributes
    ----------
    tree : LabelTree
    origin : int64 array [nodes]
        Which node of the other tree each node was; -1 for a new one.
    """

    tree: LabelTree
    origin: Ints


def leaf_of_label(tree: LabelTree, n_labels: int) -> Ints:
    """Return the leaf of each label; -1 where it has none."""
    leaf = np.full(n_labels, -1, np.int64)
    nodes = np.flatnonzero(tree.label >= 0)
    leaf[tree.label[nodes]] = nodes
    return leaf


def with_leaves(tree: LabelTree, labels: Ints, parents: Ints) -> EditedTree:
    """Hang a leaf for each label below a node."""
    return _edit(tree, np.append(tree.parent, parents), np.append(tree.label, labels))


def without_labels(tree: LabelTree, labels: Ints) -> EditedTree:
    """Drop the leaves of labels, and the nodes that have no label below them any more."""
    holds = holders(tree, np.flatnonzero((tree.label >= 0) & ~np.isin(tree.label, labels)))
    parent = np.where(holds, tree.parent, -2)
    parent[0] = -1
    return _edit(tree, parent, tree.label)


def with_clusters(tree: LabelTree, cluster_of: Ints) -> EditedTree:
    """Put new nodes between leaves and their parents.

    Parameters
    ----------
    cluster_of : int64 array [nodes]
        The number of the new node above each leaf that gets one, -1 for all other nodes. Numbers begin
        at 0; the leaves of one number must be siblings.
    """
    moved = np.flatnonzero(cluster_of >= 0)
    numbers, first = np.unique(cluster_of[moved], return_index=True)
    above = tree.parent[moved[first]]
    parent = np.append(tree.parent, above).astype(np.int64)
    parent[moved] = tree.n_nodes + np.searchsorted(numbers, cluster_of[moved])
    return _edit(tree, parent, np.append(tree.label, np.full(len(numbers), -1)))


def _edit(tree: LabelTree, parent: npt.ArrayLike, label: npt.ArrayLike) -> EditedTree:
    parent, label = np.asarray(parent, np.int64), np.asarray(label, np.int64)
    order, first_child = breadth_first(parent)
    edited = LabelTree(first_child.astype(np.int32), label[order].astype(np.int32))
    return EditedTree(edited, np.where(order < tree.n_nodes, order, -1))


def holders(tree: LabelTree, nodes: Ints) -> Bools:
    """Mark some nodes and all nodes above them, the root included."""
    parent, marked = tree.parent, np.zeros(tree.n_nodes, bool)
    marked[0] = True
    while len(nodes):
        nodes = np.unique(nodes[~marked[nodes]])
        marked[nodes] = True
        nodes = parent[nodes].astype(np.int64)
    return marked


@dataclass(frozen=True, eq=False)
class Subtree:
    """Some families of a tree as a tree of its own.

    Attributes
    ----------
    tree : LabelTree
        Its leaves are labelled by their own numbers: the whole tree's leaves and every node whose
        children stayed away.
    nodes : int64 array [nodes of the subtree]
        Their numbers in the whole tree.
    place : int64 array [nodes of the whole tree]
        The subtree's leaf at each node or above it; -1 for nodes with children in the subtree.
    families : bool array [nodes of the whole tree]
        Whose children the subtree has.
    """

    tree: LabelTree
    nodes: Ints
    place: Ints
    families: Bools


def subtree_of(tree: LabelTree, families: Bools) -> Subtree:
    """Keep the children of some nodes only: the root must be among them, and the parent of each."""
    families = families & (tree.label < 0)
    parent = tree.parent
    nodes = np.append(0, np.flatnonzero(families[np.maximum(parent, 0)] & (parent >= 0)))
    kept = families[nodes]
    sizes = np.where(kept, np.diff(tree.first_child)[nodes], 0)
    label = np.where(kept, -1, np.arange(len(nodes)))
    first_child = np.append(1, 1 + np.cumsum(sizes))
    subtree = LabelTree(first_child.astype(np.int32), label.astype(np.int32))
    return Subtree(subtree, nodes, _places(tree, nodes[~kept], np.flatnonzero(~kept), families), families)


def _places(tree: LabelTree, nodes: Ints, numbers: Ints, families: Bools) -> Ints:
    """Return every node at or below one of `nodes` its number; -1 elsewhere."""
    place = np.full(tree.n_nodes, -1, np.int64)
    place[nodes] = numbers
    parent = tree.parent
    for level in tree.levels()[1:]:
        inherit = level[(place[level] < 0) & ~families[level]]
        place[inherit] = place[parent[inherit]]
    return place
