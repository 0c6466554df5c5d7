"""A label tree from the centroids of its labels."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from longleaf import _core
from longleaf._validation import Rows
from longleaf.trees.label_tree import LabelTree

CLUSTERED = ("kmeans", "merged", "unbalanced")
"""The trees that come from clusters of labels."""

TREES = (*CLUSTERED, "complete", "random", "huffman")
"""All that have names."""

KMEANS_ITERATIONS, KMEANS_TOLERANCE = 4, 1e-4


@dataclass(frozen=True)
class ClusterSettings:
    """How labels are clustered; see `longleaf.PLT` for the words."""

    kind: str
    arity: int
    max_leaf: int

    def __post_init__(self) -> None:
        if self.kind == "merged" and self.arity & (self.arity - 1):
            raise ValueError(f'arity must be a power of two with tree="merged"; got {self.arity}.')

    @property
    def split_arity(self) -> int:
        """Into how many clusters k-means splits one at a time."""
        return 2 if self.kind == "merged" else self.arity


def cluster_tree(
    centroids: _core.CsrArrays,
    seen: npt.NDArray[np.int64],
    n_features: int,
    settings: ClusterSettings,
    *,
    seed: int,
    threads: int,
) -> LabelTree:
    """Cluster labels by their centroids; ``seen`` names the label of each."""
    merged = settings.kind == "merged"
    order, begin, end, parent = _core.cluster_labels(
        *centroids,
        n_features,
        arity=settings.split_arity,
        max_leaf=settings.max_leaf,
        max_iterations=KMEANS_ITERATIONS,
        tolerance=KMEANS_TOLERANCE,
        balanced=settings.kind != "unbalanced",
        seed=seed,
        threads=threads,
    )
    tree = LabelTree.from_clusters(seen[order], begin, end, parent)
    return tree.merge_levels(settings.arity.bit_length() - 1) if merged and settings.arity > 2 else tree


def cluster_trees(
    settings: ClusterSettings,
    rows: Rows,
    labels: sp.csr_array,
    seen: npt.NDArray[np.int64],
    seeds: list[int],
    threads: int,
) -> Iterator[LabelTree]:
    """Cluster the centroids of the labels that occur, once per seed; yield each tree once it is built."""
    centroids = _core.label_centroids(
        *rows.csr, rows.n_features, rows.scale, *rows_of_labels(labels, seen), threads
    )
    for seed in seeds:
        yield cluster_tree(centroids, seen, rows.n_features, settings, seed=seed, threads=threads)


def rows_of_labels(
    labels: sp.csr_array, seen: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int32]]:
    """List the rows of each label that occurs, one label after the other; the others have none to list."""
    ones = np.broadcast_to(np.int8(1), labels.nnz)
    by_label = sp.csr_array((ones, labels.indices, labels.indptr), shape=labels.shape).tocsc()
    starts = by_label.indptr[np.append(seen, labels.shape[1])]
    return starts.astype(np.int64), by_label.indices.astype(np.int32, copy=False)
