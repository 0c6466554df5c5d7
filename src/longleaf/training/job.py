"""A training, from checked settings to trained trees: the one sequence that all trainings follow.

An estimator says what to train with (`TrainingJob`), and takes what comes out (`Trained`). In between

1. the data are checked and counted (`TrainingData`, `DataSizes`),
2. positive rows are weighted by the counts of labels (`TrainingJob.weigh`),
3. trees are made, one per seed (`TreeSource`),
4. the classifiers of all nodes are trained,
5. labels are refined, if wanted.

`longleaf.training.run` does it in this process, `longleaf.training.cluster.Session.train` on Dask, and
`longleaf.training.plan` estimates what it takes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.utils import check_random_state

from longleaf import _core
from longleaf._validation import LabelsLike, Rows
from longleaf.training.data import DataSizes, TrainingData, check_training_data
from longleaf.training.memory import resident_bytes
from longleaf.training.solver import SolverSettings
from longleaf.training.store import Facts
from longleaf.trees.clustering import ClusterSettings, cluster_trees
from longleaf.trees.label_tree import LabelTree
from longleaf.weights.chunks import WeightedTree

Counts = npt.NDArray[np.int64]


@dataclass(frozen=True)
class TreeSource:
    """Where a model's trees come from: clusters of the labels' rows, or the labels' counts alone.

    Attributes
    ----------
    clusters : ClusterSettings, optional
    grow : callable, optional
        Returns one tree for each of some seeds, given the labels' counts. Not used with ``clusters``.
    same_up_to : float
        Up to how many labels all trees are the same tree, whatever their seeds.
    """

    clusters: ClusterSettings | None = None
    grow: Callable[[Counts, list[int]], list[LabelTree]] | None = None
    same_up_to: float = math.inf

    def build(
        self, rows: Rows, labels: sp.csr_array, counts: Counts, seeds: list[int], threads: int
    ) -> Iterable[LabelTree]:
        """Return one tree per seed, over the labels that occur; each as soon as it is built."""
        if self.clusters is not None:
            return cluster_trees(self.clusters, rows, labels, np.flatnonzero(counts), seeds, threads)
        return self.grow_trees(counts, seeds)

    def grow_trees(self, counts: Counts, seeds: list[int]) -> list[LabelTree]:
        """Return one tree per seed, of a source without clusters."""
        assert self.grow is not None
        return self.grow(counts, seeds)


@dataclass(frozen=True)
class Refining:
    """How refined labels are trained; see `longleaf.training.refined`.

    Attributes
    ----------
    settings : callable
        Returns the settings for the counts of some data.
    link : int
        How margins of the trees become probabilities, as native code calls it.
    """

    settings: Callable[[DataSizes], SolverSettings]
    link: int


@dataclass(frozen=True, eq=False)
class Trained:
    """What a training results in; ``facts`` has an entry per tree, and a last one for refined labels."""

    sizes: DataSizes
    trees: list[LabelTree]
    weights: list[_core.WeightArrays]
    facts: list[Facts]
    refined: WeightedTree | None = None


@dataclass(frozen=True, eq=False)
class TrainingJob:
    """Everything that a training's result depends on, but for the data; all of it checked.

    Attributes
    ----------
    kind, params
        The estimator and its parameters, by which a checkpoint is recognised.
    normalize : bool
        Whether rows are scaled to unit length.
    settings : SolverSettings
    weigh : callable
        Returns the settings completed by what depends on the labels' counts.
    source : TreeSource
    n_trees, random_state
        One seed is drawn per tree. Where all would be the same tree, one is trained: the mean of equal
        answers is that answer.
    threads : int
    refining : Refining, optional
        How labels are refined; None if they are not.
    held : int
        Bytes that the process held before it read the data.
    """

    kind: str
    params: Mapping[str, Any]
    normalize: bool
    settings: SolverSettings
    weigh: Callable[[SolverSettings, DataSizes], SolverSettings]
    source: TreeSource
    n_trees: int
    random_state: Any
    threads: int
    refining: Refining | None = None
    held: int = field(default_factory=resident_bytes)

    def check(self, X: Any, y: LabelsLike, sample_weight: npt.ArrayLike | None) -> TrainingData:
        """Check the rows and their labels."""
        return check_training_data(X, y, sample_weight, normalize=self.normalize)

    def seeds(self, sizes: DataSizes) -> list[int]:
        """Draw a seed for each tree to train."""
        seeds = check_random_state(self.random_state).randint(2**31 - 1, size=self.n_trees)
        return [int(seed) for seed in seeds[: self.tree_count(int(np.count_nonzero(sizes.label_counts)))]]

    def tree_count(self, n_labels: int) -> int:
        """Return how many trees are trained over so many labels that occur."""
        return 1 if n_labels <= self.source.same_up_to else self.n_trees
