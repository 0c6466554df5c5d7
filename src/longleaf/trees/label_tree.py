"""Label trees: frozen arrays in breadth-first order, and the ways to build one."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class LabelTree:
    """A rooted tree whose leaves are labels.

    Node 0 is the root; the children of node ``v`` are ``first_child[v] .. first_child[v + 1] - 1``.

    Attributes
    ----------
    first_child : int32 array [nodes + 1]
        Where each node's children begin, in breadth-first order; a leaf has none.
    label : int32 array [nodes]
        The label of a leaf, -1 for an inner node.
    """

    first_child: Ints
    label: Ints

    @property
    def n_nodes(self) -> int:
        """How many nodes there are, the root included."""
        return len(self.label)

    @property
    def labels(self) -> Ints:
        """The labels of the leaves, in the leaves' order."""
        return self.label[self.label >= 0]

    @property
    def parent(self) -> Ints:
        """The parent of each node; -1 at the root."""
        children = np.diff(self.first_child)
        return np.concatenate([[-1], np.repeat(np.arange(self.n_nodes), children)]).astype(np.int32)

    @property
    def depth(self) -> Ints:
        """The depth of each node; 0 for the root."""
        return np.repeat(np.arange(len(levels := self.levels())), [len(v) for v in levels]).astype(np.int32)

    def levels(self) -> list[npt.NDArray[np.int64]]:
        """List the nodes of each level, from the root down."""
        begin, end, levels = 0, 1, [np.zeros(1, np.int64)]
        while end < self.n_nodes:  # a level's children are the next level
            begin, end = end, int(self.first_child[end])
            levels.append(np.arange(begin, end))
        return levels

    @classmethod
    def from_parents(cls, parent: npt.ArrayLike, label: npt.ArrayLike) -> LabelTree:
        """Bring any rooted tree into breadth-first order.

        Inner nodes with no label below them are omitted, and so are those with a single child, whose
        classifier would have nothing to tell apart; the root stays.

        Parameters
        ----------
        parent : int array [nodes]
            The parent of each node, -1 for exactly one, the root; in any order.
        label : int array [nodes]
            The label of each leaf that has one, -1 for other nodes.
        """
        parent, label = np.asarray(parent, np.int64), np.asarray(label, np.int64)
        _check_parents(parent, label)
        parent = _splice_thin_nodes(parent, label)
        return cls._in_breadth_first_order(parent, label)

    @classmethod
    def _in_breadth_first_order(
        cls, parent: npt.NDArray[np.int64], label: npt.NDArray[np.int64]
    ) -> LabelTree:
        order, first_child = breadth_first(parent)
        return cls(first_child.astype(np.int32), label[order].astype(np.int32))

    @classmethod
    def flat(cls, labels: npt.ArrayLike) -> LabelTree:
        """All labels as children of the root: one classifier per label."""
        labels = np.asarray(labels, np.int64)
        return cls.from_parents(
            np.concatenate([[-1], np.zeros(len(labels), np.int64)]), np.concatenate([[-1], labels])
        )

    @classmethod
    def complete(cls, labels: npt.ArrayLike, arity: int = 2, max_leaf: int = 100) -> LabelTree:
        """Split the labels, in the order given, into equal clusters until none is above ``max_leaf``."""
        labels = np.asarray(labels, np.int64)
        begin, end, parent = [0], [len(labels)], [-1]
        cluster = 0
        while cluster < len(begin):
            size = end[cluster] - begin[cluster]
            if size > max_leaf:
                cuts = begin[cluster] + np.arange(arity + 1) * size // arity
                pieces = [(a, b) for a, b in pairwise(cuts) if a < b]
                begin += [int(a) for a, _ in pieces]
                end += [int(b) for _, b in pieces]
                parent += [cluster] * len(pieces)
            cluster += 1
        return cls.from_clusters(labels, np.array(begin), np.array(end), np.array(parent))

    @classmethod
    def random(
        cls, labels: npt.ArrayLike, random: np.random.RandomState, arity: int = 2, max_leaf: int = 100
    ) -> LabelTree:
        """Shuffle the labels into a complete tree."""
        return cls.complete(random.permutation(np.asarray(labels, np.int64)), arity, max_leaf)

    @classmethod
    def huffman(cls, labels: npt.ArrayLike, counts: npt.ArrayLike, arity: int = 2) -> LabelTree:
        """Huffman's tree: the more frequent a label, the shorter its path."""
        labels, counts = np.asarray(labels, np.int64), np.asarray(counts, np.float64)
        heap: list[tuple[float, int]] = [(float(c), node) for node, c in enumerate(counts)]
        heapq.heapify(heap)
        parent = np.full(2 * len(labels) + 1, -2, np.int64)
        node = len(labels)
        # the first merge takes what is left over, so that every later one is of `arity`
        take = (len(labels) - 2) % (arity - 1) + 2 if len(labels) > 1 else 1
        while len(heap) > 1 or node == len(labels):
            total = 0.0
            for _ in range(min(take, len(heap))):
                weight, child = heapq.heappop(heap)
                parent[child] = node
                total += weight
            heapq.heappush(heap, (total, node))
            node, take = node + 1, arity
        parent[node - 1] = -1
        label = np.concatenate([labels, np.full(node - len(labels), -1)])
        return cls.from_parents(parent[:node], label)

    @classmethod
    def from_hierarchy(cls, parents: Sequence[int] | npt.ArrayLike, n_labels: int | None = None) -> LabelTree:
        """Use a hierarchy of the user's own.

        Parameters
        ----------
        parents : int array
            The parent of each label, as a position in this same array, -1 for none. Positions from
            ``n_labels`` on are groups that are not labels themselves. A label that has others below it
            gets a leaf of its own among them.
        n_labels : int, optional
            How many of the positions are labels; all, by default.
        """
        parents = np.asarray(parents, np.int64)
        size = len(parents)
        n_labels = size if n_labels is None else n_labels
        if parents.ndim != 1 or size == 0 or parents.min() < -1 or parents.max() >= size:
            raise ValueError("parents must be positions in the same array, or -1.")
        root = size
        has_children = np.zeros(size, bool)
        has_children[parents[parents >= 0]] = True
        own = np.flatnonzero(has_children[:n_labels])  # labels that are inner nodes too
        parent = np.concatenate([np.where(parents < 0, root, parents), [-1], own])
        label = np.concatenate([np.arange(size), [-1], own])
        label[n_labels : size + 1] = -1
        label[:size][has_children] = -1
        return cls.from_parents(parent, label)

    @classmethod
    def from_clusters(cls, order: npt.ArrayLike, begin: Any, end: Any, parent: Any) -> LabelTree:
        """Hang the labels ``order[begin[c]:end[c]]`` below every cluster ``c`` without clusters below it."""
        order, begin, end, parent = (np.asarray(a, np.int64) for a in (order, begin, end, parent))
        inner = np.zeros(len(parent), bool)
        inner[parent[parent >= 0]] = True
        lowest = np.flatnonzero(~inner)
        lowest = lowest[np.argsort(begin[lowest])]  # the lowest clusters cover the order without gaps
        cluster_of = np.repeat(lowest, end[lowest] - begin[lowest])
        return cls.from_parents(
            np.concatenate([parent, cluster_of]), np.concatenate([np.full(len(parent), -1), order])
        )

    def merge_levels(self, levels: int) -> LabelTree:
        """Keep only every ``levels``-th level of inner nodes: arity 2 becomes ``2**levels``."""
        parent, depth = self.parent.astype(np.int64), self.depth
        inner = self.label < 0
        # a node stays if it is a leaf, or has leaves as children, or is at a multiple of `levels`
        holds_leaves = np.zeros(self.n_nodes, bool)
        holds_leaves[parent[~inner]] = True
        kept = ~inner | holds_leaves | (depth % levels == 0)
        kept[0] = True
        for v in range(1, self.n_nodes):  # parents come first, so one look up the path is enough
            if not kept[parent[v]]:
                parent[v] = parent[parent[v]]
        parent[~kept] = -2
        return type(self)._in_breadth_first_order(parent, self.label.astype(np.int64))

    def restrict(self, labels: npt.ArrayLike) -> LabelTree:
        """Leave out every leaf whose label is not among ``labels``."""
        keep = np.isin(self.label, np.asarray(labels))
        return type(self).from_parents(self.parent, np.where(keep, self.label, -1))


