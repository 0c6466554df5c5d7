"""Precision, recall, F1 and nDCG at k, propensity-scored metrics, macro averages and calibration at k.

Ranking metrics assign every hit a gain (1, or the label's inverse propensity) and average over the rows; the
propensity-scored ones are then divided by the value of the best possible ranking. Label metrics count hits
per label and average over the labels. Sources: Jain et al., KDD 2016, and the evaluation scripts of the
Extreme Classification (XMLC) repository; F1 and nDCG as in Annif 1.4.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from longleaf._validation import LabelsLike, check_per_label
from longleaf.metrics._calibration import probabilities_of
from longleaf.metrics._hits import check_k, check_problem
from longleaf.metrics._sums import RankingSums


def evaluate(
    Y_true: LabelsLike,
    top: Any,
    inverse_propensity: npt.ArrayLike | None = None,
    k: int | Iterable[int] = (1, 3, 5),
    normalize: bool = True,
) -> dict[str, float]:
    """Evaluate ranked labels against the true ones.

    Parameters
    ----------
    Y_true : scipy.sparse matrix, dense array [rows, labels], or list of label lists
        True labels of each row. Labels that training never saw count like all others. The number of labels is
        that of the columns; for lists, that of ``inverse_propensity`` or the largest label plus one.
    top : TopK, or int array [rows, width]
        Predicted labels, best first, each at most once per row; -1 where there is none. With a TopK, the
        probabilities are judged too.
    inverse_propensity : array [labels], optional
        Gain of a hit on each label. If omitted, there are no propensity-scored metrics.
    k : int or ints
        Number of predictions to evaluate. Above the width of ``top``, the missing ones are misses.
    normalize : bool
        Divide propensity-scored metrics by the best possible value, as the XMLC repository does. ``False``
        keeps the paper's own form, which can exceed 100.

    Returns
    -------
    dict of str to float
        In percent, with these keys for every k:

        ``p@k``
            Hits among the first k, over k; mean over all rows.
        ``precision@k``
            Hits among the first k, over the number of labels returned among them, which is below k where a
            threshold or a filter left fewer; mean over all rows. If k labels are returned for every row, it
            is ``p@k``. A row for which none is returned adds 0.
        ``recall@k``
            Hits among the first k, over the number of the row's labels; mean over all rows.
        ``f1@k``
            ``2 hits / (labels returned + labels of the row)`` among the first k; mean over all rows.
        ``ndcg@k``
            Sum of ``1 / log2(1 + rank)`` of the hits among the first k (ranks count from 1), over the same
            sum for hits at ranks 1 to ``min(k, number of the row's labels)``; mean over all rows.
        ``psp@k``, ``psrecall@k``, ``psndcg@k``
            As ``p@k``, ``recall@k`` and ``ndcg@k``, with each hit multiplied by the inverse propensity of its
            label. If normalised, divided by the same mean for the best ranking, which lists each row's labels
            by decreasing inverse propensity. So normalised ``psp@k`` is the sum of the gains of all rows over
            the sum of the best k gains of all rows.
        ``coverage@k``
            Share of the labels in ``Y_true`` with at least one hit among the first k of any row.
        ``macro_precision@k``, ``macro_recall@k``, ``macro_f1@k``
            Mean, over the labels in ``Y_true``, of: hits on the label among the first k, over the times it is
            predicted there (0 if never); over its true rows; ``2 hits / (times predicted + true rows)``.
        ``ece@k``, ``brier@k``
            Only with a TopK whose probabilities are known: calibration error and Brier score of the first k,
            as `calibration` returns them; smaller is better.

    Notes
    -----
    A row without labels counts as a row in every mean and adds 0 to it, also for the best ranking. The label
    metrics consider labels with at least one true row: the same labels for every model, however many labels
    a file declares. If there are no true labels at all, a metric is 0.

    ``precision@k``, ``recall@k`` and ``f1@k`` are Annif's document averages ("doc avg") with a limit of k,
    and ``ndcg@k`` is its NDCG@k. They differ in three ways: Annif counts a row without labels as an nDCG
    of 1, here it is 0; Annif ignores true labels that its vocabulary lacks, here they count; and the NDCG
    without a k in its name divides by the sum for all labels of a row, even if a limit allows fewer.

    Examples
    --------
    >>> found = evaluate([[0, 2], [1]], [[2, 1], [0, 1]], inverse_propensity=[1.0, 2.0, 4.0], k=2)
    >>> found["p@2"], found["recall@2"], round(found["psp@2"], 1)
    (50.0, 75.0, 85.7)
    """
    truth, labels = check_problem(
        Y_true, top, None if inverse_propensity is None else np.size(inverse_propensity)
    )
    places = check_k(k)
    gains = None
    if inverse_propensity is not None:
        gains = check_per_label(inverse_propensity, truth.shape[1], "inverse_propensity")
    return RankingSums.of(truth, labels, places, gains, normalize, probabilities_of(top)).figures()
