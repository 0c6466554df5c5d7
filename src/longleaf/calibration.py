"""What trees and refined classifiers say of a label, made one probability that can be believed.

With ``P``, the mean probability over the trees, where one that does not nominate a label counts 0, and ``s``,
the margin of its refined classifier, the log-odds of a label are

    z = slope * e(log-odds of P) + offset - refined * max(0, 1 - s)^2,

and its probability is ``sigmoid(g(z))``. The curve ``e`` (`EVIDENCE`) is fixed: where the trees are surer
than odds of e^2, they count no more, because the refined classifier tells better which of several good labels
is the best. ``slope``, ``offset`` and ``refined`` are fitted by logistic regression on rows that training did
not see, on the labels that the trees rank best there. The curve ``g`` rises and is piecewise linear; it is
fitted on the labels that ``z`` ranks best, since those are the ones that anybody sees. All labels share these
numbers, so that without gains ``z`` alone decides the order.

A model that is not refined has no ``s``, and ``e`` changes nothing there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from threadpoolctl import threadpool_limits

from longleaf._validation import ModelError, carries
from longleaf.io._schema import check_arrays
from longleaf.search.candidates import Candidates
from longleaf.search.score_map import IDENTITY, LIMIT, NOMINEES, ScoreMap, check_curve

Doubles = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

CANDIDATES = 30
"""The best labels of each row by the trees, which the regression is fitted on."""
SHOWN = 10
"""The best labels of each row by the regression, which the final curve is fitted on."""
SUREST = 2.0
EVIDENCE = np.array([[-LIMIT, SUREST, LIMIT], [-LIMIT, SUREST, SUREST]])
MOST_PIECES, PAIRS_PER_PIECE = 8, 200
LEAST_SLOPE, MOST_SLOPE = 0.05, 20.0
BENDING, LEANING = 1.0, 0.01
"""What it costs the final curve to change its slope, and to have one other than 1."""
C = 1.0


@dataclass(frozen=True, eq=False)
class Calibration:
    """What all labels share: the numbers and curves above.

    Attributes
    ----------
    slope, offset, refined : float
    evidence, result : float64 arrays [2, points]
        The curves, as `longleaf.search.ScoreMap` has them.
    nominees : int
        How many labels each tree nominates for a row, if labels are refined.
    """

    slope: float
    offset: float
    refined: float
    evidence: Doubles
    result: Doubles
    nominees: int = NOMINEES

    def score_map(self, n_labels: int) -> ScoreMap:
        """Return the map of so many labels."""
        ones = np.ones(n_labels, np.float32)
        return ScoreMap(
            np.float32(self.slope) * ones,
            np.float32(self.offset) * ones,
            self.refined,
            self.nominees,
            self.evidence,
            self.result,
        )

    def state(self) -> dict[str, Doubles]:
        """Return plain arrays."""
        numbers = np.array([self.slope, self.offset, self.refined, float(self.nominees)])
        return {"numbers": numbers, "evidence": self.evidence.ravel(), "result": self.result.ravel()}

    @classmethod
    def from_state(cls, arrays: Mapping[str, npt.NDArray[Any]], place: str) -> Calibration:
        """Return what `state` was called on; ``place`` is how error messages begin."""
        check_arrays(arrays, dict.fromkeys(("numbers", "evidence", "result"), "float64"), place)
        numbers, evidence, result = arrays["numbers"], arrays["evidence"], arrays["result"]
        if len(numbers) != len(("slope", "offset", "refined", "nominees")):
            raise ModelError(f"{place}numbers.npy must have 4 numbers; got {len(numbers)}.")
        slope, offset, refined, nominees = numbers.tolist()
        if nominees != int(nominees if np.isfinite(nominees) else 0):
            raise ModelError(f"{place}numbers.npy must end with a whole number; got {nominees}.")
        try:
            evidence, result = (
                check_curve(evidence, "evidence", may_be_level=True),
                check_curve(result, "result"),
            )
            count = int(nominees) if np.isfinite(nominees) else 0
            found = cls(slope, offset, refined, evidence, result, count)
            found.score_map(1)
        except ValueError as error:
            raise ModelError(f"{place}numbers.npy and the curves must be possible: {error}") from None
        return found


def fit_calibration(found: Candidates, Y: sp.csr_array) -> Calibration | None:
    """Fit the numbers and the curve; return None where the rows teach nothing.

    Parameters
    ----------
    found : Candidates
        Of rows that the model was not trained on.
    Y : matrix [rows, labels]
        The labels of these rows.
    """
    truth = carries(Y, found.rows, found.labels)
    if truth.all() or not truth.any():
        return None
    curve = EVIDENCE if found.refined else IDENTITY
    columns = np.column_stack([evidence_of_trees(found.probability, curve), found.log_h])
    fitted = first(found.rows, found.probability, CANDIDATES)
    offset, slope, refined = regression(columns[fitted], truth[fitted]).tolist()
    slope, refined = max(slope, LEAST_SLOPE), max(refined, 0.0)
    z = offset + slope * columns[:, 0] + refined * columns[:, 1]
    shown = first(found.rows, z, SHOWN)
    return Calibration(slope, offset, refined, curve, fit_curve(z[shown], truth[shown]))


def first(rows: npt.NDArray[np.int64], value: npt.NDArray[Any], k: int) -> Bools:
    """Return which pairs are among the k largest of their row; pairs come row by row."""
    order = np.lexsort((-value, rows))
    begins = np.searchsorted(rows, rows)  # pairs of a row stay together
    chosen = np.zeros(len(rows), bool)
    chosen[order[np.arange(len(rows)) - begins < k]] = True
    return chosen


def log_odds(probability: npt.NDArray[Any]) -> Doubles:
    """Return the log-odds of probabilities, between -LIMIT and LIMIT."""
    p = np.clip(probability.astype(np.float64), 1e-6, 1 - 1e-6)
    odds: Doubles = np.clip(np.log(p) - np.log1p(-p), -LIMIT, LIMIT)
    return odds


def evidence_of_trees(probability: npt.NDArray[Any], curve: Doubles) -> Doubles:
    """Return what the log-odds of probabilities count."""
    return np.asarray(np.interp(log_odds(probability), *curve), np.float64)


def regression(columns: Doubles, truth: Bools) -> Doubles:
    """Return the weights of a logistic regression, the constant first.

    Where there is nothing to learn, they are those of the first column, which is evidence, as it is.
    """
    from sklearn.linear_model import LogisticRegression  # as slow to import as all of longleaf

    weights = np.zeros(1 + columns.shape[1])
    weights[1] = 1.0
    if truth.all() or not truth.any():
        return weights
    mean, deviation = columns.mean(axis=0), columns.std(axis=0)
    varies = deviation > 1e-9
    if not varies.any():
        return weights
    scaled = (columns[:, varies] - mean[varies]) / deviation[varies]
    with threadpool_limits(1):  # sums must not depend on the number of threads
        fitted = LogisticRegression(C=C, max_iter=1000).fit(scaled, truth)
    weights[1:] = 0.0
    weights[1:][varies] = fitted.coef_[0] / deviation[varies]
    weights[0] = fitted.intercept_[0] - weights[1:] @ mean
    return rounded(weights)


def fit_curve(z: Doubles, truth: Bools) -> Doubles:
    """Return the points of the rising curve of log-odds that is the most likely one, [2, points].

    It bends at quantiles of ``z``; its slopes may differ from each other and from 1 at a small cost, so that
    little evidence changes little. Beyond the smallest and the largest ``z`` they are 1.
    """
    from scipy.optimize import minimize  # slow to import, and needed in training alone
    from scipy.special import expit

    if truth.all() or not truth.any():
        return IDENTITY
    pieces = int(np.clip(len(z) // PAIRS_PER_PIECE, 1, MOST_PIECES))
    bends = np.unique(np.round(np.quantile(z, np.arange(pieces + 1) / pieces), 3))
    bends = bends[(bends > -LIMIT) & (bends < LIMIT)]
    if not len(bends):
        return IDENTITY
    places = np.concatenate([[-LIMIT], bends, [LIMIT]])
    middle, y = float(np.clip(np.median(z), -LIMIT, LIMIT)), truth.astype(np.float64)

    def lengths(place: Doubles) -> Doubles:
        """Return how far each piece goes from the middle towards some places."""
        return np.asarray(
            np.clip(place[:, None], places[:-1], places[1:]) - np.clip(middle, places[:-1], places[1:])
        )

    columns = lengths(z)

    def loss(weights: Doubles) -> tuple[float, Doubles]:
        offset, slope = weights[0], weights[1:]
        u, bend = offset + columns @ slope, np.diff(slope)
        error = expit(u) - y
        value = np.sum(np.logaddexp(0, u) - y * u)
        value += BENDING * bend @ bend + LEANING * np.sum((slope - 1) ** 2)
        gradient = np.append(error.sum(), columns.T @ error + 2 * LEANING * (slope - 1))
        gradient[2:] += 2 * BENDING * bend
        gradient[1:-1] -= 2 * BENDING * bend
        return float(value), gradient

    n_slopes = len(places) - 1
    start = np.append(0.0, np.ones(n_slopes))
    inside = [(LEAST_SLOPE, MOST_SLOPE)] * (n_slopes - 2)
    limits = [(None, None), (1.0, 1.0), *inside, (1.0, 1.0)]
    with threadpool_limits(1):
        found = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=limits)
    weights = rounded(found.x)
    return np.array([places, weights[0] + lengths(places) @ weights[1:]])


def rounded(values: Doubles) -> Doubles:
    """Return numbers with fewer digits than any processor computes differently."""
    return np.array([float(f"{value:.5g}") for value in values])
