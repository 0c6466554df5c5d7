"""Rows and labels from any source, as partitions on the workers."""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from dask.base import is_dask_collection
from distributed import Future

from longleaf._validation import Rows, check_features, check_labels
from longleaf._validation.sparse import check_structure
from longleaf.io.xmlc import load_xmlc
from longleaf.training.cluster.run import Run
from longleaf.training.data import TrainingData

PARTITIONS_PER_THREAD = 2
"""At most, of data that are cut here: enough for every thread to have some."""

PARTITION_ENTRIES = 1 << 20
"""At least, except for the last: choosing rows is a task per partition and training task."""


def loaders(
    run: Run, X: Any, y: Any, normalize: bool, partitions: int | None = None
) -> list[Callable[[], Any]]:
    """Give, for every partition in the order of the rows, what starts to load it.

    Each call returns a future of checked rows and labels (`TrainingData`). The words are those of
    `longleaf.distributed.fit`; without labels to know, ``y`` is None.
    """
    paths = _paths(X)
    if paths is not None:
        if y is not None:
            raise ValueError("y must be omitted where X names files, which hold the labels.")
        return [partial(run.submit, "read", _read, path, normalize) for path in paths]
    blocks = _blocks(X)
    if blocks is None:
        return _cut(run, X, y, normalize, partitions)
    labels = [None] * len(blocks) if y is None else _blocks(y)
    if labels is None:
        raise ValueError(f"y must be in partitions, as X is; got {type(y).__name__}.")
    if len(labels) != len(blocks):
        raise ValueError(f"X and y must have the same partitions; got {len(blocks)} and {len(labels)}.")
    pairs = zip(blocks, labels, strict=True)
    return [partial(_start, run, number, *pair, normalize) for number, pair in enumerate(pairs)]


def column_names(X: Any) -> Any:
    """Return a table that has the columns of X and their names, None where there are none."""
    meta = getattr(X, "_meta", X)
    return meta if hasattr(meta, "columns") else None


def _paths(X: Any) -> list[str] | None:
    if isinstance(X, str | os.PathLike):
        found = sorted(glob.glob(os.fspath(X)))
        if not found:
            raise ValueError(f"X must name files that exist; {os.fspath(X)} is none.")
        return found
    if isinstance(X, list | tuple) and len(X) and all(isinstance(one, str | os.PathLike) for one in X):
        return [os.fspath(one) for one in X]
    return None


def _blocks(data: Any) -> Sequence[Any] | None:
    """Return the partitions of a collection or of a list of blocks; None for anything else."""
    if isinstance(data, list | tuple) and len(data) and all(_is_block(one) for one in data):
        return data
    if not is_dask_collection(data) or not hasattr(data, "to_delayed"):
        return None
    if getattr(data, "ndim", 0) == 2 and hasattr(data, "numblocks") and data.numblocks[1] > 1:
        data = data.rechunk({1: -1})
    delayed = data.to_delayed()
    return delayed.ravel().tolist() if isinstance(delayed, np.ndarray) else list(delayed)


def _start(run: Run, number: int, X: Any, y: Any, normalize: bool) -> Any:
    X, y = (run.compute([one])[0] if is_dask_collection(one) else one for one in (X, y))
    return run.submit("check", _check, number, X, y, normalize)


def _is_block(one: Any) -> bool:
    return isinstance(one, Future) or is_dask_collection(one) or sp.issparse(one)


def _cut(run: Run, X: Any, y: Any, normalize: bool, partitions: int | None) -> list[Callable[[], Any]]:
    """Cut a matrix of the caller's own; its blocks travel inside the tasks."""
    rows = check_features(X, normalize=normalize)
    labels = _no_labels(rows.n_rows) if y is None else check_labels(y, name="y")
    if rows.n_rows != labels.shape[0]:
        raise ValueError(
            f"X and y must have the same number of rows; got {rows.n_rows} and {labels.shape[0]}."
        )
    threads = sum(worker.threads for worker in run.workers())
    if partitions is None:
        partitions = min(PARTITIONS_PER_THREAD * threads, len(rows.data) // PARTITION_ENTRIES)
    count = max(1, min(partitions, rows.n_rows))
    bounds = np.linspace(0, rows.n_rows, count + 1).astype(int)
    return [
        partial(_send, run, rows, labels, begin, end)
        for begin, end in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True)
    ]


def _send(run: Run, rows: Rows, labels: sp.csr_array, begin: int, end: int) -> Any:
    return run.keep("rows", _slice(rows, labels, begin, end))


def _slice(rows: Rows, labels: sp.csr_array, begin: int, end: int) -> TrainingData:
    first, last = rows.indptr[begin], rows.indptr[end]
    chosen = Rows(
        rows.indptr[begin : end + 1] - first,
        rows.indices[first:last],
        rows.data[first:last],
        rows.n_features,
        rows.scale[begin:end],
    )
    return TrainingData(chosen, labels[begin:end], None)


def _read(path: str, normalize: bool) -> TrainingData:
    X, Y = load_xmlc(path)
    return TrainingData(check_features(X, normalize=normalize), check_labels(Y), None)


def _check(number: int, X: Any, y: Any, normalize: bool) -> TrainingData:
    """Check a partition as one machine checks everything."""
    X, y = _materialize(X, y)
    try:
        rows = check_features(X, normalize=normalize)
        labels = _no_labels(rows.n_rows) if y is None else check_labels(y, name="y")
        if rows.n_rows != labels.shape[0]:
            raise ValueError(
                f"X and y must have the same number of rows; got {rows.n_rows} and {labels.shape[0]}."
            )
    except ValueError as error:
        raise ValueError(f"partition {number}: {error}") from None
    return TrainingData(rows, labels, None)


def _materialize(X: Any, y: Any) -> tuple[Any, Any]:
    """Turn lists of rows, as bags have them, into matrices; tables of one column into label lists."""
    X, y = (list(one) if hasattr(one, "__next__") else one for one in (X, y))
    if isinstance(X, list | tuple):
        if y is None and len(X) and isinstance(X[0], tuple):
            X, y = zip(*X, strict=True)
            y = list(y)
        sparse = len(X) and sp.issparse(X[0])
        for row in X if sparse else ():
            check_structure(row, "X")
        X = sp.vstack([sp.csr_matrix(row) for row in X]) if sparse else np.asarray(list(X))
    if y is not None and not sp.issparse(y) and not isinstance(y, list | tuple | np.ndarray):
        y = list(y) if getattr(y, "ndim", 2) == 1 else np.asarray(y)
    return X, y


def _no_labels(n_rows: int) -> sp.csr_array:
    return check_labels(np.zeros((n_rows, 0), np.float32))
