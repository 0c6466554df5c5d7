"""Maps from probabilities to scores: one per label, and others for single labels in single rows."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Self, TypedDict

import numpy as np
import numpy.typing as npt

from longleaf._validation import check_count, check_number

Floats = npt.NDArray[np.float32]
Doubles = npt.NDArray[np.float64]

MOST_SLOPE = MOST_OFFSET = 1000.0
"""What native code reckons with; a calibration stays far below."""
NOMINEES, MOST_NOMINEES = 100, 10**6
LEAST_RISE = 1e-6
MOST_POINTS, MOST_VALUE = 24, 1e6
"""Of a curve."""
LIMIT = float(np.log((1 - 1e-6) / 1e-6))
"""Log-odds of probabilities are cut off here."""


class MapArguments(TypedDict, total=False):
    """A score map's arrays, as native code calls them; none of them without a map."""

    map_slope: Floats
    map_offset: Floats
    map_refined: float
    map_nominees: int
    map_evidence: Doubles
    map_result: Doubles


class OverrideArguments(TypedDict, total=False):
    """The arrays of overrides, as native code calls them; none of them without overrides."""

    override_indptr: npt.NDArray[np.int64]
    override_labels: npt.NDArray[np.int32]
    override_slope: Floats
    override_offset: Floats
    override_refined: float


IDENTITY = np.array([[-LIMIT, LIMIT], [-LIMIT, LIMIT]])
"""The curve that changes nothing."""


@dataclass(frozen=True, eq=False)
class ScoreMap:
    """What a probability P of each label becomes, together with the margin s of its refined classifier.

    The probability that results, of a label that the trees nominate if labels are refined, is

        sigmoid(result(slope * evidence(clip(logit(P), -L, L)) + offset - refined * max(0, 1 - s)^2))

    where L is the logit of 1 - 1e-6, and ``evidence`` and ``result`` are piecewise linear curves that all
    labels share. The score of a label is then its gain times that.

    Attributes
    ----------
    slope : float32 array [labels]
        Above 0 and at most 1000.
    offset : float32 array [labels]
        From -1000 to 1000.
    refined : float
        From 0, where refined classifiers are not asked, to 1000.
    nominees : int
        Where labels are refined: how many each tree nominates for a row. The others have probability 0.
    evidence, result : float64 arrays [2, points]
        The places and the values of the points of each curve, 2 to 24; both must rise, but values of
        ``evidence`` may stay the same. Beyond the points a curve goes on as a line.
    """

    slope: Floats
    offset: Floats
    refined: float = 0.0
    nominees: int = NOMINEES
    evidence: Doubles = field(default_factory=lambda: IDENTITY)
    result: Doubles = field(default_factory=lambda: IDENTITY)

    def __post_init__(self) -> None:
        """Check the arrays and convert them."""
        slope = _numbers(self.slope, "slope", low=0.0, high=MOST_SLOPE, above=True)
        offset = _numbers(self.offset, "offset", low=-MOST_OFFSET, high=MOST_OFFSET)
        _check_same_length(slope=slope, offset=offset)
        object.__setattr__(self, "slope", slope)
        object.__setattr__(self, "offset", offset)
        object.__setattr__(self, "refined", check_number(self.refined, "refined", low=0, high=MOST_SLOPE))
        object.__setattr__(self, "nominees", check_count(self.nominees, "nominees", high=MOST_NOMINEES))
        for name, level in (("evidence", True), ("result", False)):
            object.__setattr__(self, name, check_curve(getattr(self, name), name, may_be_level=level))

    @classmethod
    def identity(cls, n_labels: int) -> Self:
        """Return the map that leaves probabilities from 1e-6 to 1 - 1e-6 as they are."""
        return cls(np.ones(n_labels, np.float32), np.zeros(n_labels, np.float32))

    def check(self, n_labels: int) -> Self:
        """Check that there is a map for each of so many labels."""
        if len(self.slope) != n_labels:
            raise ValueError(f"score_map must have {n_labels} slopes, one per label; got {len(self.slope)}.")
        return self

    @property
    def arguments(self) -> MapArguments:
        """The arrays, as native code calls them."""
        return {
            "map_slope": self.slope,
            "map_offset": self.offset,
            "map_refined": self.refined,
            "map_nominees": self.nominees,
            "map_evidence": self.evidence.ravel(),
            "map_result": self.result.ravel(),
        }


