"""Labels that have the form that training wants already, without a copy of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp


def ready_indicator(Y: Any, n_labels: int | None) -> sp.csr_array | None:
    """Give a CSR matrix of ones around the caller's own arrays; None if ``Y`` is anything else.

    Parameters
    ----------
    Y : object
        A matrix qualifies that is CSR, float32 with int32 indices, sorted, without duplicates, all ones.
    n_labels : int, optional
        How many labels there must be.
    """
    if not sp.issparse(Y) or Y.format != "csr" or Y.ndim != 2 or Y.dtype != np.float32:
        return None
    if Y.indices.dtype != np.int32 or Y.indptr.dtype != np.int32 or n_labels not in (None, Y.shape[1]):
        return None
    size = len(Y.indices)
    whole = Y.indptr[0] == 0 and Y.indptr[-1] == size == len(Y.data)
    if not whole or not Y.has_canonical_format or not _all_ones(Y.data):
        return None
    if size and (Y.indices.min() < 0 or Y.indices.max() >= Y.shape[1]):
        return None
    indicator: sp.csr_array = sp.csr_array((Y.data, Y.indices, Y.indptr), shape=Y.shape)
    indicator.has_canonical_format = True
    return indicator


def _all_ones(data: npt.NDArray[Any]) -> bool:
    if data.strides == (0,):  # a single one, seen many times, as stores have it
        data = data[:1]
    return bool((data == 1).all())
