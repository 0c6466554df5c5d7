"""Precision, recall and nDCG at k, plain and propensity-scored; coverage and macro averages at k.

Ranking metrics give every hit a gain (1, or the label's inverse propensity) and average over the rows; the
propensity-scored ones are then divided by what the best possible ranking reaches. Label metrics count hits
per label and average over the labels. Sources: Jain et al., KDD 2016, and the evaluation scripts of the
Extreme Classification (XMLC) repository.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from longleaf._validation import LabelsLike, check_per_label
from longleaf.metrics._hits import Floats, Hits, Ints, check_k, check_problem, find_hits, first, label_counts
from longleaf.metrics._ranking import best_gains, ndcg_curves, precision_curves, recall_curves, scored_hits


def evaluate(
    Y_true: LabelsLike,
    top: Any,
    inverse_propensity: npt.ArrayLike | None = None,
    k: int | Iterable[int] = (1, 3, 5),
    normalize: bool = True,
) -> dict[str, float]:
    """Judge ranked labels against the true ones.

    Parameters
    ----------
    Y_true : scipy.sparse matrix, dense array [rows, labels], or list of label lists
        True labels of each row. Labels that training never saw count like all others. The number of labels is
        that of the columns; for lists, that of ``inverse_propensity`` or what the largest label asks for.
    top : TopK, or int array [rows, width]
        Predicted labels, the best one first, each at most once in a row; -1 where there is none.
    inverse_propensity : array [labels], optional
        What a hit on each label is worth. Without it there are no propensity-scored metrics.
    k : int or ints
        How many predictions to judge. Above the width of ``top``, the missing ones are misses.
    normalize : bool
        Divide propensity-scored metrics by the best reachable, as the XMLC repository does. ``False`` leaves
        the paper's own form, which can exceed 100.

    Returns
    -------
    dict of str to float
        In percent, with these keys for every k:

        ``p@k``
            Hits among the first k, over k; mean of all rows.
        ``recall@k``
            Hits among the first k, over the number of the row's labels; mean of all rows.
        ``ndcg@k``
            Sum of ``1 / log2(1 + place)`` of the hits among the first k (places count from 1), over the same
            sum for hits at places 1 to ``min(k, number of the row's labels)``; mean of all rows.
        ``psp@k``, ``psrecall@k``, ``psndcg@k``
            As the three above, with each hit multiplied by the inverse propensity of its label. Normalised:
            divided by the same mean for the best ranking, which names each row's labels by falling inverse
            propensity. So normalised ``psp@k`` is the sum of the gains of all rows over the sum of the best
            k gains of all rows.
        ``coverage@k``
            Share of the labels in ``Y_true`` with at least one hit among the first k of any row.
        ``macro_precision@k``, ``macro_recall@k``, ``macro_f1@k``
            Mean, over the labels in ``Y_true``, of: hits on the label among the first k, over the times it is
            predicted there (0 if never); over its true rows; ``2 hits / (times predicted + true rows)``.

    Notes
    -----
    A row without labels counts as a row in every mean and adds 0 to it, to that of the best ranking too. The
    label metrics look at labels with at least one true row: the same labels for every model, however many
    labels a file declares. Where nothing can be reached (no true labels at all), a metric is 0.

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
    labels = first(labels, max(places))
    hits = find_hits(truth, labels)
    n_true = np.diff(truth.indptr)

    curves = _rank_curves(hits.astype(np.float64), n_true)
    if inverse_propensity is not None:
        gains = check_per_label(inverse_propensity, truth.shape[1], "inverse_propensity")
        scored = _rank_curves(scored_hits(hits, labels, gains), n_true)
        if normalize:
            best = _rank_curves(best_gains(truth, gains, max(places)), n_true)
            scored = {name: _ratio(curve, best[name]) for name, curve in scored.items()}
        curves |= {f"ps{name}": curve for name, curve in scored.items()}
    result = {f"{name}@{at}": 100.0 * float(curve[at - 1]) for name, curve in curves.items() for at in places}

    per_k = {at: _label_means(truth, labels[:, :at], hits[:, :at]) for at in places}
    names = next(iter(per_k.values()))
    return result | {f"{name}@{at}": 100.0 * per_k[at][name] for name in names for at in places}


def _rank_curves(gained: Floats, n_true: npt.NDArray[Any]) -> dict[str, Floats]:
    """Mean over the rows of precision, recall and nDCG at 1, 2, …, width, from what each place gained."""
    return {
        "p": precision_curves(gained).mean(axis=0),
        "recall": recall_curves(gained, n_true).mean(axis=0),
        "ndcg": ndcg_curves(gained, n_true).mean(axis=0),
    }


def _label_means(truth: sp.csr_array, labels: Ints, hits: Hits) -> dict[str, float]:
    """Coverage and macro averages over the labels that have a true row."""
    true, predicted, right = label_counts(truth, labels, hits)
    occurs = true > 0
    if not occurs.any():
        return dict.fromkeys(("coverage", "macro_precision", "macro_recall", "macro_f1"), 0.0)
    true, predicted, right = true[occurs], predicted[occurs], right[occurs]
    return {
        "coverage": float((right > 0).mean()),
        "macro_precision": float(_ratio(right, predicted).mean()),
        "macro_recall": float((right / true).mean()),
        "macro_f1": float((2.0 * right / (predicted + true)).mean()),
    }


def _ratio(part: npt.NDArray[Any], whole: npt.NDArray[Any]) -> Floats:
    """Divide, with 0 for a part of nothing."""
    result: Floats = np.divide(part, whole, out=np.zeros(len(part)), where=whole > 0)
    return result