def breadth_first(parent: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Order nodes level by level, siblings as they stand; return the order, and where children begin in it.

    Parameters
    ----------
    parent : int64 array [nodes]
        -1 at the root, -2 at nodes that are omitted.
    """
    kept = np.flatnonzero(parent >= 0)
    by_parent = kept[np.argsort(parent[kept], kind="stable")]
    begin = np.searchsorted(parent[by_parent], np.arange(len(parent) + 1))
    level = np.flatnonzero(parent == -1)
    order, counts = [level], []
    while len(level):
        count = begin[level + 1] - begin[level]
        counts.append(count)
        starts = np.repeat(begin[level] - np.concatenate([[0], np.cumsum(count)[:-1]]), count)
        level = by_parent[starts + np.arange(count.sum())]
        order.append(level)
    return np.concatenate(order), np.concatenate([[1], 1 + np.cumsum(np.concatenate(counts))])


def _check_parents(parent: npt.NDArray[np.int64], label: npt.NDArray[np.int64]) -> None:
    if parent.ndim != 1 or parent.shape != label.shape or not len(parent):
        raise ValueError(
            f"parent and label must be 1-D and of one length; got {parent.shape} and {label.shape}."
        )
    if (parent == -1).sum() != 1 or parent.min() < -1 or parent.max() >= len(parent):
        raise ValueError("parent must name a node for every node but one, the root, which has -1.")
    if len(np.unique(label[label >= 0])) != (label >= 0).sum():
        raise ValueError("label must name every label once.")
    if not (label >= 0).any():
        raise ValueError("A label tree must have at least one label.")
    ancestor = parent.copy()
    for _ in range(
        len(parent).bit_length() + 1
    ):  # pointer doubling: after this every path has ended, or is a circle
        ancestor = np.where(ancestor >= 0, ancestor[ancestor], -1)
    if (ancestor >= 0).any():
        raise ValueError(
            f"parent must not lead round in a circle; node {np.flatnonzero(ancestor >= 0)[0]} does."
        )
    if (label[parent[parent >= 0]] >= 0).any():
        raise ValueError("label must be -1 for nodes that have children.")


def _splice_thin_nodes(parent: npt.NDArray[np.int64], label: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Mark nodes with no label below by -2, and let a single child take its parent's place."""
    parent = parent.copy()
    root = int(np.flatnonzero(parent == -1)[0])
    children = np.bincount(parent[parent >= 0], minlength=len(parent))
    barren = [int(v) for v in np.flatnonzero((children == 0) & (label < 0)) if v != root]
    while barren:
        v = barren.pop()
        above = int(parent[v])
        parent[v] = -2
        children[above] -= 1
        if children[above] == 0 and above != root:
            barren.append(above)
    thin = (children == 1) & (parent >= 0)
    while True:  # each round lifts every node over its thin parent
        over = (parent >= 0) & thin[np.maximum(parent, 0)]
        if not over.any():
            break
        parent[over] = parent[parent[over]]
    parent[thin] = -2
    return parent
