"""Label trees: centroids from partitions of rows, then k-means of one tree a task.

A centroid is a sum of floats, so the order of its rows matters. Therefore a task has some labels to itself:
it gets all rows of these labels, in the order of the rows, and sums as one machine does. k-means looks at all
centroids in its first split and is not cut: one task a tree.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from longleaf import _core
from longleaf.training.cluster.blocks import Ints, Sizes, join_indptr, rows_of_labels, stack
from longleaf.training.cluster.run import Job, Run
from longleaf.training.cluster.tasks import MEMORY_SHARE, row_bytes
from longleaf.training.data import TrainingData
from longleaf.trees.clustering import ClusterSettings, cluster_tree
from longleaf.trees.label_tree import LabelTree


def build_trees(
    run: Run, data: list[Any], total: Sizes, counts: Ints, settings: ClusterSettings, seeds: list[int]
) -> list[LabelTree]:
    """Cluster the labels that occur, once per seed.

    Parameters
    ----------
    data : list of futures of TrainingData
    total : Sizes
        Of all of them.
    counts : int64 array [labels]
        The rows of each label.
    """
    centroids = _centroids(run, data, total, counts)
    seen = run.keep("seen", np.flatnonzero(counts))
    need = _clustering_bytes(run, centroids)
    jobs = [
        Job(
            f"the k-means of tree {number}",
            need,
            partial(_submit_tree, run, centroids, (seen, seed, settings, total.features)),
            about=number,
        )
        for number, seed in enumerate(seeds)
    ]
    done = {job.about: tree for job, tree in run.stream(jobs, MEMORY_SHARE, len(jobs))}
    return [done[number] for number in range(len(seeds))]


def _centroids(run: Run, data: list[Any], total: Sizes, counts: Ints) -> list[Any]:
    """Return futures of the centroids of some labels each, in the order of the labels."""
    workers = run.workers(MEMORY_SHARE)
    threads, memory = sum(one.threads for one in workers), min((one.memory for one in workers), default=1.0)
    row_cost = 3 * row_bytes(total) / max(total.rows, 1)  # rows, the same put together, and their sums
    most = max(1.0, min(counts.sum() / max(threads, 1), memory / row_cost))
    jobs = [
        Job(
            f"the centroids of labels {first} to {last - 1}",
            row_cost * min(int(counts[first:last].sum()), total.rows),
            partial(_submit_group, run, data, first, last),
            about=first,
        )
        for first, last in _groups(counts, most)
        if counts[first:last].any()
    ]
    ended = run.stream(jobs, MEMORY_SHARE, 2 * max(threads, 1), fetch=False)
    done = {job.about: future for job, future in ended}
    for future in done.values():
        if future.status == "error":
            run.result(future)
    return [done[first] for first in sorted(done)]


def _submit_tree(run: Run, centroids: list[Any], how: tuple[Any, ...], workers: list[str] | None) -> Any:
    return run.submit("kmeans", _cluster, *how, *centroids, workers=workers)


def _submit_group(run: Run, data: list[Any], first: int, last: int, workers: list[str] | None) -> Any:
    blocks = [run.submit("gather", rows_of_labels, one, first, last) for one in data]
    return run.submit("centroids", _sum_group, first, last, *blocks, workers=workers)


def _groups(counts: Ints, most: float) -> list[tuple[int, int]]:
    """Cut the labels into runs of about ``most`` rows."""
    number = np.floor((np.cumsum(counts) - counts) / most)
    starts = np.flatnonzero(np.diff(number, prepend=-1.0))
    return list(zip(starts.tolist(), [*starts[1:].tolist(), len(counts)], strict=True))


def _sum_group(first: int, last: int, *blocks: TrainingData) -> _core.CsrArrays:
    """Return the centroids of those labels from ``first`` to before ``last`` that occur."""
    data = stack(blocks)
    rows_of_label = data.labels.T.tocsr()[first:last]
    occurs = np.flatnonzero(np.diff(rows_of_label.indptr))
    rows_of_label = rows_of_label[occurs]
    return _core.label_centroids(
        *data.rows.csr,
        data.rows.n_features,
        data.rows.scale,
        rows_of_label.indptr.astype(np.int64),
        rows_of_label.indices.astype(np.int32),
        1,
    )


def _clustering_bytes(run: Run, centroids: list[Any]) -> float:
    """Say what clustering needs: the centroids in pieces, put together, and renumbered."""
    entries: list[int] = run.gather([run.submit("size", _entries, one) for one in centroids])
    return 3.0 * 8.0 * sum(entries)


def _entries(centroids: _core.CsrArrays) -> int:
    return len(centroids[1])


def _cluster(
    seen: npt.NDArray[np.int64], seed: int, settings: ClusterSettings, features: int, *groups: _core.CsrArrays
) -> LabelTree:
    centroids = (
        join_indptr([indptr for indptr, _, _ in groups]),
        np.concatenate([indices for _, indices, _ in groups]),
        np.concatenate([data for _, _, data in groups]),
    )
    return cluster_tree(centroids, seen, features, settings, seed=seed, threads=1)