@dataclass(frozen=True, eq=False)
class Overrides:
    """Slopes and offsets of single labels in single rows, which replace those of a `ScoreMap`.

    Such a label is scored even where no tree has a leaf for it; its probability is 0 there.

    Attributes
    ----------
    indptr : int64 array [rows + 1]
        Where the overrides of each row begin.
    labels : int32 array [overrides]
        Which labels; they ascend within a row.
    slope, offset : float32 arrays [overrides]
        Slopes from 0 to 1000, offsets from -1000 to 1000.
    refined : float
        What refined classifiers count for these labels.
    """

    indptr: npt.NDArray[np.int64]
    labels: npt.NDArray[np.int32]
    slope: Floats
    offset: Floats
    refined: float = 0.0

    def __post_init__(self) -> None:
        """Check the arrays and convert them."""
        indptr, labels = _whole_numbers(self.indptr, "indptr"), _whole_numbers(self.labels, "labels")
        slope = _numbers(self.slope, "slope", low=0.0, high=MOST_SLOPE)
        offset = _numbers(self.offset, "offset", low=-MOST_OFFSET, high=MOST_OFFSET)
        _check_same_length(labels=labels, slope=slope, offset=offset)
        if not len(indptr) or indptr[0] != 0 or indptr[-1] != len(labels) or (np.diff(indptr) < 0).any():
            raise ValueError(f"indptr must rise from 0 to the number of overrides, {len(labels)}.")
        if len(labels) and (labels.min() < 0 or labels.max() > np.iinfo(np.int32).max):
            raise ValueError(
                f"labels must be at least 0 and fit 32 bits; got {labels.min()}, {labels.max()}."
            )
        begins = np.zeros(len(labels) + 1, bool)
        begins[indptr] = True
        falls = np.flatnonzero((np.diff(labels) <= 0) & ~begins[1:-1])
        if len(falls):
            row = np.searchsorted(indptr, falls[0], side="right") - 1
            raise ValueError(f"labels must ascend within a row; those of row {row} do not.")
        object.__setattr__(self, "refined", check_number(self.refined, "refined", low=0, high=MOST_SLOPE))
        for name, array in (("indptr", indptr), ("labels", labels.astype(np.int32))):
            object.__setattr__(self, name, array)
        object.__setattr__(self, "slope", slope)
        object.__setattr__(self, "offset", offset)

    @property
    def rows(self) -> npt.NDArray[np.int64]:
        """The row of each override."""
        return np.repeat(np.arange(len(self.indptr) - 1), np.diff(self.indptr))

    def check(self, n_rows: int, n_labels: int) -> Self:
        """Check that these are overrides of so many rows and labels."""
        if len(self.indptr) != n_rows + 1:
            raise ValueError(f"overrides must be for {n_rows} rows, as X has; got {len(self.indptr) - 1}.")
        if len(self.labels) and self.labels.max() >= n_labels:
            raise ValueError(f"overrides must hold labels below {n_labels}; got {self.labels.max()}.")
        return self

    def take(self, rows: npt.ArrayLike) -> Overrides:
        """Return the overrides of the given rows, in that order."""
        rows = np.asarray(rows, np.int64)
        sizes = self.indptr[rows + 1] - self.indptr[rows]
        indptr = np.concatenate([[0], np.cumsum(sizes)])
        places = np.arange(indptr[-1]) + np.repeat(self.indptr[rows] - indptr[:-1], sizes)
        return Overrides(indptr, self.labels[places], self.slope[places], self.offset[places], self.refined)

    @property
    def arguments(self) -> OverrideArguments:
        """The arrays, as native code calls them."""
        return {
            "override_indptr": self.indptr,
            "override_labels": self.labels,
            "override_slope": self.slope,
            "override_offset": self.offset,
            "override_refined": self.refined,
        }


def curve_at(points: Doubles, place: float) -> float:
    """Return the value of a curve; beyond its points it goes on as its first and last pieces do."""
    x, y = points
    piece = int(np.clip(np.searchsorted(x, place) - 1, 0, len(x) - 2))
    return float(y[piece] + (place - x[piece]) * (y[piece + 1] - y[piece]) / (x[piece + 1] - x[piece]))


def check_curve(points: npt.ArrayLike, name: str, *, may_be_level: bool = False) -> Doubles:
    """Return the points of a curve that rises, [2, points]; they may come as one array."""
    curve = np.ascontiguousarray(points, np.float64)
    if curve.ndim == 1 and len(curve) % 2 == 0:
        curve = curve.reshape(2, -1)
    if curve.ndim != 2 or len(curve) != 2 or not 2 <= curve.shape[1] <= MOST_POINTS:
        raise ValueError(f"{name} must be places and values of 2 to {MOST_POINTS} points.")
    steps = np.diff(curve)
    rises = (steps[0] > 0).all() and ((steps[1] > 0) | (may_be_level & (steps[1] == 0))).all()
    if not (np.abs(curve) <= MOST_VALUE).all() or not rises:
        raise ValueError(f"{name} must rise, with numbers from {-MOST_VALUE:g} to {MOST_VALUE:g}.")
    if curve_at(curve, LIMIT) - curve_at(curve, -LIMIT) < LEAST_RISE:
        raise ValueError(f"{name} must rise between {-LIMIT:.1f} and {LIMIT:.1f}.")
    return curve


def _numbers(values: npt.ArrayLike, name: str, *, low: float, high: float, above: bool = False) -> Floats:
    """Return numbers within their limits as a contiguous float32 array."""
    try:
        array = np.ascontiguousarray(values, np.float32)
    except (TypeError, ValueError):
        raise ValueError(f"{name} must hold numbers; got {values!r:.60}.") from None
    if np.ndim(values) != 1:
        raise ValueError(f"{name} must be 1-D; got {np.ndim(values)}-D.")
    good = (array >= low) & (array <= high) & ((array > low) | (not above))
    if not good.all():
        at_least = "above" if above else "at least"
        raise ValueError(
            f"{name} must be {at_least} {low:g} and at most {high:g}; got {array[np.flatnonzero(~good)[0]]}."
        )
    return array


def _whole_numbers(values: npt.ArrayLike, name: str) -> npt.NDArray[np.int64]:
    array = np.asarray(values)
    if array.ndim != 1 or (array.dtype.kind not in "iu" and array.size):
        raise ValueError(f"{name} must be a 1-D array of whole numbers; got {array.ndim}-D of {array.dtype}.")
    return np.ascontiguousarray(array, np.int64)


def _check_same_length(**arrays: npt.NDArray[Any]) -> None:
    sizes = {name: len(array) for name, array in arrays.items()}
    if len(set(sizes.values())) > 1:
        names = " and ".join(sizes)
        raise ValueError(f"{names} must have the same length; got {', '.join(map(str, sizes.values()))}.")
