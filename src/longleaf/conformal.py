"""Sets of labels of which a promised share of the true labels is a member: conformal risk control.

Problem: how many labels does each row need, so that the sets hold, say, nine in ten of its true labels? Given
are held-out rows with their labels, which training never saw; what comes out is one threshold for all rows.

A label of probability p is expected to add p / max(1, S) to the recall of its row, where S is the expected
number of true labels, the sum of the probabilities of the ``max_size`` best. A row's set is all of these
whose expected recall reaches the threshold: for a given mean recall, the sets are then the smallest on
average that the probabilities allow. (A threshold on p itself returns more labels where a row has many, of
which each counts less.)

A row loses the share of its true labels that are not in its set, which falls as the threshold falls. Of n
held-out rows, the threshold for a coverage c is the largest one with

    n / (n + 1) * (mean loss) + 1 / (n + 1) <= 1 - c:

the mean loss as if there were one more row that loses everything. If a new row and the held-out rows could
have come in any order, its expected loss is then at most 1 - c, whatever the model and the probabilities are
worth. In terms of recall, which is 1 - loss, the condition is: the recalls of the n rows add up to at least
c (n + 1). So all that is kept is, for each threshold at which a true label enters a set, the sum of the
recalls from there on.

Rows without labels lose nothing, whatever their sets. They would make room for larger losses of the others,
so they do not count: the promise is for rows that have labels.

Source: Angelopoulos, Bates, Fisch, Lei and Schuster, "Conformal Risk Control", ICLR 2024.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from longleaf._validation import ModelError, carries
from longleaf._validation.numbers import MOST_ROWS, check_number
from longleaf.io._schema import check_arrays, check_range
from longleaf.search.top_k import Floats, TopK

MAX_SIZE = 100
"""The most labels of a set, unless the caller says otherwise."""
ROUNDING = 1e-9
"""How far the mean of many recalls may be off, as they are added up."""
ARRAYS = {"sizes": "int64", "thresholds": "float32", "recall": "float64"}


@dataclass(frozen=True, eq=False)
class RiskControl:
    """What sets of labels can be promised to hold, by held-out rows.

    Attributes
    ----------
    n_rows : int
        The number of held-out rows that have labels.
    max_size : int
        The most labels of a set.
    thresholds : float32 array [points]
        What the true labels that were found were expected to add to recall, each number once, falling.
    recall : float64 array [points]
        With each of these as the threshold, the sum of the recalls of the rows, rising.
    """

    n_rows: int
    max_size: int
    thresholds: npt.NDArray[np.float32]
    recall: npt.NDArray[np.float64]

    @property
    def most(self) -> float:
        """The largest coverage that can be promised."""
        return float(self.recall[-1]) / (self.n_rows + 1)

    @property
    def largest(self) -> float:
        """The same in four digits, rounded down, so that it can be asked for."""
        return float(np.floor(1e4 * self.most) / 1e4)

    def threshold(self, coverage: float) -> float:
        """Return the largest threshold whose sets are promised to hold this share of the true labels."""
        coverage = check_coverage(coverage)
        place = int(np.searchsorted(self.recall, (coverage - ROUNDING) * (self.n_rows + 1)))
        if place == len(self.recall):
            raise ValueError(
                f"coverage must be at most {self.largest:g} with sets of at most {self.max_size} labels and "
                f"{self.n_rows} held-out rows; got {coverage:g}, which fit_sets with a larger max_size or "
                "more rows may reach."
            )
        return float(self.thresholds[place])

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Return plain arrays."""
        sizes = np.array([self.n_rows, self.max_size], np.int64)
        return {"sizes": sizes, "thresholds": self.thresholds, "recall": self.recall}

    @classmethod
    def from_state(cls, arrays: Mapping[str, npt.NDArray[Any]], place: str, most_size: int) -> Self:
        """Return what `state` was called on.

        Parameters
        ----------
        arrays : mapping of str to array
        place : str
            How error messages begin.
        most_size : int
            The largest `max_size` that there can be.
        """
        check_arrays(arrays, ARRAYS, place)
        sizes, thresholds, recall = (arrays[name] for name in ARRAYS)
        if len(sizes) != 2:
            raise ModelError(f"{place}sizes.npy must have 2 numbers; got {len(sizes)}.")
        check_range(sizes[:1], 1, MOST_ROWS, f"{place}sizes.npy")
        check_range(sizes[1:], 1, most_size, f"{place}sizes.npy")
        if len(thresholds) == 0 or len(thresholds) != len(recall):
            raise ModelError(
                f"{place}thresholds.npy and recall.npy must have the same length, at least 1; "
                f"got {len(thresholds)} and {len(recall)}."
            )
        n_rows, max_size = sizes.tolist()
        check_range(thresholds, 0, 1, f"{place}thresholds.npy")
        check_range(recall, 0, n_rows * (1 + ROUNDING), f"{place}recall.npy")
        if not ((np.diff(thresholds) < 0).all() and (np.diff(recall) > 0).all()):
            raise ModelError(f"{place}thresholds.npy must fall, and recall.npy must rise.")
        return cls(n_rows, max_size, thresholds, recall)


def fit_risk(top: TopK, Y: sp.csr_array, max_size: int) -> RiskControl:
    """Fit what sets of labels can be promised to hold.

    Parameters
    ----------
    top : TopK
        The best ``max_size`` labels of held-out rows, by probability.
    Y : matrix [rows, labels]
        The labels of these rows, with sorted indices; those that the model lacks count as missed.
    max_size : int
        The most labels of a set.
    """
    n_labels = np.diff(Y.indptr)
    n_rows = int(np.count_nonzero(n_labels))
    if n_rows == 0:
        raise ValueError("y must have at least one row with labels to fit sets on; got none.")
    expected = expected_recall(top)
    row, place = np.nonzero(expected > 0)
    right = carries(Y, row, top.labels[row, place])
    if not right.any():
        raise ValueError("y must have labels that the model finds to fit sets on; it finds none of them.")
    row, place = row[right], place[right]
    found, inverse = np.unique(-expected[row, place], return_inverse=True)
    share = np.bincount(inverse, weights=1 / n_labels[row])
    return RiskControl(n_rows, max_size, -found, np.cumsum(share))


def check_coverage(coverage: object) -> float:
    """Check and return the share of the true labels that sets must hold."""
    number = check_number(coverage, "coverage")
    if not 0 < number < 1:
        raise ValueError(f"coverage must be above 0 and below 1; got {number:g}.")
    return number


def expected_recall(top: TopK) -> Floats:
    """Return what each label is expected to add to the recall of its row, [rows, k]; 0 for what only pads."""
    p = np.where(top.labels >= 0, top.probabilities.astype(np.float64), 0.0)
    n_labels = p.cumsum(axis=1)[:, -1:]  # one after the other: what pads changes no bit of the sum
    return np.asarray(p / np.maximum(n_labels, 1.0), np.float32)


def cut(top: TopK, threshold: float) -> TopK:
    """Return the labels of each row whose expected recall reaches a threshold, as wide as the largest set.

    Parameters
    ----------
    top : TopK
        The best ``max_size`` labels, by probability.
    threshold : float
        From `RiskControl.threshold`.
    """
    is_member = expected_recall(top) >= np.float32(threshold)
    width = max(1, int(is_member.sum(axis=1).max(initial=0)))
    inside = is_member[:, :width]
    return replace(
        top,
        labels=np.where(inside, top.labels[:, :width], np.int32(-1)),
        scores=np.where(inside, top.scores[:, :width], np.float32(0)),
        probabilities=np.where(inside, top.probabilities[:, :width], np.float32(0)),
    )
