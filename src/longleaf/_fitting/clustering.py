"""A label tree from the centroids of its labels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from longleaf import _core
from longleaf.tree import LabelTree

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
        arity=2 if merged else settings.arity,
        max_leaf=settings.max_leaf,
        max_iterations=KMEANS_ITERATIONS,
        tolerance=KMEANS_TOLERANCE,
        balanced=settings.kind != "unbalanced",
        seed=seed,
        threads=threads,
    )
    tree = LabelTree.from_clusters(seen[order], begin, end, parent)
    return tree.merge_levels(settings.arity.bit_length() - 1) if merged and settings.arity > 2 else tree
