"""Metrics of each row's ranking at 1, 2, …, width: the terms of averages and resamples."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from longleaf.metrics._hits import Floats, Hits, Ints


def scored_hits(hits: Hits, labels: Ints, gains: Floats) -> Floats:
    """Return the gain of the hit at each rank [rows, width]; a pad (-1) has the 0 at the end."""
    scored: Floats = hits * np.append(gains, 0.0)[labels]
    return scored


def best_gains(truth: sp.csr_array, gains: Floats, width: int) -> Floats:
    """Return the gains of the best possible ranking of every row [rows, width], 0 after its labels."""
    n_rows, n_labels = truth.shape
    n_true = np.diff(truth.indptr)
    by_gain = np.argsort(-gains)
    rank = np.empty(n_labels, np.int64)
    rank[by_gain] = np.arange(n_labels)
    # Sorting whole numbers (row, rank) is many times faster than sorting gains within rows.
    row_of = np.repeat(np.arange(n_rows), n_true)
    ranks = np.sort(row_of * n_labels + rank[truth.indices]) - row_of * n_labels
    place = np.arange(len(ranks)) - truth.indptr[row_of]
    inside = place < width
    best = np.zeros((n_rows, width))
    best[row_of[inside], place[inside]] = gains[by_gain[ranks[inside]]]
    return best


def precision_curves(gained: Floats) -> Floats:
    """Return the precision of each row at 1, 2, …, width from the gain at each rank [rows, width]."""
    curves: Floats = gained.cumsum(axis=1) / np.arange(1, gained.shape[1] + 1)
    return curves


def recall_curves(gained: Floats, n_true: npt.NDArray[Any]) -> Floats:
    """Return the recall of each row; 0 for a row without labels."""
    curves: Floats = gained.cumsum(axis=1) / np.maximum(n_true, 1)[:, None]
    return curves


def ndcg_curves(gained: Floats, n_true: npt.NDArray[Any]) -> Floats:
    """Return the nDCG of each row: discounted gains over the discounts of the most possible hits."""
    place = np.arange(1, gained.shape[1] + 1)
    discount = 1.0 / np.log2(place + 1.0)
    full = np.minimum(place, np.maximum(n_true, 1)[:, None])
    curves: Floats = (gained * discount).cumsum(axis=1) / discount.cumsum()[full - 1]
    return curves


def returned_precision_curves(found: npt.NDArray[Any], returned: npt.NDArray[Any]) -> Floats:
    """Return the share of hits among the labels returned so far; 0 where none is."""
    curves: Floats = found / np.maximum(returned, 1)
    return curves


def f1_curves(found: npt.NDArray[Any], returned: npt.NDArray[Any], n_true: npt.NDArray[Any]) -> Floats:
    """Return the F1 of each row from hits and labels returned so far; 0 for a row without labels."""
    curves: Floats = 2.0 * found / np.maximum(returned + n_true[:, None], 1)
    return curves
