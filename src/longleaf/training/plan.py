"""What a training will take: some of it is done for real, and the whole is worked out from that."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from longleaf.training.data import DataSizes, TrainingData, is_trained_twice, may_be_calibrated
from longleaf.training.execution import check_clustering, choose_execution, find_sizes
from longleaf.training.job import TrainingJob
from longleaf.training.memory import ExecutionPlan
from longleaf.training.refined import REFINED_SIZE, REFINED_STEPS
from longleaf.training.sampling import Clock, estimate_centroid_entries, estimate_tree
from longleaf.training.scratch import scratch_files
from longleaf.training.solver import NodeTrainer
from longleaf.trees.clustering import rows_of_labels
from longleaf.trees.label_tree import LabelTree

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
        when it needs the memory.
    model_bytes : int
        The model on disk.
    memory : dict of str to int
        What each phase adds to what the process holds already (``begin``).
    threads : int
    execution : ExecutionPlan
        How training has to be run to stay within ``memory``; entirely in memory if there is no limit.
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
    execution: ExecutionPlan


def plan_training(
    job: TrainingJob, data: TrainingData, sizes: DataSizes, limit: int | None = None, share: float = SHARE
) -> Plan:
    """Plan a training whose data are checked.

    Parameters
    ----------
    job, data, sizes
        As in `longleaf.training.run.run`.
    limit : int, optional
        The most bytes that the process may hold.
    share : float
        How much of the training is done to find out, divided by the number of trees.
    """
    settings, seeds = job.weigh(job.settings, sizes), job.seeds(sizes)
    random = np.random.default_rng(seeds[0])
    seen = np.flatnonzero(sizes.label_counts)
    entries, centroid_seconds = 0, 0.0
    if job.source.clusters is not None:
        of_labels = rows_of_labels(data.labels, seen)
        rows = data.rows
        entries, centroid_seconds = estimate_centroid_entries(
            rows.csr, rows.n_features, rows.scale, of_labels, random
        )
    if limit is not None:
        check_clustering(job, data, entries, len(seen), limit)
    clock = Clock()
    (tree,) = job.source.build(data.rows, data.labels, sizes.label_counts, seeds[:1], job.threads)
    one_tree = clock.seconds()
    clock = Clock()
    trainer = NodeTrainer.prepare(
        data.rows, data.labels, tree, settings, seed=seeds[0], row_weight=data.row_weight
    )
    preparing = clock.seconds()
    estimate = estimate_tree(trainer, min(1.0, share * len(seeds)), random)
    measured = find_sizes(job, data, trainer, estimate, entries, len(seen))
    execution, phases = choose_execution(measured, job.threads, job.held, limit)
    refined = 0 if job.refining is None or not may_be_calibrated(sizes.n_rows) else 1
    stored = len(seeds) + refined * REFINED_SIZE
    model_bytes = int(stored * measured.tree_bytes + 8 * sizes.n_labels)
    again = max(one_tree - centroid_seconds / job.threads, 0.0)
    steps = len(seeds) + refined * REFINED_STEPS
    training = steps * (_in_parallel(estimate.seconds, execution.threads) + preparing)
    trained = one_tree + (len(seeds) - 1) * again + training
    twice = refined and is_trained_twice(sizes.n_rows)
    seconds = trained * (2 if twice else 1) + model_bytes / WRITE_SPEED
    return Plan(
        rows=data.rows.n_rows,
        features=data.rows.n_features,
        labels=len(seen),
        trees=len(seeds),
        nodes=len(seeds) * tree.n_nodes,
        levels=_levels(tree, trainer.node_indptr),
        seconds=seconds,
        memory_bytes=job.held + max(phases.values()),
        model_bytes=model_bytes,
        memory={"begin": job.held} | phases,
        threads=execution.threads,
        execution=execution,
    )


def plan_within(
    job: TrainingJob, data: TrainingData, sizes: DataSizes, limit: int, folder: Path
) -> ExecutionPlan:
    """Say how to train within ``limit`` bytes; what is trained to find out works in files of ``folder``."""
    with scratch_files(folder):
        return plan_training(job, data, sizes, limit).execution


def _in_parallel(seconds: npt.NDArray[np.float64], threads: int) -> float:
    """Units are handed out largest first, so threads end together unless one is most of it."""
    return float(max(seconds.sum() / threads, seconds.max()))


def _levels(tree: LabelTree, node_indptr: npt.NDArray[np.int64]) -> list[Level]:
    depth, inner = tree.depth, np.diff(tree.first_child) > 0
    nodes = np.bincount(depth)
    rows = np.bincount(depth[inner] + 1, np.diff(node_indptr)[inner], minlength=len(nodes))
    return [Level(d, int(nodes[d]), int(rows[d])) for d in range(1, len(nodes))]
