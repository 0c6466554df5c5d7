"""Matrices as small integers with a scale per row or column."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

LARGEST = 127
LARGEST_FACTOR = 63
"""Weights that are multiplied have 7 bits: a processor without VNNI adds two products of such a weight and an
unsigned byte in 16 bits, which 8 bits would overflow. So every processor gets the same integers."""


def per_row(matrix: npt.NDArray[np.float32]) -> tuple[npt.NDArray[np.int8], npt.NDArray[np.float32]]:
    """Return a matrix as int8, and the scale of each row [n_rows, 1]."""
    return _quantize(matrix, 1, LARGEST)


def per_column(matrix: npt.NDArray[np.float32]) -> tuple[npt.NDArray[np.int8], npt.NDArray[np.float32]]:
    """Return a matrix of weights as int8 from -63 to 63, and the scale of each column [n_columns]."""
    integers, scales = _quantize(matrix, 0, LARGEST_FACTOR)
    return integers, scales[0]


def _quantize(
    matrix: npt.NDArray[np.float32], axis: int, largest: int
) -> tuple[npt.NDArray[np.int8], npt.NDArray[np.float32]]:
    """Scale each row or column so that its largest absolute value becomes ``largest``."""
    scales = np.abs(matrix).max(axis, keepdims=True) / np.float32(largest)
    scales[scales < np.finfo(np.float32).tiny] = 1.0  # so that all zeros stay zeros
    return np.rint(matrix / scales).astype(np.int8), scales.astype(np.float32)
