"""A training job on Dask: count, cluster, cut into tasks, train, join."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
from dask.base import is_dask_collection

from longleaf.training.cluster import blocks
from longleaf.training.cluster.nodes import Problem, count, train_tasks
from longleaf.training.cluster.run import Run
from longleaf.training.cluster.sources import loaders
from longleaf.training.cluster.trees import build_trees
from longleaf.training.data import LEAST_ROWS, DataSizes, check_row_weight, may_be_calibrated
from longleaf.training.job import Trained, TrainingJob


def train(
    job: TrainingJob,
    X: Any,
    y: Any,
    sample_weight: Any,
    *,
    client: Any = None,
    partitions: int | None = None,
    progress: Callable[[float], None] | None = None,
    timeout: float | None = None,
) -> Trained:
    """Run a training job on a cluster; the parameters are those of `longleaf.distributed.fit`."""
    with Run(client, timeout) as run:
        data = [start() for start in loaders(run, X, y, job.normalize, partitions)]
        held = run.gather([run.submit("sizes", blocks.sizes, one) for one in data])
        total = check_sizes(held)
        if job.refining is not None and may_be_calibrated(total.rows):
            raise ValueError(
                f"refine must be False (--no-refine) to train {LEAST_ROWS} rows or more on Dask; got True."
            )
        data = _add_weights(run, data, held, sample_weight)
        counted = (("labels", blocks.count_labels), ("mass", blocks.weigh_features))
        counts, mass = run.gather([count(run, name, function, data) for name, function in counted])
        sizes = DataSizes(total.rows, total.features, counts, mass)
        settings, seeds = job.weigh(job.settings, sizes), job.seeds(sizes)
        clusters = job.source.clusters
        if clusters is not None:
            trees = build_trees(run, data, total, counts, clusters, seeds)
        else:
            trees = job.source.grow_trees(counts, seeds)
        trained = train_tasks(run, Problem(data, total, settings, trees, seeds), progress)
    return Trained(sizes, trees, [weights for weights, _ in trained], [facts for _, facts in trained])


def check_sizes(held: list[blocks.Sizes]) -> blocks.Sizes:
    """Return the sizes of all partitions together, which must agree in features and be enough to train on."""
    features = held[0].features
    for number, one in enumerate(held):
        if one.features != features:
            raise ValueError(
                f"X must have the same features in every partition: {features} in partition 0; "
                f"got {one.features} in partition {number}."
            )
    rows, entries, labels = (
        sum(getattr(one, name) for one in held) for name in ("rows", "entries", "label_entries")
    )
    if features == 0:
        raise ValueError("X must have features; got 0.")
    if rows == 0 or labels == 0:
        raise ValueError(f"y must have at least one label to train on; got {rows} rows with none.")
    return blocks.Sizes(rows, features, max(one.labels for one in held), entries, labels)


def _add_weights(run: Run, data: list[Any], held: list[blocks.Sizes], weight: Any) -> list[Any]:
    if is_dask_collection(weight):
        weight = np.concatenate([np.ravel(one) for one in run.gather(run.compute(weight.to_delayed()))])
    checked = check_row_weight(weight, sum(one.rows for one in held))
    if checked is None:
        return data
    bounds = np.append(0, np.cumsum([one.rows for one in held])).tolist()
    return [
        run.submit("weigh", blocks.with_weight, one, checked[begin:end])
        for one, (begin, end) in zip(data, pairwise(bounds), strict=True)
    ]
