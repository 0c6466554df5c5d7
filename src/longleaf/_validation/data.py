"""Validation of arguments: labels, predictions, features and numbers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from longleaf import _core
from longleaf._validation.indicator import ready_indicator
from longleaf._validation.numbers import MOST_LABELS
from longleaf._validation.sparse import check_ranges, check_structure

LabelsLike: TypeAlias = Any
"""Labels of rows: a SciPy sparse matrix, a dense 2-D array, or a list or pandas Series of label lists."""

_LONGEST_ROW = 1e18  # its square fits a 32-bit float


def is_label_lists(Y: LabelsLike) -> bool:
    """Return whether labels are a list of label lists: arrays of numbers are matrices, Python lists never.

    A pandas Series is one too, whatever its index; its rows are taken in their order.
    """
    if isinstance(Y, list | tuple):
        return True
    is_series = hasattr(Y, "iloc")
    return getattr(Y, "ndim", None) == 1 and (is_series or (isinstance(Y, np.ndarray) and Y.dtype == object))


def check_labels(Y: LabelsLike, n_labels: int | None = None, *, name: str = "Y") -> sp.csr_array:
    """Convert the labels of rows to an indicator matrix, without modifying the caller's object.

    Parameters
    ----------
    Y : scipy.sparse matrix or array, dense array [rows, labels], or list of label lists
        In a matrix, every entry above zero is a label of its row, whatever its value; negative entries are
        invalid. The entries of a sparse matrix may be weights; a dense one must hold whole numbers, because
        fractions are scores or measurements, which the caller must convert to labels, for instance by
        ``Y > 0.5``.
        A list (or tuple, array of objects or pandas Series) contains the label numbers of each row, in any
        order.
    n_labels : int, optional
        Required number of labels. By default that of a matrix's columns, or for lists the largest label
        plus one.
    name : str
        Name of ``Y`` in error messages.

    Returns
    -------
    scipy.sparse.csr_array, float32 [rows, labels]
        Ones at the labels; int32 indices (int64 above 2**31 entries), sorted and without duplicates. A matrix
        that already has this form is not copied, so the result must not be modified.
    """
    if sp.issparse(Y):
        check_structure(Y, name)
    if (ready := ready_indicator(Y, n_labels)) is not None:
        return ready
    if is_label_lists(Y):
        rows, columns, shape = _pairs_of_lists(Y, n_labels, name)
    else:
        rows, columns, shape = _pairs_of_matrix(Y, n_labels, name)
    if shape[1] > MOST_LABELS:
        raise ValueError(f"{name} must have at most {MOST_LABELS} labels; got {shape[1]}.")
    indicator = sp.csr_array((np.ones(len(rows), np.float32), (rows, columns)), shape=shape)
    indicator.sum_duplicates()
    indicator.data[:] = 1.0
    if indicator.nnz <= MOST_LABELS:  # SciPy needs the same width for both
        indicator.indices = indicator.indices.astype(np.int32, copy=False)
        indicator.indptr = indicator.indptr.astype(np.int32, copy=False)
    return indicator


def check_top(
    top: Any, n_rows: int, n_labels: int | None = None, *, name: str = "top"
) -> npt.NDArray[np.int64]:
    """Return the predicted labels as int64 [rows, k], padded with -1.

    Parameters
    ----------
    top : object with ``labels``, or int array [rows, k]
        The labels of each row, best first; -1 pads a row with fewer than k.
    n_rows, n_labels : int
        Those of the true labels; ``n_labels`` is optional.
    name : str
        Name of ``top`` in error messages.
    """
    labels = np.asarray(getattr(top, "labels", top))
    if labels.ndim != 2 or labels.dtype.kind not in "iu":
        raise ValueError(f"{name} must be a 2-D array of integers; got {labels.ndim}-D of {labels.dtype}.")
    if len(labels) != n_rows:
        raise ValueError(f"{name} must have {n_rows} rows, as Y_true has; got {len(labels)}.")
    labels = labels.astype(np.int64)
    if labels.size and labels.min() < -1:
        raise ValueError(f"{name} must hold labels, or -1 for none; got {labels.min()}.")
    if n_labels is not None and labels.size and labels.max() >= n_labels:
        raise ValueError(f"{name} must hold labels below {n_labels}; got {labels.max()}.")
    ordered = np.sort(labels, axis=1)
    repeated = (ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] >= 0)
    if repeated.any():
        row, place = np.argwhere(repeated)[0]
        raise ValueError(
            f"{name} must name a label only once per row; row {row} repeats {ordered[row, place]}."
        )
    return labels


def check_per_label(
    values: npt.ArrayLike, n_labels: int | None, name: str, *, high: float = np.inf
) -> npt.NDArray[np.float64]:
    """Check and return one finite number from 0 to ``high`` per label, as float64 [labels]."""
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"{name} must hold numbers, one per label; got {values!r:.60}.") from None
    if array.ndim != 1:
        raise ValueError(f"{name} must be 1-D, one number per label; got {array.ndim}-D.")
    if n_labels is not None and len(array) != n_labels:
        raise ValueError(f"{name} must have {n_labels} numbers, one per label; got {len(array)}.")
    bad = np.flatnonzero(~(np.isfinite(array) & (array >= 0) & (array <= high)))
    if len(bad):
        limits = "that are at least 0" if high == np.inf else f"from 0 to {high:g}"
        raise ValueError(f"{name} must hold finite numbers {limits}; got {array[bad[0]]} for label {bad[0]}.")
    return array


_Pairs: TypeAlias = tuple[npt.NDArray[Any], npt.NDArray[Any], tuple[int, int]]


def _pairs_of_matrix(Y: Any, n_labels: int | None, name: str) -> _Pairs:
    """Return rows and columns of the nonzero entries of a sparse or dense matrix, and its shape."""
    matrix: Any = Y if sp.issparse(Y) else np.asarray(Y)
    if matrix.dtype == object and matrix.ndim == 2:
        try:
            matrix = matrix.astype(np.float64)
        except (TypeError, ValueError) as error:
            raise ValueError(f"{name} must hold numbers; {error}. Unknown label type.") from error
    if matrix.ndim != 2 or matrix.dtype.kind not in "biuf":
        raise ValueError(
            f"{name} must be a 2-D matrix of numbers or a list of label lists; "
            f"got {matrix.ndim}-D of {matrix.dtype}."
        )
    if n_labels is not None and matrix.shape[1] != n_labels:
        raise ValueError(f"{name} must have {n_labels} labels; got {matrix.shape[1]}.")
    # COO keeps duplicate entries separate, so that their sum cannot overflow to zero.
    entries = sp.coo_array(matrix)
    finite = np.isfinite(entries.data)
    if not finite.all():
        raise ValueError(f"{name} must hold finite numbers; got {entries.data[~finite][0]}.")
    if entries.data.size and entries.data.min() < 0:  # -1, which some use for "no", would count as a label
        raise ValueError(
            f"{name} must hold 0 for a label that a row lacks and a number above 0 for one that it has; "
            f"got {entries.data.min():g}."
        )
    if not sp.issparse(Y) and (fractions := entries.data[entries.data % 1 != 0]).size:
        raise ValueError(
            f"{name} must hold whole numbers where it is dense, 0 for a label that a row lacks and 1, or "
            f"a count, for one that it has; got {fractions[0]:g}. Unknown label type: continuous-multioutput."
        )
    present = entries.data != 0
    return entries.row[present], entries.col[present], (int(matrix.shape[0]), int(matrix.shape[1]))


def _pairs_of_lists(Y: Any, n_labels: int | None, name: str) -> _Pairs:
    """Return rows and labels of a list of label lists, and the shape of their matrix."""
    must = f"{name} must hold a list of label numbers for every row"
    lists = []
    for number, row in enumerate(Y):
        if not isinstance(row, Iterable):
            raise ValueError(f"{must}; row {number} is {row!r:.60}.")
        lists.append(list(row))
    try:
        labels = np.array(list(chain.from_iterable(lists)))
    except (OverflowError, TypeError, ValueError):  # only some items are lists
        raise ValueError(f"{must}; got lists of something else.") from None
    if labels.size == 0:
        labels = labels.astype(np.int64)
    if labels.ndim != 1 or labels.dtype.kind not in "iu":
        raise ValueError(f"{must}; got lists of {labels.dtype if labels.ndim == 1 else 'lists'}.")
    rows = np.repeat(np.arange(len(lists)), [len(row) for row in lists])
    end = (int(labels.max()) + 1 if labels.size else 0) if n_labels is None else n_labels
    bad = np.flatnonzero((labels < 0) | (labels >= end))
    if len(bad):
        raise ValueError(
            f"{name} must hold labels from 0 to {end - 1}; got {labels[bad[0]]} in row {rows[bad[0]]}."
        )
    return rows, labels, (len(lists), end)


@dataclass(frozen=True)
class Rows:
    """Features for native code: sorted rows without duplicates, and a scale for each row."""

    indptr: npt.NDArray[np.int64]
    indices: npt.NDArray[np.int32]
    data: npt.NDArray[np.float32]
    n_features: int
    scale: npt.NDArray[np.float32]

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return len(self.indptr) - 1

    def __getitem__(self, block: slice) -> Rows:
        """Return consecutive rows, sharing the data."""
        start, stop, _ = block.indices(self.n_rows)
        indptr = self.indptr[start : stop + 1]
        inside = slice(indptr[0], indptr[-1])
        data = self.indices[inside], self.data[inside]
        return Rows(indptr - indptr[0], *data, self.n_features, self.scale[start:stop])

    def take(self, rows: npt.NDArray[np.int64]) -> Rows:
        """Return some of the rows, copied; the others are not read."""
        sizes = self.indptr[rows + 1] - self.indptr[rows]
        indptr = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        places = np.arange(indptr[-1]) + np.repeat(self.indptr[rows] - indptr[:-1], sizes)
        return Rows(indptr, self.indices[places], self.data[places], self.n_features, self.scale[rows])

    @property
    def csr(self) -> _core.CsrArrays:
        """The three arrays of the matrix, in the order of the arguments of native functions."""
        return self.indptr, self.indices, self.data


def check_features(X: Any, n_features: int | None = None, *, normalize: bool = True, name: str = "X") -> Rows:
    """Convert features for native code, without modifying the caller's object or copying if possible.

    Parameters
    ----------
    X : scipy.sparse matrix or array of any index width and dtype, or dense array [rows, features]
    n_features : int, optional
        Required number of features, as in ``fit``.
    normalize : bool
        Whether rows are scaled to unit length (by ``Rows.scale``; the data are not changed).
    name : str
        Name of ``X`` in error messages.
    """
    matrix = _matrix_of_numbers(X, name)
    if n_features is not None and matrix.shape[1] != n_features:
        raise ValueError(f"{name} must have {n_features} features, as in fit; got {matrix.shape[1]}.")
    if max(matrix.shape) > MOST_LABELS:
        raise ValueError(f"{name} must have at most {MOST_LABELS} rows and features; got {matrix.shape}.")
    csr: Any = matrix
    if not sp.issparse(matrix) or csr.format != "csr":
        if sp.issparse(matrix):
            check_structure(matrix, name)
        csr = sp.csr_array(matrix)
    check_ranges(csr, name)
    if not csr.has_canonical_format:
        csr = csr.copy()
        csr.sum_duplicates()
    indptr = np.ascontiguousarray(csr.indptr, np.int64)
    indices = np.ascontiguousarray(csr.indices, np.int32)
    with np.errstate(over="ignore"):
        data = np.ascontiguousarray(csr.data, np.float32)
    try:
        _core.check_csr(indptr, indices, data, int(matrix.shape[1]), name, in_order=True)
    except ValueError as error:
        if np.isfinite(data).all():
            raise
        raise ValueError(f"{error} NaN and infinity cannot be used.") from error
    scale = _core.row_scales(indptr, data)
    if not normalize:
        long = np.flatnonzero((scale > 0) & (scale < 1 / _LONGEST_ROW))
        if len(long):
            raise ValueError(f"{name} must have rows no longer than {_LONGEST_ROW:g}; row {long[0]} is.")
        scale = np.ones_like(scale)
    elif len(short := _short_rows(csr.data, indptr, scale)):
        data = _with_unit_rows(csr.data, data, indptr, short)
        scale[short] = 1
    return Rows(indptr, indices, data, int(matrix.shape[1]), scale)


def _short_rows(
    values: npt.NDArray[Any], indptr: npt.NDArray[np.int64], scale: npt.NDArray[np.float32]
) -> npt.NDArray[np.int64]:
    """Return the rows with values, but too small for a scale in 32 bits."""
    rows = np.flatnonzero((scale == 0) & (np.diff(indptr) > 0))
    found = [row for row in rows if values[indptr[row] : indptr[row + 1]].any()]
    return np.array(found, np.int64)


def _with_unit_rows(
    values: npt.NDArray[Any],
    data: npt.NDArray[np.float32],
    indptr: npt.NDArray[np.int64],
    rows: npt.NDArray[np.int64],
) -> npt.NDArray[np.float32]:
    """Return a copy of the data in which some rows have unit length, made from the caller's own values."""
    data = data.copy()
    for row in rows:
        inside = slice(indptr[row], indptr[row + 1])
        large = values[inside].astype(np.float64)
        large /= np.abs(large).max()  # squares would underflow
        data[inside] = large / np.sqrt((large**2).sum())
    return data


def _matrix_of_numbers(X: Any, name: str) -> Any:
    """Return a sparse or dense 2-D matrix of real numbers; scikit-learn's checks expect some of the words."""
    matrix: Any = X if sp.issparse(X) else np.asarray(X)
    if matrix.dtype == object and matrix.ndim == 2:  # mixed columns, or numbers of type object
        matrix = matrix.astype(np.float64)
    if matrix.dtype.kind == "c":
        raise ValueError(f"{name} must hold real numbers; got {matrix.dtype}. Complex data not supported.")
    if matrix.ndim != 2:
        raise ValueError(
            f"{name} must be a 2-D matrix of numbers; got {matrix.ndim}-D of {matrix.dtype}. "
            "Reshape your data by reshape(1, -1) if it is a single row."
        )
    if matrix.dtype.kind not in "biuf":
        raise ValueError(f"{name} must be a 2-D matrix of numbers; got {matrix.ndim}-D of {matrix.dtype}.")
    return matrix
