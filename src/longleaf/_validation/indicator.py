"""Label matrices: using one without a copy if it has the form that training needs, and looking labels up."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp


def ready_indicator(Y: Any, n_labels: int | None) -> sp.csr_array | None:
    """Return a CSR matrix of ones that shares the arrays of ``Y``, or None if ``Y`` does not qualify.

    Parameters
    ----------
    Y : object
        Its index arrays must have been checked. It qualifies if it is a CSR matrix of float32 with int32
        indices, sorted, without duplicates, with all entries one.
    n_labels : int, optional
        Required number of labels.
    """
    matrix: Any = Y if sp.issparse(Y) else None
    if matrix is None or matrix.format != "csr" or matrix.ndim != 2 or matrix.dtype != np.float32:
        return None
    if n_labels not in (None, matrix.shape[1]):
        return None
    data, indices, indptr = matrix.data, matrix.indices, matrix.indptr
    if indices.dtype != np.int32 or indptr.dtype != np.int32 or indptr[-1] != len(indices):
        return None
    if not matrix.has_canonical_format or not _all_ones(data):
        return None
    indicator: sp.csr_array = sp.csr_array((data, indices, indptr), shape=matrix.shape)
    indicator.has_canonical_format = True
    return indicator


def carries(Y: sp.csr_array, rows: npt.NDArray[np.int64], labels: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Return whether each row carries the label of its pair; ``Y`` has sorted indices."""
    if not len(rows):
        return np.zeros(0, bool)
    first, last = int(rows.min()), int(rows.max()) + 1
    n_labels = np.int64(Y.shape[1])
    piece = slice(int(Y.indptr[first]), int(Y.indptr[last]))
    lengths = np.diff(Y.indptr[first : last + 1])
    known = np.repeat(np.arange(first, last, dtype=np.int64), lengths) * n_labels + Y.indices[piece]
    wanted = rows.astype(np.int64) * n_labels + labels
    place = np.searchsorted(known, wanted)
    found: npt.NDArray[np.bool_] = np.append(known, -1)[place] == wanted
    return found


def _all_ones(data: npt.NDArray[Any]) -> bool:
    if data.strides == (0,):  # a broadcast scalar, as in stores
        data = data[:1]
    return bool((data == 1).all())
