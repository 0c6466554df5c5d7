"""Rows cut down to their strongest features, with weights in eight bits."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

STRONGEST = 64
"""Number of features kept of a row."""
LARGEST_WEIGHT = 127
"""The weight of a row's strongest feature."""


def compact(X: Any, strongest: int = STRONGEST) -> sp.csr_array:
    """Return rows with few features and small whole numbers, whose directions are about the same.

    Each row is scaled so that its strongest feature weighs 127, and rounded; features that become 0, and
    those beyond the strongest ones, are dropped. Of equally strong features, the first are kept.

    Parameters
    ----------
    X : sparse or dense matrix [rows, features]
        Finite numbers.
    strongest : int
        Most features of a row.

    Returns
    -------
    csr_array of int8 [rows, features]
        With sorted indices.
    """
    rows = sp.csr_array(X)
    if not rows.has_canonical_format:
        rows = rows.copy()
        rows.sum_duplicates()
    n_rows = rows.shape[0]
    row = np.repeat(np.arange(n_rows), np.diff(rows.indptr))
    size = np.abs(rows.data.astype(np.float64))
    largest = np.zeros(n_rows)
    filled = np.flatnonzero(np.diff(rows.indptr))
    if len(filled):
        largest[filled] = np.maximum.reduceat(size, rows.indptr[filled])
    largest[largest == 0] = 1
    level = np.rint(size / largest[row] * LARGEST_WEIGHT).astype(np.int64)

    # how many features of each row reach each level, and the lowest level that not too many reach
    levels = LARGEST_WEIGHT + 2  # 0 to 127, and one that no feature reaches
    reach = np.bincount(row * levels + level, minlength=n_rows * levels)
    reach = reach.reshape(n_rows, levels)[:, ::-1].cumsum(axis=1)[:, ::-1]
    lowest = 1 + (reach[:, 1:] > strongest).sum(axis=1)
    room = strongest - reach[np.arange(n_rows), lowest]
    tied = (level == lowest[row] - 1) & (level > 0)
    before = np.append(0, tied.cumsum())
    place = before[1:] - before[rows.indptr[row]]  # among the tied of its row, from 1
    keep = (level >= lowest[row]) | (tied & (place <= room[row]))

    weights = (np.sign(rows.data[keep]) * level[keep]).astype(np.int8)
    ends = np.append(0, np.bincount(row[keep], minlength=n_rows).cumsum())
    return sp.csr_array((weights, rows.indices[keep], ends), shape=rows.shape)
