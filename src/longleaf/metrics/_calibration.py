"""Whether probabilities mean what they say: reliability bins, ECE@k and Brier@k.

The problem: of all suggestions with a probability of 0.3, about three in ten should be correct. Given are the
true labels and the probabilities of the first k predictions of each row; what comes out is, in ten bins of
probability of equal width, the mean probability and the share that is correct. All other labels are left
aside, since nearly all have a probability near 0 and would hide every error. Source: Ullah, Schultheis, Zhang
and Babbar, "Labels in Extremes: How well calibrated are extreme multi-label classifiers?", arXiv 2411.04276.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from longleaf._validation import LabelsLike, check_count
from longleaf.metrics._hits import Floats, Hits, check_problem, find_hits, first

N_BINS = 10
ROUNDING = 1e-5  # a mean over trees in 32 bits may exceed 1 by as much


@dataclass(frozen=True)
class ReliabilityBin:
    """Predictions of similar probability; probabilities and shares are from 0 to 1.

    Attributes
    ----------
    low, high : float
        The bounds of the bin; it includes ``low``, and the last bin includes 1.
    pairs : int
        Number of predictions, pairs of a row and a label.
    right : int
        How many of them are correct.
    probability : float
        Their mean probability.
    """

    low: float
    high: float
    pairs: int
    right: int
    probability: float

    @property
    def share(self) -> float:
        """The share of the predictions that is correct."""
        return self.right / self.pairs

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % interval of the share by Wilson (1927)."""
        z, n, share = 1.96, self.pairs, self.share
        middle = (share + z * z / (2 * n)) / (1 + z * z / n)
        half = z / (1 + z * z / n) * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
        return max(0.0, middle - half), min(1.0, middle + half)


@dataclass(frozen=True)
class Calibration:
    """How well probabilities agree with what is correct.

    Attributes
    ----------
    ece : float
        The expected calibration error in percent: the distance between mean probability and correct share
        of each bin, averaged over the predictions.
    brier : float
        The Brier score in percent: the mean of ``(probability - y) ** 2``, where y is 1 if the prediction is
        correct and 0 if not.
    bins : tuple of ReliabilityBin
        By increasing probability; bins without predictions are omitted.
    """

    ece: float
    brier: float
    bins: tuple[ReliabilityBin, ...]

    @property
    def pairs(self) -> int:
        """The number of predictions."""
        return sum(one.pairs for one in self.bins)

    @property
    def probability(self) -> float:
        """The mean probability of the predictions; 0 without predictions."""
        return sum(one.pairs * one.probability for one in self.bins) / max(self.pairs, 1)

    @property
    def share(self) -> float:
        """The share of the predictions that is correct; 0 without predictions."""
        return sum(one.right for one in self.bins) / max(self.pairs, 1)


@dataclass(frozen=True, eq=False)
class CalibrationSums:
    """Sums over some predictions, from which their calibration is computed; those of partitions add up.

    ``sums`` is a float64 array [4, bins]: predictions, correct ones, probabilities and squared errors.
    """

    sums: Floats

    @classmethod
    def of(cls, probability: npt.NDArray[Any], right: Hits) -> CalibrationSums:
        """Sum over predictions, given their probabilities [any] and whether each is correct [any]."""
        chance, hit = probability.ravel().astype(np.float64), right.ravel().astype(np.float64)
        place = np.minimum((chance * N_BINS).astype(np.int64), N_BINS - 1)
        columns = np.ones_like(chance), hit, chance, (chance - hit) ** 2
        return cls(np.stack([np.bincount(place, one, N_BINS) for one in columns]))

    def __add__(self, other: CalibrationSums) -> CalibrationSums:
        """Return the sums over the predictions of both."""
        return CalibrationSums(self.sums + other.sums)

    def result(self) -> Calibration:
        """Return the calibration; without predictions, its numbers are 0."""
        pairs, right, chance, error = self.sums
        whole = max(float(pairs.sum()), 1.0)
        bins = tuple(
            ReliabilityBin(
                number / N_BINS,
                (number + 1) / N_BINS,
                int(pairs[number]),
                int(right[number]),
                float(chance[number] / pairs[number]),
            )
            for number in np.flatnonzero(pairs).tolist()
        )
        off = float(np.abs(chance - right).sum())
        return Calibration(100.0 * off / whole, 100.0 * float(error.sum()) / whole, bins)


def calibration(Y_true: LabelsLike, top: Any, k: int = 5) -> Calibration:
    """Say how well the probabilities of the first k predictions agree with what is correct.

    Parameters
    ----------
    Y_true : scipy.sparse matrix, dense array [rows, labels], or list of label lists
        True labels of each row, as in `evaluate`.
    top : TopK, or any object with ``labels`` and ``probabilities`` [rows, width]
        Predicted labels, best first, -1 where there is none. Whatever they are ranked by, it is the
        probabilities that are judged, not the scores.
    k : int
        Number of predictions of each row.

    Returns
    -------
    Calibration
        ECE@k and Brier@k in percent, and the reliability bins: ten of equal width.

    Notes
    -----
    Predictions of all rows are pooled: a row for which fewer labels are returned counts less. Smaller is
    better for both numbers. A Brier score also depends on how hard the rows are, so compare it only on the
    same rows; with few predictions, chance alone makes an ECE of some percent.

    Examples
    --------
    >>> import numpy as np
    >>> from longleaf import TopK
    >>> labels, p = np.array([[0, 1], [1, 0]]), np.array([[0.75, 0.25], [0.75, 0.25]])
    >>> found = calibration([[0], [0]], TopK(labels, p, p, np.zeros(2)), k=2)
    >>> found.ece, found.brier
    (25.0, 31.25)
    >>> [(one.low, one.high, one.pairs, one.share) for one in found.bins]
    [(0.2, 0.3, 2, 0.5), (0.7, 0.8, 2, 0.5)]
    """
    k = check_count(k, "k")
    truth, labels = check_problem(Y_true, top, None)
    probabilities = probabilities_of(top)
    if probabilities is None:
        raise ValueError(
            f"top must have the probabilities of its labels, as a TopK does; got {type(top).__name__}."
        )
    labels = first(labels, min(k, labels.shape[1]))
    given = labels >= 0
    right = find_hits(truth, labels)
    return CalibrationSums.of(probabilities[:, : labels.shape[1]][given], right[given]).result()


def probabilities_of(top: Any) -> npt.NDArray[Any] | None:
    """Return the probabilities of ranked labels [rows, width], or None if they are not known."""
    found = getattr(top, "probabilities", None)
    if found is None:
        return None
    array, labels = np.asarray(found), np.asarray(top.labels)
    if array.shape != labels.shape:
        raise ValueError(
            f"top must have a probability for each label; got {array.shape} for {labels.shape} labels."
        )
    given = array[labels >= 0]
    if np.isnan(given).any():
        return None
    outside = given[(given < 0) | (given > 1 + ROUNDING)]
    if len(outside):
        raise ValueError(f"top must have probabilities from 0 to 1; got {outside[0]:g}.")
    return array
