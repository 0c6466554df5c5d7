"""Prediction over partitions of rows."""

from __future__ import annotations

import copy
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import Any

import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted, validate_data

from longleaf.estimator import LabelEstimator
from longleaf.models import load
from longleaf.search.top_k import TopK
from longleaf.training.cluster.run import Run
from longleaf.training.cluster.sources import column_names, loaders
from longleaf.training.data import TrainingData

IN_FLIGHT = 2
"""Partitions per thread that are loaded ahead; the others wait, as they need not fit in memory at once."""


def top_k(model: Any, X: Any, k: int | None = None, **options: Any) -> TopK:
    """Find the best k labels of each row, as `longleaf.PLT.top_k` does, on a Dask cluster.

    Parameters
    ----------
    model : fitted PLT or BR, or path of a saved one
        A path must be readable by every worker, which then maps the file instead of getting a copy.
    X : matrix, Dask array, bag or dataframe, list of blocks, or files
        As in `longleaf.distributed.fit`.
    k, **options
        As in `iter_top_k`.

    Returns
    -------
    TopK
        Of all rows, in their order.
    """
    found = list(iter_top_k(model, X, k, **options))
    return TopK.concatenate(found)


def iter_top_k(
    model: Any,
    X: Any,
    k: int | None = None,
    *,
    client: Any = None,
    partitions: int | None = None,
    timeout: float | None = None,
    **options: Any,
) -> Iterator[TopK]:
    """Return the best k labels of the rows of one partition after the other, in the order of the rows.

    Parameters
    ----------
    model, X
        As in `top_k`.
    k : int, optional
        How many labels; the model's own ``k`` by default.
    client, partitions, timeout
        As in `longleaf.distributed.fit`.
    **options
        As in `longleaf.PLT.top_k`: ``tail``, ``gain``, ``propensity``, ``search``, ``beam``, …

    Yields
    ------
    TopK
    """
    with Run(client, timeout) as run:
        kept, normalize = keep_model(run, model, X)
        starts = loaders(run, X, None, normalize, partitions)
        yield from in_order(run, starts, lambda data: run.submit("ask", _ask, kept, data, k, options))


def in_order(run: Run, starts: Iterable[Callable[[], Any]], then: Callable[[Any], Any]) -> Iterator[Any]:
    """Load partitions, a few ahead, and yield what ``then`` makes of each, in their order."""
    ahead = IN_FLIGHT * max(1, sum(worker.threads for worker in run.workers()))
    pending: deque[Any] = deque()
    for start in starts:
        pending.append(then(start()))
        if len(pending) > ahead:
            yield run.gather([pending.popleft()])[0]
    while pending:
        yield run.gather([pending.popleft()])[0]


def keep_model(run: Run, model: Any, X: Any) -> tuple[Any, bool]:
    """Return what stands for the model in tasks, and whether it scales rows."""
    if isinstance(model, str | os.PathLike):
        path = os.path.abspath(os.fspath(model))
        return path, _plain_model(load(path)).normalize
    plain = _plain_model(model)
    table = column_names(X)
    if table is not None:
        validate_data(model, table, reset=False, skip_check_array=True)
    return run.keep("model", plain), plain.normalize


def open_model(model: Any) -> LabelEstimator:
    """Return the model that a task was told of."""
    return _load(model) if isinstance(model, str) else model


def features(data: TrainingData) -> sp.csr_array:
    """Return the rows of a partition as a matrix."""
    rows = data.rows
    return sp.csr_array((rows.data, rows.indices, rows.indptr), shape=(rows.n_rows, rows.n_features))


def _plain_model(model: Any) -> LabelEstimator:
    """Return a copy without column names, which partitions lack; the caller has checked them."""
    if not isinstance(model, LabelEstimator):
        raise ValueError(f"model must be a PLT or BR, or the path of one; got {type(model).__name__}.")
    check_is_fitted(model)
    plain = copy.copy(model)
    plain.__dict__.pop("feature_names_in_", None)
    return plain


@lru_cache(maxsize=1)
def _load(path: str) -> LabelEstimator:
    return _plain_model(load(path))


def _ask(model: Any, data: TrainingData, k: int | None, options: dict[str, Any]) -> TopK:
    return open_model(model).top_k(features(data), k, **({"n_jobs": 1} | options))
