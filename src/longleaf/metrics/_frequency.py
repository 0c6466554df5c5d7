"""Metrics by label frequency: head, torso and tail."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from longleaf._validation import LabelsLike, check_per_label
from longleaf.metrics._hits import Floats, Ints, check_k, check_problem, find_hits, first, label_counts

BINS = ("head", "torso", "tail", "unseen")


@dataclass(frozen=True)
class FrequencyBin:
    """Metrics of labels of similar frequency in training; all shares in percent.

    Attributes
    ----------
    name : str
        ``head``, ``torso``, ``tail`` or ``unseen``.
    labels : int
        Number of labels in the bin.
    min_count, max_count : int
        Fewest and most training rows of a label in it (0 and 0 if it has no labels).
    assignments : int
        True assignments of the bin's labels: pairs of an evaluated row and its label.
    share : float
        Share of the bin's labels in all true assignments.
    recall : float
        Share of the bin's true assignments that are among the first k predictions of their row.
    precision : float
        Share of the predictions of the bin's labels, among the first k, that are correct.
    coverage : float
        Share of the bin's labels with a true row that have at least one hit among the first k.
    """

    name: str
    labels: int
    min_count: int
    max_count: int
    assignments: int
    share: float
    recall: float
    precision: float
    coverage: float

    @property
    def is_judged(self) -> bool:
        """Whether an evaluated row has a label of the bin; otherwise the zeros are meaningless."""
        return self.share > 0


def frequency_table(Y_true: LabelsLike, top: Any, counts: npt.ArrayLike, k: int = 5) -> list[FrequencyBin]:
    """Evaluate ranked labels separately for frequent and rare labels.

    Labels are ordered by their number of training rows. The *head* is the fewest of the most frequent labels
    that hold at least half of all training assignments; head and *torso* are the fewest that hold at least
    80 % of them; the *tail* is the rest that occurs in training; *unseen* labels do not. Labels with the same
    count are never separated: if one of them is needed to reach a share, all are included. However, the
    rarest labels are always in the tail, and the next rarest never in the head: with three or more different
    counts none of head, torso and tail is empty, even if most labels occur once. With two counts there are
    only head and tail; with one count all labels are head.

    Parameters
    ----------
    Y_true, top
        As in `evaluate`; lists of labels must be below the length of ``counts``.
    counts : array [labels]
        Number of training rows with each label.
    k : int
        Number of predictions to evaluate.

    Returns
    -------
    list of FrequencyBin
        Head, torso, tail, unseen; bins without labels and shares of nothing are 0.
    """
    truth, labels = check_problem(Y_true, top, np.size(counts))
    frequency = check_per_label(counts, truth.shape[1], "counts")
    labels = first(labels, max(check_k(k)))
    true, predicted, right = label_counts(truth, labels, find_hits(truth, labels))
    bins = frequency_bins(frequency)
    rows = []
    for number, name in enumerate(BINS):
        inside = bins == number
        occurs = inside & (true > 0)
        rows.append(
            FrequencyBin(
                name=name,
                labels=int(inside.sum()),
                min_count=int(frequency[inside].min()) if inside.any() else 0,
                max_count=int(frequency[inside].max()) if inside.any() else 0,
                assignments=int(true[inside].sum()),
                share=_percent(true[inside].sum(), true.sum()),
                recall=_percent(right[inside].sum(), true[inside].sum()),
                precision=_percent(right[inside].sum(), predicted[inside].sum()),
                coverage=_percent((right[occurs] > 0).sum(), occurs.sum()),
            )
        )
    return rows


def frequency_bins(frequency: Floats) -> Ints:
    """Return the bin of each label as in `frequency_table`: 0 head, 1 torso, 2 tail, 3 unseen."""
    bins = np.full(len(frequency), 3, dtype=np.int64)
    rising, labels = np.unique(frequency[frequency > 0], return_counts=True)
    counts = rising[::-1]
    if len(counts) == 0:
        return bins
    reached = (counts * labels[::-1]).cumsum()
    # With whole numbers, so that rounding does not miss a share that is reached exactly.
    half, most = np.searchsorted(100 * reached, np.array([50, 80]) * reached[-1]).tolist()
    rarest = len(counts) - 1
    head = min(half, max(0, rarest - 2))
    torso = min(max(most, head + 1), max(0, rarest - 1))
    for number, last in ((2, rarest), (1, torso), (0, head)):
        bins[frequency >= counts[last]] = number
    return bins


def _percent(part: float, whole: float) -> float:
    return 100.0 * float(part) / float(whole) if whole else 0.0
