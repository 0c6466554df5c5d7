"""Where new labels go in a tree, and how a cluster that has outgrown its size is split.

Problem: a label that the tree has no leaf for, and rows that carry it. Which cluster (a node whose children
are all leaves) should it join? Here: the one whose probability those rows' mean logarithm is highest for, so
that a search for such rows passes by the new leaf, unless it is crowded: `fit` makes clusters of equal size.
A cluster of more than ``max_leaf`` labels gets clusters of its own between it and its leaves, by the k-means
that `fit` builds trees with, on the labels' weights; the new nodes are certain at first, so that no
probability changes.

Source: online probabilistic label trees (Jasinska-Kobus et al., AISTATS 2021), whose trees grow with a
stream; there a label goes down the tree greedily, here the search looks at all clusters.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from longleaf import _core
from longleaf._validation import Rows
from longleaf.learning.transplant import carry, subtree_weights
from longleaf.learning.tree_edits import Subtree, subtree_of, with_clusters
from longleaf.search.top_k import NONE, log_gain
from longleaf.training.solver import LOGISTIC_LINK
from longleaf.trees.clustering import KMEANS_ITERATIONS, KMEANS_TOLERANCE
from longleaf.weights.chunks import Entries, WeightedTree, ranges, unpack
from longleaf.weights.layout import chunks_of

Ints = npt.NDArray[np.int64]

CANDIDATES = 8
"""So many of the best clusters of each row are looked at."""
MOST_ROWS = 32
"""So many rows speak for a label at most, its first ones."""
CROWDING = 4.0
"""What the logarithm of its size costs a cluster; without, a batch's new labels crowd into a few."""
SMALLEST = 1e-30
FEWEST_LEAVES = 4
"""Fewer leaves are not worth a split: a node with a single child has nothing to tell apart."""
CERTAIN = (1.0, 10.0)
"""The bias of a new node between others: a hinge's margin of probability 1; 1 - 5e-5 as a logistic one."""


def place_labels(
    weighted: WeightedTree, rows: Rows, Y: sp.csr_array, labels: Ints, *, link: int, threads: int
) -> Ints:
    """Return the node that each new label should become a child of.

    Parameters
    ----------
    weighted : WeightedTree
        The tree, which has no leaves for the labels.
    rows, Y
        Rows and their labels; every new label must occur.
    labels : int64 array
        The new labels.
    """
    tree = weighted.tree
    holds_inner = np.zeros(tree.n_nodes, bool)
    holds_inner[tree.parent[1:][tree.label[1:] < 0]] = True
    if not holds_inner[0]:  # a flat tree
        return np.zeros(len(labels), np.int64)
    clusters = subtree_of(tree, holds_inner)
    of_label = Y.T.tocsr()[labels]
    spoken = np.minimum(np.diff(of_label.indptr), MOST_ROWS).astype(np.int64)
    row = of_label.indices[ranges(of_label.indptr[:-1].astype(np.int64), spoken)].astype(np.int64)
    label = np.repeat(np.arange(len(labels)), spoken)
    best = _best_clusters(weighted, clusters, rows, row, label, link, threads)
    return np.asarray(clusters.nodes[best], np.int64)


def _best_clusters(
    weighted: WeightedTree, clusters: Subtree, rows: Rows, row: Ints, label: Ints, link: int, threads: int
) -> Ints:
    """Return per label the cluster that it should join; (`row`, `label`) are pairs."""
    forest = WeightedTree(clusters.tree, subtree_weights(weighted.weights, clusters)).forest(
        rows.n_features, link
    )
    asked, which = np.unique(row, return_inverse=True)
    some = _take_rows(rows, asked)
    gains = log_gain(np.where(weighted.tree.label[clusters.nodes] < 0, 1.0, 0.0))
    found = forest.top_k(
        *some.csr,
        some.scale,
        k=min(CANDIDATES, clusters.tree.n_nodes),
        beam=0,
        union_rule=False,
        log_gain=gains,
        log_bounds=forest.log_bounds(gains),
        log_threshold=NONE,
        log_floor=-np.inf,
        threads=threads,
    )[0]
    # every row of a label is asked about the candidates of all its rows
    pair_label, candidate = np.repeat(label, found.shape[1]), found[which].reshape(-1).astype(np.int64)
    pairs = np.unique(np.stack([pair_label, candidate], axis=1)[candidate >= 0], axis=0)
    first = np.searchsorted(label, pairs[:, 0])
    count = np.searchsorted(label, pairs[:, 0], side="right") - first
    asked_row = which[ranges(first, count)]
    pair = np.repeat(np.arange(len(pairs)), count)
    order = np.argsort(asked_row, kind="stable")
    probability = forest.probabilities(
        *some.csr, some.scale, asked_row[order], pairs[pair[order], 1].astype(np.int32), threads
    )
    logs = np.log(np.maximum(probability, SMALLEST), dtype=np.float64)
    mean = np.bincount(pair[order], logs, len(pairs)) / count
    return _spread(pairs, mean, np.diff(weighted.tree.first_child)[clusters.nodes])


