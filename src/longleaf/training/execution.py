"""The sizes of a training, and the way to run it that stays within a limit of memory."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from longleaf.training.data import TrainingData, may_be_calibrated
from longleaf.training.job import TrainingJob
from longleaf.training.memory import ExecutionPlan, Sizes, UnitSize, account
from longleaf.training.sampling import TreeEstimate, fixed_bytes
from longleaf.training.solver import NodeTrainer

SMALL_UNIT = 1000


def check_clustering(job: TrainingJob, data: TrainingData, entries: int, clustered: int, limit: int) -> None:
    """Refuse, before the labels are clustered, what does not fit the limit."""
    sizes = replace(_EMPTY, **_data_sizes(job, data, entries, clustered))
    if job.held + account(sizes, ExecutionPlan(1))["clustering"] > limit:
        raise ValueError(_why(sizes, ExecutionPlan(1), job.held, limit))


def find_sizes(
    job: TrainingJob,
    data: TrainingData,
    trainer: NodeTrainer,
    estimate: TreeEstimate,
    centroid_entries: int,
    clustered: int,
) -> Sizes:
    """Measure a training: its data, one of its trees, and the largest units."""
    first, cost = trainer.units()
    largest = np.argsort(-cost, kind="stable")[: job.threads]
    units = [_unit_size(trainer, int(first[u]), int(first[u + 1]), int(estimate.weights[u])) for u in largest]
    units.sort(key=lambda unit: unit.entries, reverse=True)
    return Sizes(
        **_data_sizes(job, data, centroid_entries, clustered),
        nodes=trainer.tree.n_nodes,
        node_rows=len(trainer.node_rows),
        trees=job.tree_count(clustered),
        tree_bytes=float(estimate.packed.sum()) + fixed_bytes(trainer),
        units=units,
        refined=job.refining is not None and may_be_calibrated(data.rows.n_rows),
    )


_EMPTY = Sizes(0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0.0, [])


def _data_sizes(
    job: TrainingJob, data: TrainingData, centroid_entries: int, clustered: int
) -> dict[str, Any]:
    clusters = job.source.clusters
    return {
        "rows": data.rows.n_rows,
        "features": data.rows.n_features,
        "labels": data.labels.shape[1],
        "label_entries": data.labels.nnz,
        "centroid_entries": centroid_entries,
        "clustered": clustered,
        "arity": 2 if clusters is None else clusters.split_arity,
    }


def _unit_size(trainer: NodeTrainer, begin: int, end: int, weights: int) -> UnitSize:
    parents = np.unique(trainer.tree.parent[max(begin, 1) : end])
    held = np.zeros(trainer.rows.n_rows, bool)
    for parent in parents:
        held[trainer.node_rows[trainer.node_indptr[parent] : trainer.node_indptr[parent + 1]]] = True
    rows = np.flatnonzero(held)
    indptr, indices, _ = trainer.rows.csr
    features = trainer.rows.n_features  # as good as all of them, where there are many rows
    if len(rows) < SMALL_UNIT:
        used = [indices[indptr[row] : indptr[row + 1]] for row in rows]
        features = len(np.unique(np.concatenate(used))) if used else 0
    return UnitSize(len(rows), int(np.diff(indptr)[rows].sum()), features, weights)


def choose_execution(
    sizes: Sizes, threads: int, begin: int, limit: int | None
) -> tuple[ExecutionPlan, dict[str, int]]:
    """Take the fastest way that stays within the limit."""
    plain = ExecutionPlan(threads)
    if limit is None:
        return plain, account(sizes, plain)
    ways = [plain]
    ways += [ExecutionPlan(t, spill=True) for t in range(threads, 0, -1)]
    ways += [ExecutionPlan(t, spill=True, scratch=True) for t in range(threads, 0, -1)]
    for execution in ways:
        phases = account(sizes, execution)
        if begin + max(phases.values()) <= limit:
            return execution, phases
    raise ValueError(_why(sizes, ways[-1], begin, limit))


def _why(sizes: Sizes, execution: ExecutionPlan, begin: int, limit: int) -> str:
    phases = account(sizes, execution)
    phase = max(phases, key=lambda name: phases[name])
    needed = begin + phases[phase]
    reason = {
        "clustering": f"clustering {sizes.clustered} labels by {sizes.centroid_entries} numbers of centroids",
        "training": f"the row lists and one node's rows at a time, {sizes.rows} at the root",
        "refining": "the rankings, row lists and calibration of refined labels (refine=False does without)",
    }[phase]
    return (
        f"Training must have {needed / 1e6:.0f} MB with one thread and all that can be on disk, for what is "
        f"held already ({begin / 1e6:.0f} MB) and {reason}; memory is {limit / 1e6:.0f} MB."
    )
