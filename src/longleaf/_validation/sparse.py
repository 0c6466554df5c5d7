"""Checks that the index arrays of a sparse matrix stay within its bounds.

SciPy's native code reads and writes wherever they point. Therefore every matrix of a caller is checked before
SciPy converts, sorts or slices it; ``longleaf._core`` checks its own arguments again.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt


def check_structure(matrix: Any, name: str) -> None:
    """Reject a sparse matrix whose index arrays are out of bounds; dense matrices have none.

    Parameters
    ----------
    matrix : scipy.sparse matrix or array
        Formats without index arrays (DIA, DOK and LIL) are not checked, nor are one-dimensional arrays.
    name : str
        Its name in error messages.
    """
    if matrix.ndim != 2:
        return
    if matrix.format == "coo":
        if len(matrix.row) != len(matrix.data) or len(matrix.col) != len(matrix.data):
            raise ValueError(f"{name} must be a well-formed COO matrix; its arrays do not fit together.")
        _check_indices(matrix.row, matrix.shape[0], f"{name} must have rows")
        _check_indices(matrix.col, matrix.shape[1], f"{name} must have columns")
    elif matrix.format in ("csr", "csc", "bsr"):
        check_ranges(matrix, name)
        block = matrix.blocksize[1] if matrix.format == "bsr" else 1
        across = "rows" if matrix.format == "csc" else "columns"
        size = matrix.shape[0 if matrix.format == "csc" else 1] // block
        _check_indices(matrix.indices, size, f"{name} must have {across}")


def check_ranges(matrix: Any, name: str) -> None:
    """Reject a CSR, CSC or BSR matrix whose ``indptr`` is out of bounds."""
    kind, line = matrix.format.upper(), "column" if matrix.format == "csc" else "row"
    block = matrix.blocksize[0] if matrix.format == "bsr" else 1
    lines = matrix.shape[1 if matrix.format == "csc" else 0] // block
    whole = all(
        isinstance(array, np.ndarray) and array.ndim == 1 and array.dtype.kind in "iu"
        for array in (matrix.indptr, matrix.indices)
    )
    if not whole or len(matrix.indptr) != lines + 1 or len(matrix.data) != len(matrix.indices):
        raise ValueError(f"{name} must be a well-formed {kind} matrix; its arrays do not fit together.")
    fault = indptr_fault(matrix.indptr, len(matrix.indices), line)
    if fault is not None:
        raise ValueError(f"{name} must be a well-formed {kind} matrix; {fault}.")


def indptr_fault(indptr: npt.NDArray[Any], size: int, line: str = "row") -> str | None:
    """Describe where an ``indptr`` does not rise from 0 to at most ``size``; return None if it does."""
    if indptr[0] != 0:
        return f"its indptr begins at {indptr[0]}"
    falls = indptr[1:] < indptr[:-1]
    if falls.any():
        at = int(np.argmax(falls))
        return f"its indptr falls from {indptr[at]} to {indptr[at + 1]} at {line} {at}"
    return f"its indptr ends at {indptr[-1]}, behind its {size} entries" if indptr[-1] > size else None


def _check_indices(indices: npt.NDArray[Any], size: int, must_have: str) -> None:
    if not len(indices):
        return
    low, high = int(indices.min()), int(indices.max())
    if low < 0 or high >= size:
        raise ValueError(f"{must_have} from 0 to {size - 1}; got {low if low < 0 else high}.")
