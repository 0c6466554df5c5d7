"""Training on a cluster: count, cluster, cut into parts, train the parts, join."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
import scipy.sparse as sp
from dask.base import is_dask_collection
from sklearn.utils.validation import validate_data

from longleaf import __version__
from longleaf._base.estimator import LabelEstimator
from longleaf._fitting.trees import check_row_weight
from longleaf._validation import Rows, check_count, check_labels
from longleaf.distributed import _blocks
from longleaf.distributed._run import Run
from longleaf.distributed._sources import column_names, loaders
from longleaf.distributed._train import Problem, count, train
from longleaf.distributed._trees import build_trees
from longleaf.linear import SolverSettings, link_of
from longleaf.propensity import check_constants

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
        The one that was opened last, if left out.
    partitions : int, optional
        Into how many partitions a matrix is cut; if left out, two for every thread of the cluster, but fewer
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
        If no worker has the memory for a part, or workers die again and again in the same task.
    """
    settings = _check_model(model)
    with Run(client, timeout) as run:
        data = [start() for start in loaders(run, X, y, model.normalize, partitions)]
        held = run.gather([run.submit("sizes", _blocks.sizes, one) for one in data])
        total = check_sizes(held)
        data = _add_weights(run, data, held, sample_weight)
        counted = (("labels", _blocks.count_labels), ("mass", _blocks.weigh_features))
        counts, mass = run.gather([count(run, name, function, data) for name, function in counted])
        _note_sizes(model, X, total, counts)
        model.feature_mass_ = mass
        settings = model._weigh_labels(settings)
        seeds = model._draw_seeds()
        clusters = model._cluster_settings()
        if clusters is None:
            trees = list(model._build_trees(*_nothing(), seeds, 1))  # only clusters come from rows
        else:
            trees = build_trees(run, data, total, counts, clusters, seeds)
        trained = train(run, Problem(data, total, settings, trees, seeds), progress)
    model.trees_, model.weights_ = trees, [weights for weights, _ in trained]
    model.training_ = [facts for _, facts in trained]
    model._prepare()
    return model


def check_sizes(held: list[_blocks.Sizes]) -> _blocks.Sizes:
    """Give the sizes of all partitions together, which must agree in features."""
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
    return _blocks.Sizes(rows, features, max(one.labels for one in held), entries, labels)


def _check_model(model: LabelEstimator) -> SolverSettings:
    """Check what training checks before it looks at data."""
    if not isinstance(model, LabelEstimator) or not model.can_resume:
        raise ValueError(f"model must be a PLT or BR to be trained on Dask; got {type(model).__name__}.")
    check_count(model.k, "k")
    link_of(model.loss, model.hinge_power)
    check_constants(model.propensity)
    check_count(model.n_trees, "n_trees")
    return model._solver_settings()


def _add_weights(run: Run, data: list[Any], held: list[_blocks.Sizes], weight: Any) -> list[Any]:
    if is_dask_collection(weight):
        weight = np.concatenate([np.ravel(part) for part in run.gather(run.compute(weight.to_delayed()))])
    checked = check_row_weight(weight, sum(one.rows for one in held))
    if checked is None:
        return data
    bounds = np.append(0, np.cumsum([one.rows for one in held])).tolist()
    return [
        run.submit("weigh", _blocks.with_weight, one, checked[begin:end])
        for one, (begin, end) in zip(data, pairwise(bounds), strict=True)
    ]


def _note_sizes(model: LabelEstimator, X: Any, total: _blocks.Sizes, counts: _blocks.Ints) -> None:
    """Check and note what fitting on one machine notes."""
    if total.features == 0:
        raise ValueError("X must have features; got 0.")
    if total.rows == 0 or total.label_entries == 0:
        raise ValueError(f"y must have at least one label to train on; got {total.rows} rows with none.")
    for name in ("_prepared", "trees_", "weights_", "feature_names_in_"):
        model.__dict__.pop(name, None)
    table = column_names(X)
    if table is not None:
        validate_data(model, table, skip_check_array=True)
    model.n_features_in_, model.n_rows_, model.n_labels_ = total.features, total.rows, total.labels
    model.label_counts_ = counts
    model.origin_ = {"longleaf": __version__, "settings": model._plain_params()}


def _nothing() -> tuple[Rows, sp.csr_array]:
    empty = np.zeros(0, np.float32)
    rows = Rows(np.zeros(1, np.int64), np.zeros(0, np.int32), empty, 0, empty)
    return rows, check_labels([])
