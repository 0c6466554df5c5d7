"""Training on a cluster, as people call it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from longleaf.estimator import LabelEstimator

Model = TypeVar("Model", bound=LabelEstimator)


def fit(
    model: Model,
    X: Any,
    y: Any = None,
    sample_weight: Any = None,
    *,
    client: Any = None,
    partitions: int | None = None,
    progress: Callable[[float], None] | None = None,
    timeout: float | None = None,
) -> Model:
    """Train a model on a Dask cluster; it gets the same bits as on one machine.

    Parameters
    ----------
    model : PLT or BR
        Its ``n_jobs`` does not matter: a task has one thread, a worker as many tasks as it has threads.
    X : matrix, Dask array, bag or dataframe, list of blocks, or files
        Rows in partitions. A matrix is cut here and sent out. Blocks may be sparse or dense, delayed or
        futures. A bag's elements are rows or, without ``y``, pairs of a row and its list of labels. Files are
        XMLC files that every worker can read: a path, a glob pattern or a list of paths.
    y : labels in the same partitions, optional
        In each, all that `longleaf.PLT.fit` takes. Left out with files and with a bag of pairs.
    sample_weight : array or Dask array [rows], optional
        What an error on each row costs, as a multiple of C.
    client : dask.distributed.Client, optional
        The one that was opened last, by default.
    partitions : int, optional
        Into how many partitions a matrix is cut; by default, two for every thread of the cluster, but fewer
        if they would have less than a million entries.
    progress : callable, optional
        Called now and then with the share of the training that is done.
    timeout : float, optional
        Seconds after which everything is cancelled and TimeoutError raised.

    Returns
    -------
    model
        The one given, fitted.

    Raises
    ------
    ClusterError
        If no worker has the memory for a task, or workers die again and again in the same task.
    """
    if not isinstance(model, LabelEstimator):
        raise ValueError(f"model must be a PLT or BR to be trained on Dask; got {type(model).__name__}.")
    options: dict[str, Any] = {"partitions": partitions, "progress": progress, "timeout": timeout}
    return model._fit_on_cluster(X, y, sample_weight, client=client, **options)
