"""Predictions for a batch of rows that make a measure of all of them large."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from longleaf._validation import check_choice, check_count, check_number, check_seed
from longleaf.estimator import LabelEstimator
from longleaf.objectives.coordinate import Ascent
from longleaf.objectives.measures import MEASURES
from longleaf.objectives.mixture import Mixture, frank_wolfe, one_step
from longleaf.objectives.rows import Counts, RowSet
from longleaf.search.top_k import TopK

METHODS = ("coordinate", "frank-wolfe")


@dataclass(frozen=True, eq=False)
class Optimized:
    """Predictions for a batch of rows, and what they are worth.

    Attributes
    ----------
    top : TopK
        k labels for each row; the scores are what each adds to the measure's sum over labels (of a mixture:
        its worth by the utility drawn), the best first.
    value : float
        The measure of ``top`` that is expected under the model, in percent: the mean over all labels.
    history : tuple of float
        The same of the plain top k, then after each search of all rows; of Frank-Wolfe, of the mixture.
    mixture : Mixture or None
        Of Frank-Wolfe, the utilities to draw from, also for rows that come later.
    """

    top: TopK
    value: float
    history: tuple[float, ...] = field(repr=False)
    mixture: Mixture | None = None


def optimize(
    model: LabelEstimator,
    X: Any,
    k: int | None = None,
    *,
    measure: str = "macro_f1",
    method: str = "coordinate",
    positives: npt.ArrayLike | None = None,
    max_iter: int = 30,
    tol: float = 1e-4,
    random_state: int | None = 1,
    n_jobs: int | None = None,
) -> Optimized:
    """Predict k labels for each row of a batch such that a measure of all predictions is as large as can be.

    The best labels of a row depend on what the other rows get: rare labels count as much as frequent ones,
    and a label that is predicted too often loses precision. The model is not trained again, and the labels of
    the rows are not needed: the measure is the one expected under the model's probabilities, which should be
    calibrated, as those of refined labels are.

    Parameters
    ----------
    model : PLT or BR
    X : sparse or dense matrix [rows, features]
        The rows that are judged together.
    k : int, optional
        How many labels for each row; the estimator's own ``k`` by default.
    measure : {"macro_f1", "macro_precision", "macro_recall", "macro_balanced_accuracy", "coverage"}
        As `longleaf.metrics.evaluate` defines them; balanced accuracy is the mean of a label's recall and
        that of the rows without it.
    method : {"coordinate", "frank-wolfe"}
        "coordinate" replaces the predictions of one row after another. "frank-wolfe" makes a `Mixture` of
        utilities, which also serves rows that come later, one by one; not for coverage, and for precision it
        may end early.
    positives : array [labels], optional
        The share of rows, from 0 to 1, that is expected to have each label. By default it is the mean of the
        model's probabilities of these rows.
    max_iter : int
        At most so many searches of all rows.
    tol : float
        Stop when an iteration raises the measure by less than this share of it.
    random_state : int, optional
        Seeds the order of the rows, and the draws of a mixture.
    n_jobs : int, optional
        Threads; the estimator's own by default.

    Returns
    -------
    Optimized

    Examples
    --------
    >>> import longleaf as ll
    >>> X, Y = [[1.0, 0.0], [0.9, 0.1], [0.0, 1.0]], [[0], [0, 1], [1]]
    >>> model = ll.PLT(n_trees=1, random_state=1).fit(X, Y)
    >>> found = ll.optimize(model, X, k=1, measure="coverage")
    >>> found.value >= found.history[0]
    True
    """
    if not isinstance(model, LabelEstimator):
        raise TypeError(f"model must be a PLT or BR; got {type(model).__name__}.")
    check_is_fitted(model)
    check_choice(measure, "measure", MEASURES)
    check_choice(method, "method", METHODS)
    chosen = MEASURES[measure]
    if method == "frank-wolfe" and chosen.slope is None:
        raise ValueError(f"method must be coordinate for {measure}, which is no function of expected counts.")
    asked = check_count(model.k if k is None else k, "k")
    max_iter, tol = check_count(max_iter, "max_iter"), check_number(tol, "tol", low=0)
    seed = check_seed(random_state)
    rows = RowSet.of(model, X, n_jobs)
    if not rows.n_rows:
        raise ValueError("X must have at least one row; got 0.")
    k, mixture = min(asked, rows.n_labels), None
    start, plain = rows.survey(k, chosen, positives)
    if method == "frank-wolfe":
        mixture, history = frank_wolfe(rows, k, plain, max_iter=max_iter, tol=tol)
        top = mixture.predict(rows, k, seed)
        value = Counts.of(chosen, top, plain.positives).value
    else:
        top, history = _ascend(rows, start, plain, seed, max_iter=max_iter, tol=tol)
        value = history[-1]
    percent = tuple(100 * one for one in history)
    return Optimized(_padded(top, asked), 100 * value, percent, mixture)


def _ascend(
    rows: RowSet, start: TopK, plain: Counts, seed: int | None, *, max_iter: int, tol: float
) -> tuple[TopK, tuple[float, ...]]:
    """Return predictions, and the measure of the plain top k and after each search.

    They begin with one step of Frank-Wolfe, after which most rows are about right: row by row, a label that
    is predicted much too often would stay, since no row gains by giving it up alone. Coverage begins with
    nothing.
    """
    random, history, value = np.random.RandomState(seed), [plain.value], -np.inf
    if plain.measure.slope is None:
        start = replace(start, labels=np.full_like(start.labels, -1))
    else:
        start = one_step(rows, start, plain, random)
    ascent = Ascent(rows, start, plain.measure, plain.positives)
    for _ in range(max_iter):
        order, before = random.permutation(rows.n_rows), value
        changed = ascent.search(order)
        ascent.settle(order)
        value = ascent.counts.value
        history.append(value)
        if not changed or value - before <= tol * value:
            break
    return ascent.top(), tuple(history)


def _padded(top: TopK, k: int) -> TopK:
    """Pad to k columns, where the model has fewer labels."""
    missing = ((0, 0), (0, k - top.labels.shape[1]))
    labels = np.pad(top.labels, missing, constant_values=-1)
    return TopK(labels, np.pad(top.scores, missing), np.pad(top.probabilities, missing), top.evaluations)
