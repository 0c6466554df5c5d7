"""How many labels to return: as many as make the expected F1 largest.

Problem: a record has the labels that it has, not always five. Given are labels in order of score, with
calibrated probabilities p_1, p_2, …; what comes out is the first k of them, for the k whose expected F1 is
largest. F1 is 2 hits / (labels returned + true labels).

The expectation of the ratio is approximated by the ratio of the expectations, 2 sum_{j<=k} p_j / (k + S),
where S is the expected number of true labels, the sum of all probabilities. This needs no parameter and does
not assume that labels are independent. S is summed over at least `SEARCHED` labels, however few may be
returned: without the many small probabilities, F1 seems larger than it is, and too few labels are returned.

No label is returned where that is likely to be better even if labels exclude each other: where 1 - S, the
smallest probability of a record without labels that the p_j allow, exceeds the expected F1 of the best k.
(The product of all 1 - p_j assumes independent labels. Where every record has a label it is far too large.)
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from longleaf.search.top_k import TopK

DEFAULT_MOST = 20
"""The most labels of a record, unless the caller says otherwise."""
SEARCHED = 60
"""How many labels to search at least; more hardly change the choice."""


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
    kept = able & (able.cumsum(axis=1) <= most)
    expected_labels = p.cumsum(axis=1)[:, -1:]
    expected_f1 = 2 * (p * kept).cumsum(axis=1) / (np.maximum(kept.cumsum(axis=1), 1) + expected_labels)
    best = expected_f1.argmax(axis=1)[:, None]
    is_better = np.take_along_axis(expected_f1, best, axis=1) > 1 - expected_labels
    found: npt.NDArray[np.bool_] = kept & (np.arange(p.shape[1]) <= best) & is_better
    return found


def cut(top: TopK, most: int = DEFAULT_MOST, threshold: float | npt.ArrayLike | None = None) -> TopK:
    """Return the labels of each row that `best_labels` says, at most ``most``.

    Parameters
    ----------
    top : TopK
        At least as many labels, searched without a threshold.
    most : int
        The most labels of a row.
    threshold : float or array [labels], optional
        Labels that score less are not returned, as in a search.
    """
    allowed = top.labels >= 0
    if threshold is not None:
        least = np.asarray(threshold, np.float32)
        allowed &= top.scores >= (least if least.ndim == 0 else least[top.labels])
    kept = best_labels(top.probabilities, allowed, most)
    first = np.argsort(~kept, axis=1, kind="stable")[:, :most]  # the kept ones, in their order; then pads
    is_label = np.take_along_axis(kept, first, axis=1)
    return replace(
        top,
        labels=np.where(is_label, np.take_along_axis(top.labels, first, axis=1), np.int32(-1)),
        scores=np.where(is_label, np.take_along_axis(top.scores, first, axis=1), np.float32(0)),
        probabilities=np.where(is_label, np.take_along_axis(top.probabilities, first, axis=1), np.float32(0)),
    )
