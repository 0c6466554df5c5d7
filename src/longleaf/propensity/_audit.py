"""Estimating the constants A and B of the propensity model from an audit.

The problem: A and B are usually copied from other data sets. Given are some rows whose labels were reviewed
completely, as observed before and as complete after the review, and how often each label is observed in
training. Each true label ``j`` of an audited row was observed with probability ``p_j(A, B)``: two parameters,
fitted by maximum likelihood. With ``m_j`` true labels of which ``h_j`` were observed, and ``s_j = -logit
p_j``,

    log likelihood = sum_j (m_j - h_j) s_j - m_j log(1 + exp s_j),
    s_j = log(log N - 1) + A log((B + 1) / (N_j + B)).

Intervals come from resampling the audited rows as a whole, because the labels of one row are missed
together. Source of the model: Jain et al., KDD 2016; of the intervals: Efron and Tibshirani, 1993.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from scipy.optimize import minimize
from scipy.special import expit
from threadpoolctl import threadpool_limits

from longleaf._validation import (
    LabelsLike,
    check_count,
    check_labels,
    check_number,
    check_per_label,
    check_seed,
    is_label_lists,
)
from longleaf.propensity._model import Constants, inverse_propensity_from_counts

Floats = npt.NDArray[np.float64]

LIMITS_A, LIMITS_B = (0.0, 5.0), (1e-3, 1e3)
"""Ranges of A and B in the fit; published values are between 0.5 and 0.6, and 0.4 and 2.6."""
STARTS = [(0.5, log(b)) for b in (0.1, 1.0, 10.0, 100.0)]
PRECISE: Any = {"ftol": 1e-13, "gtol": 1e-9}


@dataclass(frozen=True, eq=False)
class Audit:
    """Rows whose labels were reviewed completely, and the training counts that propensities come from.

    Parameters
    ----------
    noted, complete : sparse or dense matrix [rows, labels], or list of label lists
        Labels of the audited rows before and after the review. Draw these rows at random, and not from the
        training rows: a label that is in training because of one of them would look well observed.
    counts : array [labels]
        Number of training rows in which each label is observed, as in ``label_counts_``. True labels must
        have at least two different counts other than 1, for which all A and B agree.
    n_rows : int
        Number of training rows, at least 3, as in ``n_rows_``.
    """

    noted: LabelsLike
    complete: LabelsLike
    counts: npt.ArrayLike
    n_rows: int


class CountBin(NamedTuple):
    """Labels with ``low`` to ``high`` training rows: shares observed in the audit, and fitted ones."""

    low: int
    high: int
    n_true: int
    noted_share: float
    fitted_share: float


@dataclass(frozen=True, eq=False)
class PropensityFit:
    """Estimates of A and B from an audit.

    Attributes
    ----------
    a, b : float
        The most likely constants.
    a_interval, b_interval : (float, float)
        Bootstrap intervals. A and B are correlated: both may be wide while `curve` is narrow.
    n_true : int
        True labels in the audited rows.
    noted_share : float
        The share of them that was observed.
    wrong : int
        Observed labels that the review removed. They say nothing about propensities and are ignored.
    table : tuple of CountBin
        Observed and fitted shares by training count. Where they differ, the model is wrong for the data.
    samples : float64 array [n_samples, 2]
        A and B of each bootstrap resample.
    n_rows : int
        Number of training rows.
    confidence : float
        Confidence level of the intervals.
    """

    a: float
    b: float
    a_interval: tuple[float, float]
    b_interval: tuple[float, float]
    n_true: int
    noted_share: float
    wrong: int
    table: tuple[CountBin, ...]
    samples: Floats
    n_rows: int
    confidence: float

    @property
    def constants(self) -> Constants:
        """A and B, for the parameter ``propensity``."""
        return Constants(self.a, self.b)

    @property
    def is_at_limit(self) -> bool:
        """Whether A or B is at the end of its range: the model does not describe these labels."""
        return any(
            not low * 1.01 < value < high * 0.99
            for value, (low, high) in ((self.a, LIMITS_A), (self.b, LIMITS_B))
        )

    def curve(self, counts: npt.ArrayLike) -> tuple[Floats, Floats, Floats]:
        """Return the inverse propensity for training counts, and the bounds of its interval.

        Parameters
        ----------
        counts : array [points]
            Numbers of training rows.

        Returns
        -------
        value, low, high : float64 array [points]
        """
        drawn = [inverse_propensity_from_counts(counts, self.n_rows, a, b) for a, b in self.samples]
        low, high = np.percentile(drawn, _ends(self.confidence), axis=0)
        return inverse_propensity_from_counts(counts, self.n_rows, self.a, self.b), low, high


def fit(
    audit: Audit, *, n_samples: int = 500, confidence: float = 0.95, random_state: int = 1
) -> PropensityFit:
    """Estimate A and B of the propensity model from rows whose labels were reviewed completely.

    Parameters
    ----------
    audit : Audit
        The audited rows and the training counts.
    n_samples : int
        Number of resamples of the audited rows for the intervals.
    confidence : float
        Confidence level of the intervals, above 0 and below 1.
    random_state : int
        The same seed gives the same intervals.

    Returns
    -------
    PropensityFit
        Pass its ``constants`` as ``propensity``.

    Examples
    --------
    >>> complete = [[0, 1], [0, 1], [0, 1], [0], [0], [0]]
    >>> noted = [[0, 1], [0], [0], [0], [0], []]
    >>> found = fit(Audit(noted, complete, counts=[50, 2], n_rows=100), n_samples=20)
    >>> found.n_true, round(found.noted_share, 2), found.wrong
    (9, 0.67, 0)
    """
    confidence = check_number(confidence, "confidence")
    if not 0 < confidence < 1:
        raise ValueError(f"confidence must be above 0 and below 1; got {confidence}.")
    n_samples = check_count(n_samples, "n_samples")
    n_rows, counts, noted, complete = _check_audit(audit)
    true_and_noted = sp.csr_array(noted.multiply(complete))
    # labels with the same count have the same propensity
    distinct, group_of = np.unique(counts, return_inverse=True)
    groups = sp.csr_array(
        (np.ones(len(counts)), (np.arange(len(counts)), group_of)), shape=(len(counts), len(distinct))
    )
    true, kept = complete @ groups, true_and_noted @ groups  # [audited rows, distinct counts]
    informative = true[:, np.flatnonzero(distinct != 1)]  # for a count of 1 all A and B agree
    if len(np.unique(informative.indices)) < 2:
        raise ValueError(
            "complete must have labels of at least two training counts other than 1: A and B "
            "describe how propensities rise with the count, which this audit does not show."
        )
    likelihood = _Likelihood(distinct, log(log(n_rows) - 1))

    n_true, n_kept = (np.asarray(matrix.sum(axis=0), np.float64).ravel() for matrix in (true, kept))
    random = np.random.default_rng(check_seed(random_state))
    samples = np.empty((n_samples, 2))
    with threadpool_limits(1):  # for two parameters, threads would only wait for each other
        best = likelihood.fit(n_true, n_kept, STARTS)
        # near the end of B's range the likelihood is flat, and no fit would move away from there alone
        starts = [(best.a, log(best.b)), *STARTS[1:3]]
        for sample in range(n_samples):
            times = _draw_rows(informative, random)
            samples[sample] = likelihood.fit(times @ true, times @ kept, starts)
    ends = np.percentile(samples, _ends(confidence), axis=0)
    return PropensityFit(
        a=best.a,
        b=best.b,
        a_interval=(float(ends[0, 0]), float(ends[1, 0])),
        b_interval=(float(ends[0, 1]), float(ends[1, 1])),
        n_true=int(n_true.sum()),
        noted_share=float(n_kept.sum() / n_true.sum()),
        wrong=int(noted.nnz - true_and_noted.nnz),
        table=tuple(_by_count(distinct, n_true, n_kept, n_rows, best)),
        samples=samples,
        n_rows=n_rows,
        confidence=confidence,
    )


@dataclass(frozen=True, eq=False)
class _Likelihood:
    """The likelihood of A and log B for labels grouped by training count; ``offset`` is log(log N - 1)."""

    counts: Floats
    offset: float

    def fit(self, true: Floats, kept: Floats, starts: list[tuple[float, float]]) -> Constants:
        """Return the most likely A and B, given true and observed labels per group [groups]."""
        limits = [LIMITS_A, tuple(np.log(LIMITS_B))]
        tries = [
            minimize(self._loss, start, (true, kept), "L-BFGS-B", jac=True, bounds=limits, options=PRECISE)
            for start in starts
        ]
        a, log_b = min(tries, key=lambda found: float(found.fun)).x
        return Constants(float(a), float(np.exp(log_b)))

    def _loss(self, parameters: Floats, true: Floats, kept: Floats) -> tuple[float, Floats]:
        a, b = parameters[0], np.exp(parameters[1])
        by_a = np.log((b + 1) / (self.counts + b))
        by_log_b = a * b * (1 / (b + 1) - 1 / (self.counts + b))
        odds_against = self.offset + a * by_a
        missed, total = true - kept, max(true.sum(), 1.0)
        likelihood = missed @ odds_against - true @ np.logaddexp(0, odds_against)
        slope = missed - true * expit(odds_against)
        return -float(likelihood) / total, -np.array([slope @ by_a, slope @ by_log_b]) / total


def _draw_rows(informative: sp.csr_array, random: np.random.Generator) -> npt.NDArray[np.int64]:
    """Resample the rows with replacement; return how often each was drawn [audited rows].

    A resample without labels of two counts does not determine A and B, and is drawn again.
    """
    n_rows = informative.shape[0]
    while True:
        times = np.bincount(random.integers(n_rows, size=n_rows), minlength=n_rows)
        if np.count_nonzero(times @ informative) > 1:
            return times


def _by_count(
    counts: Floats, true: Floats, kept: Floats, n_rows: int, constants: Constants
) -> list[CountBin]:
    """Compare observed and fitted shares of labels, in bins of counts 0, 1, 2 to 3, 4 to 7 and so on."""
    fitted = true / inverse_propensity_from_counts(counts, n_rows, *constants)
    number = np.where(counts < 1, 0, 1 + np.floor(np.log2(np.maximum(counts, 1)))).astype(np.int64)
    bins = []
    for one in np.unique(number[true > 0]):
        inside = number == one
        n_true = true[inside].sum()
        low, high = (0, 0) if one == 0 else (2 ** (one - 1), 2**one - 1)
        shares = kept[inside].sum() / n_true, fitted[inside].sum() / n_true
        bins.append(CountBin(int(low), int(high), int(n_true), float(shares[0]), float(shares[1])))
    return bins


def _check_audit(audit: Audit) -> tuple[int, Floats, sp.csr_array, sp.csr_array]:
    if not isinstance(audit, Audit):
        raise ValueError(f"audit must be an Audit; got {type(audit).__name__}.")
    n_rows = check_count(audit.n_rows, "n_rows", low=3)  # the model needs more than e rows
    counts = check_per_label(audit.counts, None, "counts")
    if counts.max(initial=0.0) > n_rows:
        raise ValueError(f"counts must be at most the {n_rows} rows; got {counts.max():g}.")
    noted = _check_audited(audit.noted, len(counts), "noted")
    complete = _check_audited(audit.complete, len(counts), "complete")
    if noted.shape[0] != complete.shape[0]:
        raise ValueError(
            f"noted and complete must have the same rows; got {noted.shape[0]} and {complete.shape[0]}."
        )
    if not complete.nnz:
        raise ValueError("complete must have at least one label; got none.")
    return n_rows, counts, noted, complete


def _check_audited(Y: Any, n_labels: int, name: str) -> sp.csr_array:
    checked = check_labels(Y, n_labels if is_label_lists(Y) else None, name=name)
    if checked.shape[1] != n_labels:
        raise ValueError(f"{name} must have {n_labels} labels, as counts has; got {checked.shape[1]}.")
    return checked


def _ends(confidence: float) -> list[float]:
    outside = 50.0 * (1.0 - confidence)
    return [outside, 100.0 - outside]
