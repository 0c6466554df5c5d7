"""Training data: checked rows, labels and weights of rows, and what is counted of them."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from longleaf import _core
from longleaf._validation import LabelsLike, Rows, check_features, check_labels
from longleaf.training.positive_weight import MOST_WEIGHT

HELD_OUT_SHARE, MOST_HELD_OUT, LEAST_HELD_OUT = 0.1, 1500, 50
LEAST_ROWS = int(LEAST_HELD_OUT / HELD_OUT_SHARE)
"""Fewer are too few to keep any from training."""
MOST_LOST = 0.05
"""If a larger share of the rows is kept from training, it is done again with all rows afterwards."""

PIECE = 1 << 18
"""About so many entries are summed at a time: the rows may be on disk."""
MASS_UNIT = 1 << 24


@dataclass(frozen=True, eq=False)
class TrainingData:
    """Checked rows, their labels and what an error on each costs."""

    rows: Rows
    labels: sp.csr_array
    row_weight: npt.NDArray[np.float32] | None

    def without(self, held: npt.NDArray[np.bool_]) -> TrainingData:
        """Return the data with some rows that teach nothing: they have no labels and weigh 0.

        The rows themselves stay where they are, which may be on disk.
        """
        entries = np.repeat(held, np.diff(self.labels.indptr))
        indptr = np.concatenate([[0], np.cumsum(np.where(held, 0, np.diff(self.labels.indptr)))])
        kept = self.labels.data[~entries], self.labels.indices[~entries], indptr.astype(np.int32)
        weight = np.ones(len(held), np.float32) if self.row_weight is None else self.row_weight
        labels = sp.csr_array(kept, shape=self.labels.shape)
        return TrainingData(self.rows, labels, np.where(held, np.float32(0), weight))

    def sizes(self) -> DataSizes:
        """Count rows, features and labels."""
        n_rows, n_labels = self.labels.shape
        counts = np.bincount(self.labels.indices, minlength=n_labels).astype(np.int64)
        return DataSizes(n_rows, self.rows.n_features, counts, feature_mass(self.rows))


@dataclass(frozen=True, eq=False)
class DataSizes:
    """What a model knows of the data that it was trained on.

    Attributes
    ----------
    n_rows, n_features : int
    label_counts : int64 array [labels]
        The rows of each label.
    feature_mass : int64 array [features]
        As `feature_mass` returns it.
    """

    n_rows: int
    n_features: int
    label_counts: npt.NDArray[np.int64]
    feature_mass: npt.NDArray[np.int64]

    @property
    def n_labels(self) -> int:
        """How many labels there are."""
        return len(self.label_counts)


def check_training_data(
    X: Any, y: LabelsLike, sample_weight: npt.ArrayLike | None, *, normalize: bool
) -> TrainingData:
    """Refuse what nothing can be learned from; ``normalize`` scales rows to unit length."""
    rows = check_features(X, normalize=normalize)
    if rows.n_features == 0:
        raise ValueError(
            f"X must have features; got 0 feature(s) (shape=({rows.n_rows}, 0)) "
            "while a minimum of 1 is required."
        )
    labels = check_labels(y, name="y")
    if rows.n_rows != labels.shape[0]:
        raise ValueError(
            f"X and y must have the same number of rows; got {rows.n_rows} and {labels.shape[0]}."
        )
    if rows.n_rows == 0 or labels.nnz == 0:
        raise ValueError(f"y must have at least one label to train on; got {rows.n_rows} rows with none.")
    return TrainingData(rows, labels, check_row_weight(sample_weight, rows.n_rows))


def held_out_size(n_rows: int) -> int:
    """Return how many rows to keep from training: a tenth, at most 1,500; none of a small data set."""
    size = min(int(n_rows * HELD_OUT_SHARE), MOST_HELD_OUT)
    return size if size >= LEAST_HELD_OUT else 0


def may_be_calibrated(n_rows: int) -> bool:
    """Return whether there are enough rows to keep some from training."""
    return held_out_size(n_rows) > 0


def is_trained_twice(n_rows: int) -> bool:
    """Return whether the rows that are kept from a first training would be missed."""
    return held_out_size(n_rows) > MOST_LOST * n_rows


def held_out_rows(
    Y: sp.csr_array,
    random_state: Any,
    *,
    any_row: bool = False,
    fresh: npt.NDArray[np.bool_] | None = None,
) -> npt.NDArray[np.bool_]:
    """Return which rows to keep from training.

    A row that is the only one of some label stays, unless ``any_row``: then names speak for such labels. Only
    rows that are ``fresh`` are kept, if there are enough of them.
    """
    n_rows, size = Y.shape[0], held_out_size(Y.shape[0])
    held = np.zeros(n_rows, bool)
    left = np.bincount(Y.indices, minlength=Y.shape[1])
    seed = random_state if isinstance(random_state, int | np.integer) else 0
    order = np.random.RandomState(seed).permutation(n_rows) if size else np.empty(0, np.int64)
    if fresh is not None and fresh.sum() >= LEAST_HELD_OUT:
        order = order[fresh[order]]
    for row in order:
        labels = Y.indices[Y.indptr[row] : Y.indptr[row + 1]]
        if any_row or (left[labels] > 1).all():
            left[labels] -= 1
            held[row] = True
            size -= 1
            if size == 0:
                break
    return held if held.sum() >= LEAST_HELD_OUT else np.zeros(n_rows, bool)


def feature_mass(rows: Rows) -> npt.NDArray[np.int64]:
    """Say how much of the rows each feature makes up: the sum of its shares of their squared lengths.

    In whole numbers of 1 / ``MASS_UNIT``, so that sums are the same in any order, on any number of machines.
    """
    scale = _core.row_scales(rows.indptr, rows.data)
    mass = np.zeros(rows.n_features, np.int64)
    cuts = np.searchsorted(rows.indptr, np.arange(0, len(rows.indices), PIECE))
    for first, last in pairwise([*np.unique(cuts).tolist(), rows.n_rows]):
        piece = slice(int(rows.indptr[first]), int(rows.indptr[last]))
        value = rows.data[piece] * np.repeat(scale[first:last], np.diff(rows.indptr[first : last + 1]))
        units = np.rint(value.astype(np.float64) ** 2 * MASS_UNIT)
        mass += np.bincount(rows.indices[piece], units, rows.n_features).astype(np.int64)
    return mass


def check_row_weight(weight: npt.ArrayLike | None, n_rows: int) -> npt.NDArray[np.float32] | None:
    """Return float32 [rows], or None where every row counts alike."""
    if weight is None:
        return None
    with np.errstate(over="ignore"):
        array = np.asarray(weight, np.float32)
    if array.shape != (n_rows,) or not np.isfinite(array).all() or (array < 0).any():
        raise ValueError(
            f"sample_weight must be {n_rows} finite numbers of at least 0; got shape {array.shape}."
        )
    if n_rows and array.max() > MOST_WEIGHT:
        raise ValueError(f"sample_weight must be at most {MOST_WEIGHT:g}; got {array.max():g}.")
    if not array.any():
        raise ValueError("sample_weight must be above 0 for at least one row; got only zeros.")
    return array
