"""A training job on Dask: count, cluster, cut into tasks, train, join."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from dask.base import is_dask_collection

from longleaf.training.cluster import blocks
from longleaf.training.cluster.nodes import Problem, count, train_tasks
from longleaf.training.cluster.run import Run
from longleaf.training.cluster.sources import loaders
from longleaf.training.cluster.trees import build_trees
from longleaf.training.data import DataSizes, TrainingData, check_row_weight
from longleaf.training.job import Trained, TrainingJob
from longleaf.training.refined import train_refined
from longleaf.weights.chunks import WeightedTree


@contextmanager
def open_session(
    X: Any,
    y: Any,
    sample_weight: Any,
    *,
    normalize: bool,
    client: Any = None,
    partitions: int | None = None,
    timeout: float | None = None,
) -> Iterator[Session]:
    """Read the rows into partitions on a cluster; the parameters are those of `longleaf.distributed.fit`."""
    with Run(client, timeout) as run:
        parts = [start() for start in loaders(run, X, y, normalize, partitions)]
        held = run.gather([run.submit("sizes", blocks.sizes, one) for one in parts])
        total = check_sizes(held)
        yield Session(run, _add_weights(run, parts, held, sample_weight), [one.rows for one in held], total)


@dataclass(frozen=True, eq=False)
class Session:
    """Rows in partitions on a cluster, and what trains on them.

    Attributes
    ----------
    run : Run
    parts : list of futures of TrainingData
    part_rows : list of int
        The rows of each.
    total : Sizes
        Of all of them.
    """

    run: Run
    parts: list[Any]
    part_rows: list[int]
    total: blocks.Sizes

    def whole(self) -> TrainingData:
        """Return all rows, in this process."""
        return blocks.stack(tuple(self.run.gather(self.parts)))

    def sizes(self) -> DataSizes:
        """Count rows, features and labels."""
        counted = (("labels", blocks.count_labels), ("mass", blocks.weigh_features))
        counts, mass = self.run.gather(
            [count(self.run, name, function, self.parts) for name, function in counted]
        )
        return DataSizes(self.total.rows, self.total.features, counts, mass)

    def train(
        self,
        job: TrainingJob,
        data: TrainingData | None,
        sizes: DataSizes,
        *,
        progress: Callable[[float], None] | None = None,
    ) -> Trained:
        """Train as `longleaf.training.run.run` does; refined labels are trained in this process.

        Parameters
        ----------
        job : TrainingJob
        data : TrainingData, optional
            The whole data, perhaps with other labels and weights than the partitions; only if labels are
            refined.
        sizes : DataSizes
            Of the data.
        progress : callable, optional
        """
        run, parts, total = self.run, self.parts, self.total
        if data is not None:
            parts, total = self._relabelled(data), total._replace(label_entries=int(data.labels.nnz))
        settings, seeds = job.weigh(job.settings, sizes), job.seeds(sizes)
        clusters = job.source.clusters
        if clusters is not None:
            trees = build_trees(run, parts, total, sizes.label_counts, clusters, seeds)
        else:
            trees = job.source.grow_trees(sizes.label_counts, seeds)
        trained = train_tasks(run, Problem(parts, total, settings, trees, seeds), progress)
        weights, facts = [one for one, _ in trained], [one for _, one in trained]
        refined = None
        if job.refining is not None and data is not None:
            ranking = WeightedTree(trees[0], weights[0])
            refined, more = train_refined(
                ranking, data, sizes, job.refining, seeds[0], job.threads, None, None, len(trees)
            )
            facts.append(more)
        return Trained(sizes, trees, weights, facts, refined)

    def _relabelled(self, data: TrainingData) -> list[Any]:
        """Return the partitions with the labels and weights of the data."""
        bounds = np.append(0, np.cumsum(self.part_rows)).tolist()
        return [
            self.run.submit(
                "relabel",
                blocks.with_labels,
                one,
                data.labels[begin:end],
                None if data.row_weight is None else data.row_weight[begin:end],
            )
            for one, (begin, end) in zip(self.parts, pairwise(bounds), strict=True)
        ]


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
