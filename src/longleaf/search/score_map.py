"""Maps from probabilities to scores: one per label, and others for single labels in single rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self, TypedDict

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]

MOST_SLOPE = MOST_OFFSET = 1000.0
"""What native code reckons with; a calibration stays far below."""


class MapArguments(TypedDict, total=False):
    """A score map's arrays, as native code calls them; none of them without a map."""

    map_slope: Floats
    map_offset: Floats


class OverrideArguments(TypedDict, total=False):
    """The arrays of overrides, as native code calls them; none of them without overrides."""

    override_indptr: npt.NDArray[np.int64]
    override_labels: npt.NDArray[np.int32]
    override_slope: Floats
    override_offset: Floats


@dataclass(frozen=True, eq=False)
class ScoreMap:
    """What a probability P of each label becomes: ``sigmoid(slope * clip(logit(P), -L, L) + offset)``.

    L is the logit of 1 - 1e-6. The score of a label is then its gain times that.

    Attributes
    ----------
    slope : float32 array [labels]
        Above 0 and at most 1000.
    offset : float32 array [labels]
        From -1000 to 1000.
    """

    slope: Floats
    offset: Floats

    def __post_init__(self) -> None:
        """Check the arrays and convert them."""
        slope = _numbers(self.slope, "slope", low=0.0, high=MOST_SLOPE, above=True)
        offset = _numbers(self.offset, "offset", low=-MOST_OFFSET, high=MOST_OFFSET)
        _check_same_length(slope=slope, offset=offset)
        object.__setattr__(self, "slope", slope)
        object.__setattr__(self, "offset", offset)

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
        return {"map_slope": self.slope, "map_offset": self.offset}


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
    """

    indptr: npt.NDArray[np.int64]
    labels: npt.NDArray[np.int32]
    slope: Floats
    offset: Floats

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
        for name, array in (("indptr", indptr), ("labels", labels.astype(np.int32))):
            object.__setattr__(self, name, array)
        object.__setattr__(self, "slope", slope)
        object.__setattr__(self, "offset", offset)

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
        return Overrides(indptr, self.labels[places], self.slope[places], self.offset[places])

    @property
    def arguments(self) -> OverrideArguments:
        """The arrays, as native code calls them."""
        return {
            "override_indptr": self.indptr,
            "override_labels": self.labels,
            "override_slope": self.slope,
            "override_offset": self.offset,
        }


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
