"""Paired bootstrap intervals for the difference of two rankings of the same rows.

The problem: A reaches 61.2 and B 61.5 on the same rows; would B also win on other rows of the same kind?
Given are the true labels and both rankings. Rows are repeatedly resampled with replacement, as many as there
are, and both rankings are evaluated on the same resample: the middle 95 % of the differences are the
interval. The resampling is paired, so what makes a row easy or hard for both cancels out. Every metric here
is a ratio of two sums over rows, so a resample is one product of row counts with a matrix. Source: Efron and
Tibshirani, An Introduction to the Bootstrap, 1993 (percentile intervals); Koehn, EMNLP 2004 (paired, for two
systems).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from longleaf._validation import LabelsLike, check_count, check_number, check_per_label
from longleaf.metrics._frequency import BINS, frequency_bins
from longleaf.metrics._hits import Floats, Hits, Ints, check_k, check_problem, find_hits, first
from longleaf.metrics._ranking import best_gains, f1_curves, ndcg_curves, precision_curves, scored_hits


@dataclass(frozen=True)
class Difference:
    """The values of a metric for two rankings, in percent.

    Attributes
    ----------
    a, b : float
        The metric of each.
    difference : float
        ``b - a``.
    low, high : float
        The interval of the difference.
    """

    a: float
    b: float
    difference: float
    low: float
    high: float

    @property
    def is_clear(self) -> bool:
        """Whether the interval excludes 0: the difference is unlikely to change sign on other rows."""
        return self.low > 0 or self.high < 0


class _Terms(NamedTuple):
    """The terms of a metric [rows]: numerators of both rankings, and their common denominator."""

    a: Floats
    b: Floats
    whole: Floats


class _Ranking(NamedTuple):
    labels: Ints
    hits: Hits


def compare(
    Y_true: LabelsLike,
    top_a: Any,
    top_b: Any,
    inverse_propensity: npt.ArrayLike | None = None,
    counts: npt.ArrayLike | None = None,
    k: int | Iterable[int] = (1, 3, 5),
    *,
    n_samples: int = 1000,
    confidence: float = 0.95,
    random_state: int = 1,
) -> dict[str, Difference]:
    """Compare two rankings of the same rows, with paired bootstrap intervals of their difference.

    Parameters
    ----------
    Y_true, inverse_propensity, k
        As in `evaluate`.
    top_a, top_b : TopK, or int array [rows, width]
        The two rankings, as in `evaluate`.
    counts : array [labels], optional
        Number of training rows with each label, for recall by frequency, as in `frequency_table`.
    n_samples : int
        Number of bootstrap resamples.
    confidence : float
        Confidence level of the intervals, above 0 and below 1.
    random_state : int
        The same seed gives the same intervals.

    Returns
    -------
    dict of str to Difference
        ``p@k``, ``f1@k`` and ``ndcg@k`` for every k; with ``inverse_propensity`` ``psp@k``, normalised; with
        ``counts`` ``head_recall@k``, ``torso_recall@k``, ``tail_recall@k`` and ``unseen_recall@k`` for the
        largest k.

    Examples
    --------
    >>> found = compare([[0], [1], [2], [1]], [[0], [0], [0], [0]], [[0], [1], [2], [0]], k=1)
    >>> found["p@1"].a, found["p@1"].b, found["p@1"].difference
    (25.0, 75.0, 50.0)
    """
    given = inverse_propensity if inverse_propensity is not None else counts
    n_labels = None if given is None else np.size(given)
    places = check_k(k)
    truth, rankings = _check_both(Y_true, (top_a, top_b), n_labels, max(places))
    terms = _plain_terms(truth, rankings, places)
    if inverse_propensity is not None:
        gains = check_per_label(inverse_propensity, truth.shape[1], "inverse_propensity")
        terms |= _scored_terms(truth, rankings, places, gains)
    if counts is not None:
        bins = frequency_bins(check_per_label(counts, truth.shape[1], "counts"))
        terms |= _bin_terms(truth, rankings, bins, max(places))
    n_samples = check_count(n_samples, "n_samples")
    if not 0 < check_number(confidence, "confidence") < 1:
        raise ValueError(f"confidence must be above 0 and below 1; got {confidence}.")
    return _differences(terms, n_samples, confidence, np.random.RandomState(random_state))


def _check_both(
    Y_true: LabelsLike, tops: tuple[Any, Any], n_labels: int | None, width: int
) -> tuple[sp.csr_array, list[_Ranking]]:
    problems = [check_problem(Y_true, top, n_labels) for top in tops]
    truth = max((truth for truth, _ in problems), key=lambda one: int(one.shape[1]))
    cut = [first(labels, width) for _, labels in problems]
    return truth, [_Ranking(labels, find_hits(truth, labels)) for labels in cut]


def _plain_terms(truth: sp.csr_array, rankings: list[_Ranking], places: list[int]) -> dict[str, _Terms]:
    n_true = np.diff(truth.indptr)
    ones = np.ones(truth.shape[0])
    hits = [one.hits.astype(np.float64) for one in rankings]
    precision = [precision_curves(one) for one in hits]
    ndcg = [ndcg_curves(one, n_true) for one in hits]
    returned = [(one.labels >= 0).cumsum(axis=1) for one in rankings]
    f1 = [f1_curves(one.cumsum(axis=1), own, n_true) for one, own in zip(hits, returned, strict=True)]
    terms: dict[str, _Terms] = {}
    for name, (a, b) in (("p", precision), ("f1", f1), ("ndcg", ndcg)):
        terms |= {f"{name}@{at}": _Terms(a[:, at - 1], b[:, at - 1], ones) for at in places}
    return terms


def _scored_terms(
    truth: sp.csr_array, rankings: list[_Ranking], places: list[int], gains: Floats
) -> dict[str, _Terms]:
    a, b = (precision_curves(scored_hits(one.hits, one.labels, gains)) for one in rankings)
    best = precision_curves(best_gains(truth, gains, max(places)))
    return {f"psp@{at}": _Terms(a[:, at - 1], b[:, at - 1], best[:, at - 1]) for at in places}


def _bin_terms(truth: sp.csr_array, rankings: list[_Ranking], bins: Ints, k: int) -> dict[str, _Terms]:
    """Return recall of each bin of labels: hits on its labels over their true assignments."""
    n_rows = truth.shape[0]
    row_of = np.repeat(np.arange(n_rows), np.diff(truth.indptr))
    padded = np.append(bins, -1)  # the bin of pads
    terms = {}
    for number, name in enumerate(BINS):
        true = np.bincount(row_of[bins[truth.indices] == number], minlength=n_rows).astype(np.float64)
        a, b = ((one.hits & (padded[one.labels] == number)).sum(axis=1) * 1.0 for one in rankings)
        terms[f"{name}_recall@{k}"] = _Terms(a, b, true)
    return terms


def _differences(
    terms: dict[str, _Terms], n_samples: int, confidence: float, random: np.random.RandomState
) -> dict[str, Difference]:
    sums = np.stack([column for term in terms.values() for column in term], axis=1)
    n_rows = len(sums)
    drawn = np.empty((n_samples, sums.shape[1]))
    for sample in range(n_samples):
        times = np.bincount(random.randint(n_rows, size=n_rows), minlength=n_rows)
        drawn[sample] = times.astype(np.float64) @ sums
    a, b = _percentages(sums.sum(axis=0)[None])
    resampled_a, resampled_b = _percentages(drawn)
    outside = 50.0 * (1.0 - confidence)
    low, high = np.percentile(resampled_b - resampled_a, [outside, 100.0 - outside], axis=0)
    columns = (a[0], b[0], b[0] - a[0], low, high)
    return {name: Difference(*(float(column[i]) for column in columns)) for i, name in enumerate(terms)}


def _percentages(sums: Floats) -> tuple[Floats, Floats]:
    """Turn sums of terms [resamples, 3 * metrics] into the metrics of A and B [resamples, metrics]."""
    a, b, whole = (sums[:, place::3] for place in range(3))
    safe = np.where(whole > 0, whole, 1.0)  # 0 / 0 is 0, as in evaluate
    return 100.0 * a / safe, 100.0 * b / safe
