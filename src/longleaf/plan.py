"""What a training will take, before it begins."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import clone

from longleaf._base.estimator import LabelEstimator
from longleaf._fitting.clustering import CLUSTERED
from longleaf._fitting.memory import Means, parse_memory, resident_bytes
from longleaf._fitting.scratch import scratch_files
from longleaf._fitting.trees import TrainingData
from longleaf._planning.means import check_clustering, choose_means, find_sizes
from longleaf._planning.sampling import Clock, estimate_centroid_entries, estimate_tree
from longleaf._validation import LabelsLike, check_number, check_threads
from longleaf.linear import NodeTrainer, SolverSettings
from longleaf.plt import PLT, rows_of_labels
from longleaf.tree import LabelTree

SHARE = 0.1
"""The share of a training's cost that a plan trains for real, all trees together."""

WRITE_SPEED = 3e8
"""Bytes a second that a model is saved with."""


@dataclass(frozen=True)
class Level:
    """The nodes so far below the root, and the rows of their parents: what trains them."""

    depth: int
    nodes: int
    rows: int


@dataclass(frozen=True)
class Plan:
    """What a training will take; see `plan`.

    Attributes
    ----------
    rows, features, labels : int
        Of the data; labels that occur.
    trees, nodes : int
        Nodes of all trees together.
    levels : list of Level
        Of one tree.
    seconds : float
        From the call of ``fit`` to its end if nothing else keeps the machine busy; saving included.
    memory_bytes : int
        The peak of the whole process. Pages of a memory-mapped store are not counted: the system drops them
        when it needs room.
    model_bytes : int
        The model on disk.
    memory : dict of str to int
        What each phase adds to what the process holds already (``begin``).
    threads : int
    means : Means
        How training has to be run to stay within ``memory``; the plain way if no limit was given.
    """

    rows: int
    features: int
    labels: int
    trees: int
    nodes: int
    levels: list[Level]
    seconds: float
    memory_bytes: int
    model_bytes: int
    memory: dict[str, int]
    threads: int
    means: Means


def plan(
    X: Any,
    Y: LabelsLike,
    estimator: LabelEstimator | None = None,
    *,
    memory: str | int | None = None,
    share: float = SHARE,
) -> Plan:
    """Say what training will take: nodes, rows per level, peak memory, model size and time.

    One tree is built for real, and about a tenth of its training is done: some units of every level, or
    a unit on some of its rows where it is too large. Time and size are extrapolated from these by the cost of
    all units; memory is the sum of the arrays that training holds at its peak.

    Parameters
    ----------
    X, Y
        As for `longleaf.PLT.fit`.
    estimator : PLT or BR, optional
        Whose training is planned; ``PLT()`` if left out. It is left as it is.
    memory : str or int, optional
        A limit, such as "4G". The plan is then for a training that stays within it, or a ValueError says why
        there is none.
    share : float
        How much of the training to do, from 0 to 1, divided by the number of trees.

    Examples
    --------
    >>> import longleaf as ll
    >>> from longleaf.datasets import make_hierarchy
    >>> X, Y = make_hierarchy(500, 2000, 100, random_state=1)
    >>> plan = ll.plan(X, Y, ll.PLT(n_trees=1, max_leaf=10, arity=4, random_state=1))
    >>> plan.nodes, [level.nodes for level in plan.levels]
    (121, [4, 16, 100])
    """
    model = PLT() if estimator is None else clone(estimator)
    settings, threads = model._solver_settings(), check_threads(model.n_jobs)
    begin = resident_bytes()
    data = model._begin_fit(X, Y, None)
    seeds = model._draw_seeds()
    settings = model._weigh_labels(settings)
    limit = None if memory is None else parse_memory(memory)
    check_number(share, "share", low=0, high=1, open_low=True)
    return plan_training(model, data, seeds, settings, threads, begin, limit, share)


def plan_training(
    model: LabelEstimator,
    data: TrainingData,
    seeds: list[int],
    settings: SolverSettings,
    threads: int,
    begin: int,
    limit: int | None,
    share: float = SHARE,
) -> Plan:
    """Plan a training whose data are checked; ``begin`` is the memory that the process held before."""
    random = np.random.default_rng(seeds[0])
    seen = np.flatnonzero(model.label_counts_)
    entries, centroid_seconds = 0, 0.0
    if isinstance(model, PLT) and model.tree in CLUSTERED:
        of_labels = rows_of_labels(data.labels, seen)
        rows = data.rows
        entries, centroid_seconds = estimate_centroid_entries(
            rows.csr, rows.n_features, rows.scale, of_labels, random
        )
    if limit is not None:
        check_clustering(model, data, entries, len(seen), begin, limit)
    clock = Clock()
    (tree,) = model._build_trees(data.rows, data.labels, seeds[:1], threads)
    one_tree = clock.seconds()
    clock = Clock()
    trainer = NodeTrainer.prepare(
        data.rows, data.labels, tree, settings, seed=seeds[0], row_weight=data.row_weight
    )
    preparing = clock.seconds()
    estimate = estimate_tree(trainer, min(1.0, share * len(seeds)), random)
    sizes = find_sizes(model, data, trainer, estimate, entries, len(seen), len(seeds), threads)
    means, phases = choose_means(sizes, threads, begin, limit)
    model_bytes = int(len(seeds) * sizes.tree_bytes + 8 * model.n_labels_)
    again = max(one_tree - centroid_seconds / threads, 0.0)
    training = len(seeds) * (_in_parallel(estimate.seconds, means.threads) + preparing)
    seconds = one_tree + (len(seeds) - 1) * again + training + model_bytes / WRITE_SPEED
    return Plan(
        rows=data.rows.n_rows,
        features=data.rows.n_features,
        labels=len(seen),
        trees=len(seeds),
        nodes=len(seeds) * tree.n_nodes,
        levels=_levels(tree, trainer.node_indptr),
        seconds=seconds,
        memory_bytes=begin + max(phases.values()),
        model_bytes=model_bytes,
        memory={"begin": begin} | phases,
        threads=means.threads,
        means=means,
    )


def within(
    model: LabelEstimator,
    data: TrainingData,
    seeds: list[int],
    settings: SolverSettings,
    threads: int,
    begin: int,
    limit: int,
    folder: Path,
) -> Means:
    """Say how to train within ``limit`` bytes; what is trained to find out works in files of ``folder``."""
    with scratch_files(folder):
        return plan_training(model, data, seeds, settings, threads, begin, limit).means


def _in_parallel(seconds: npt.NDArray[np.float64], threads: int) -> float:
    """Units are handed out largest first, so threads end together unless one is most of it."""
    return float(max(seconds.sum() / threads, seconds.max()))


def _levels(tree: LabelTree, node_indptr: npt.NDArray[np.int64]) -> list[Level]:
    depth, inner = tree.depth, np.diff(tree.first_child) > 0
    nodes = np.bincount(depth)
    rows = np.bincount(depth[inner] + 1, np.diff(node_indptr)[inner], minlength=len(nodes))
    return [Level(d, int(nodes[d]), int(rows[d])) for d in range(1, len(nodes))]
