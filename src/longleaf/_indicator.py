"""Labels that have the form that training wants already, without a copy of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp


def ready_indicator(Y: Any, n_labels: int | None) -> sp.csr_array | None:
    """Return a CSR matrix of ones around the caller's own arrays; None if ``Y`` is anything else.

    Parameters
    ----------
    Y : object
        Its index arrays must be known to stay inside it. A matrix qualifies that is CSR, float32 with int32
        indices, sorted, without duplicates, all ones.
    n_labels : int, optional
        How many labels there must be.
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


def _all_ones(data: npt.NDArray[Any]) -> bool:
    if data.strides == (0,):  # a single one, seen many times, as stores have it
        data = data[:1]
    return bool((data == 1).all())