def _spread(pairs: Ints, score: npt.NDArray[np.float64], sizes: npt.NDArray[np.integer]) -> Ints:
    """Choose a cluster for each label, one label after the other, by score and by how full it is by then.

    Parameters
    ----------
    pairs : int64 array [pairs, 2]
        Labels in order, 0 first, and the clusters that each may join.
    score : float64 array [pairs]
    sizes : int array [clusters]
        How many children each cluster has.
    """
    size = sizes.astype(np.float64)
    bounds = np.searchsorted(pairs[:, 0], np.arange(pairs[-1, 0] + 2))
    chosen = np.empty(len(bounds) - 1, np.int64)
    for label, (begin, end) in enumerate(pairwise(bounds)):
        clusters = pairs[begin:end, 1]
        chosen[label] = clusters[np.argmax(score[begin:end] - CROWDING * np.log(size[clusters]))]
        size[chosen[label]] += 1
    return chosen


def _take_rows(rows: Rows, chosen: Ints) -> Rows:
    matrix = sp.csr_array((rows.data, rows.indices, rows.indptr), shape=(rows.n_rows, rows.n_features))
    some = matrix[chosen]
    return Rows(
        some.indptr.astype(np.int64),
        some.indices.astype(np.int32),
        some.data,
        rows.n_features,
        rows.scale[chosen],
    )


def split_clusters(
    weighted: WeightedTree, n_features: int, *, arity: int, max_leaf: int, link: int, seed: int, threads: int
) -> WeightedTree:
    """Split every node that has more than ``max_leaf`` leaves, in a way that no probability changes."""
    tree = weighted.tree
    leaves = np.flatnonzero(tree.label >= 0)
    sizes = np.bincount(tree.parent[leaves], minlength=tree.n_nodes)
    large = np.flatnonzero(sizes > max(max_leaf, FEWEST_LEAVES - 1))
    if not len(large):
        return weighted
    cluster_of = np.full(tree.n_nodes, -1, np.int64)
    for node in large:
        children = np.arange(tree.first_child[node], tree.first_child[node + 1])
        children = children[tree.label[children] >= 0]
        groups = _group(weighted, children, n_features, arity, seed, threads)
        cluster_of[children] = groups + cluster_of.max() + 1
    edited = with_clusters(tree, cluster_of)
    certain = np.full(edited.tree.n_nodes, CERTAIN[link == LOGISTIC_LINK], np.float32)
    weights = carry(tree, weighted.weights, edited, certain, n_features, threads)
    return split_clusters(
        WeightedTree(edited.tree, weights),
        n_features,
        arity=arity,
        max_leaf=max_leaf,
        link=link,
        seed=seed,
        threads=threads,
    )


def _group(
    weighted: WeightedTree, leaves: Ints, n_features: int, arity: int, seed: int, threads: int
) -> Ints:
    """Cluster sibling leaves into ``arity`` groups by weights; return the number of each leaf's group."""
    chunks = np.unique(chunks_of(weighted.weights, leaves))
    vectors = _unit_vectors(unpack(weighted.tree, weighted.weights, chunks, n_features), leaves, n_features)
    order, begin, end, _ = _core.cluster_labels(
        vectors.indptr.astype(np.int64),
        vectors.indices.astype(np.int32),
        vectors.data,
        n_features,
        arity=max(2, min(arity, len(leaves) // 2)),
        max_leaf=len(leaves) - 1,  # one split, no more
        max_iterations=KMEANS_ITERATIONS,
        tolerance=KMEANS_TOLERANCE,
        balanced=True,
        seed=seed,
        threads=threads,
    )
    group = np.empty(len(leaves), np.int64)
    for number, (first, last) in enumerate(zip(begin[1:], end[1:], strict=True)):
        group[order[first:last]] = number
    return group


def _unit_vectors(entries: Entries, leaves: Ints, n_features: int) -> sp.csr_array:
    """Return the weights of leaves as sparse rows of unit length."""
    mine = np.isin(entries.node, leaves)
    row = np.searchsorted(leaves, entries.node[mine])
    places = row, entries.feature[mine]
    matrix: Any = sp.csr_array((entries.value[mine], places), shape=(len(leaves), n_features))
    length = np.sqrt(np.bincount(row, entries.value[mine].astype(np.float64) ** 2, len(leaves)))
    scale = np.repeat(1 / np.where(length > 0, length, 1), np.diff(matrix.indptr))
    matrix.data = (matrix.data * scale).astype(np.float32)
    result: sp.csr_array = matrix
    return result
