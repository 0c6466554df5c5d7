"""Evaluation over partitions of rows: metrics are made of sums, which add up."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import scipy.sparse as sp

from longleaf.distributed._predict import features, in_order, keep_model, open_model
from longleaf.metrics._calibration import probabilities_of
from longleaf.metrics._hits import check_k, check_problem
from longleaf.metrics._sums import RankingSums
from longleaf.training.cluster.run import Run
from longleaf.training.cluster.sources import loaders
from longleaf.training.data import TrainingData


def evaluate(
    model: Any,
    X: Any,
    y: Any = None,
    k: int | Iterable[int] = (1, 3, 5),
    *,
    propensity: tuple[float, float] | None = None,
    normalize: bool = True,
    client: Any = None,
    partitions: int | None = None,
    timeout: float | None = None,
    **options: Any,
) -> dict[str, float]:
    """Judge a model on a Dask cluster.

    The figures are those of `longleaf.metrics.evaluate` on one machine, with the inverse propensities of the
    model's own training labels, up to the rounding of float64 sums taken in another order.

    Parameters
    ----------
    model : fitted PLT or BR, or path of a saved one
        As in `longleaf.distributed.top_k`.
    X, y : rows and their true labels
        As in `longleaf.distributed.fit`; files hold both.
    k : int or ints
        How many predictions to judge.
    propensity : (A, B), optional
        Constants of the propensity model, for the metrics and for ``tail``; the model's own by default.
    normalize : bool
        As in `longleaf.metrics.evaluate`.
    client, partitions, timeout
        As in `longleaf.distributed.fit`.
    **options
        As in `longleaf.PLT.top_k`: ``tail``, ``gain``, ``search``, ``beam``, …

    Returns
    -------
    dict of str to float
        In percent.
    """
    places = check_k(k)
    with Run(client, timeout) as run:
        kept, scaled = keep_model(run, model, X)
        starts = loaders(run, X, y, scaled, partitions)
        given = {"propensity": propensity} | options
        judged = in_order(
            run, starts, lambda data: run.submit("judge", _judge, kept, data, places, normalize, given)
        )
        total: RankingSums | None = None
        for one in judged:
            if one is not None:
                total = one if total is None else total + one
    if total is None:
        raise ValueError("y must have at least one row; got 0.")
    return total.figures()


def _judge(
    model: Any, data: TrainingData, places: Sequence[int], normalize: bool, options: dict[str, Any]
) -> RankingSums | None:
    """Return the sums over one partition, None if it has no rows."""
    ranker = open_model(model)
    if not data.rows.n_rows:
        return None
    width = max(data.labels.shape[1], ranker.n_labels_)
    top = ranker.top_k(features(data), max(places), **({"n_jobs": 1} | options))
    labels = data.labels
    whole = sp.csr_array((labels.data, labels.indices, labels.indptr), shape=(labels.shape[0], width))
    truth, ranked = check_problem(whole, top, None)
    weights = ranker.inverse_propensity(options["propensity"], n_labels=width)
    return RankingSums.of(truth, ranked, places, weights, normalize, probabilities_of(top))
