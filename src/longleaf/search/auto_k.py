"""How many labels to return: as many as make the expected F1 largest.

Problem: a record has the labels that it has, not always five. Given are labels in order of score, with
calibrated probabilities p_1, p_2, …; what comes out is the first k of them, for the k whose expected F1 is
largest. F1 is 2 hits / (labels returned + true labels).

The expectation of the ratio is approximated by the ratio of the expectations, 2 sum_{j<=k} p_j / (k + S),
where S is the expected number of true labels, the sum of all probabilities. This needs no parameter and does
not assume that labels are independent. S is summed over the first `SEARCHED` labels, however few may be
returned: without the many small probabilities, F1 seems larger than it is, and too few labels are returned.
However many may be returned, it is not summed over more: the sum of thousands of probabilities near 0 says
little about the number of true labels. Only where all of these labels are worth returning, twice as many are
considered, and so on. So the choice does not depend on the limit, which only cuts off what exceeds it.

No label is returned where that is likely to be better even if labels exclude each other: where 1 - S, the
smallest probability of a record without labels that the p_j allow, exceeds the expected F1 of the best k,
both for the first `SEARCHED` labels.
(The product of all 1 - p_j assumes independent labels. Where every record has a label it is far too large.)
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from longleaf.search.top_k import TopK

Floats = npt.NDArray[np.float64]

DEFAULT_MOST = 20
"""The most labels of a record, unless the caller says otherwise."""
SEARCHED = 60
"""How many labels to consider at first."""


def n_searched(most: int) -> int:
    """Return how many labels to search, of which at most ``most`` will be returned."""
    window = SEARCHED
    while window < most:
        window *= 2
    return window


def best_labels(
    probabilities: npt.NDArray[np.float32],
    allowed: npt.NDArray[np.bool_] | None = None,
    most: int = DEFAULT_MOST,
) -> npt.NDArray[np.bool_]:
    """Return which labels of each row to keep.

    Parameters
    ----------
    probabilities : float32 array [rows, searched]
        In order of score, padded with 0.
    allowed : bool array [rows, searched], optional
        Which labels may be kept; all by default. The others still count in the expected number.
    most : int
        The most labels of a row.
    """
    p = probabilities.astype(np.float64)
    able = p > 0 if allowed is None else allowed & (p > 0)
    window = SEARCHED
    last, expected_f1, expected_labels = _best_size(p[:, :window], able[:, :window])
    is_better = expected_f1 > 1 - expected_labels
    while window < p.shape[1]:
        in_window = able[:, :window].cumsum(axis=1)
        is_full = in_window[np.arange(len(p)), last] == in_window[:, -1]
        rows = np.flatnonzero(is_better & is_full)
        window *= 2
        last[rows] = _best_size(p[rows, :window], able[rows, :window])[0]
    kept = able & (np.arange(p.shape[1]) <= last[:, None]) & is_better[:, None]
    found: npt.NDArray[np.bool_] = kept & (kept.cumsum(axis=1) <= most)
    return found


def _best_size(p: Floats, able: npt.NDArray[np.bool_]) -> tuple[npt.NDArray[np.int64], Floats, Floats]:
    """Return the place of the last label to keep in each row, the expected F1, and how many are expected."""
    expected_labels = p.cumsum(axis=1)[:, -1:]
    expected_f1 = 2 * (p * able).cumsum(axis=1) / (np.maximum(able.cumsum(axis=1), 1) + expected_labels)
    last = expected_f1.argmax(axis=1)
    return last, expected_f1[np.arange(len(p)), last], expected_labels[:, 0]


def cut(
    top: TopK,
    most: int = DEFAULT_MOST,
    threshold: float | npt.ArrayLike | None = None,
    groups: npt.NDArray[np.int64] | None = None,
) -> TopK:
    """Return the labels of each row that `best_labels` says, at most ``most``.

    Parameters
    ----------
    top : TopK
        `n_searched` labels, searched without a threshold and groups.
    most : int
        The most labels of a row.
    threshold : float or array [labels], optional
        Labels that score less are not returned, as in a search.
    groups : int64 array [labels], optional
        The group of each label, of which only the best is returned.
    """
    allowed = top.labels >= 0
    if threshold is not None:
        least = np.asarray(threshold, np.float32)
        allowed &= top.scores >= (least if least.ndim == 0 else least[top.labels])
    if groups is not None:
        for labels, own in zip(top.labels, allowed, strict=True):
            places = np.flatnonzero(own)
            own[places] = False
            own[places[np.unique(groups[labels[places]], return_index=True)[1]]] = True
    kept = best_labels(top.probabilities, allowed, most)
    first = np.argsort(~kept, axis=1, kind="stable")[:, :most]  # the kept ones, in their order; then pads
    is_label = np.take_along_axis(kept, first, axis=1)
    return replace(
        top,
        labels=np.where(is_label, np.take_along_axis(top.labels, first, axis=1), np.int32(-1)),
        scores=np.where(is_label, np.take_along_axis(top.scores, first, axis=1), np.float32(0)),
        probabilities=np.where(is_label, np.take_along_axis(top.probabilities, first, axis=1), np.float32(0)),
    )
