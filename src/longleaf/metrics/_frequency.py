"""The head, torso and tail table."""

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
    """How labels of similar frequency in training fare; all shares in percent.

    Attributes
    ----------
    name : str
        ``head``, ``torso``, ``tail`` or ``unseen``.
    labels : int
        Number of labels in the bin.
    min_count, max_count : int
        Fewest and most training rows of a label in it (0 and 0 if it has no labels).
    share : float
        Part of all true assignments (pairs of a row and its label) that the bin's labels make up.
    recall : float
        Part of the bin's true assignments that are among the first k predictions of their row.
    precision : float
        Part of the predictions of the bin's labels, among the first k, that are right.
    coverage : float
        Part of the bin's labels that have a true row, with at least one hit among the first k.
    """

    name: str
    labels: int
    min_count: int
    max_count: int
    share: float
    recall: float
    precision: float
    coverage: float

    @property
    def is_judged(self) -> bool:
        """Whether a judged row has a label of the bin; if none has, its zeros say nothing of the model."""
        return self.share > 0


def frequency_table(Y_true: LabelsLike, top: Any, counts: npt.ArrayLike, k: int = 5) -> list[FrequencyBin]:
    """Judge ranked labels apart for frequent and rare labels.

    Labels are ordered by their number of training rows. The *head* is the fewest of the most frequent labels
    that hold at least half of all training assignments; head and *torso* are the fewest that hold at least
    80 % of them; the *tail* is the rest that occurs in training; *unseen* labels do not. Labels with the same
    count are never parted: where one of them is needed to reach a share, all are taken. But the rarest labels
    are always the tail, and the next rarest never the head: with three different counts or more none of head,
    torso and tail is empty, also in a small catalogue where most labels occur once. With two counts there are
    head and tail, with one all labels are head.

    Parameters
    ----------
    Y_true, top
        As in `evaluate`; lists of labels may go up to the length of ``counts``.
    counts : array [labels]
        Number of training rows with each label.
    k : int
        How many predictions to judge.

    Returns
    -------
    list of FrequencyBin
        Head, torso, tail, unseen; a bin without labels, or a share of nothing, has zeros.
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
                share=_percent(true[inside].sum(), true.sum()),
                recall=_percent(right[inside].sum(), true[inside].sum()),
                precision=_percent(right[inside].sum(), predicted[inside].sum()),
                coverage=_percent((right[occurs] > 0).sum(), occurs.sum()),
            )
        )
    return rows


def frequency_bins(frequency: Floats) -> Ints:
    """0 for head, 1 for torso, 2 for tail, 3 for unseen labels, as `frequency_table` tells them apart."""
    bins = np.full(len(frequency), 3, dtype=np.int64)
    rising, labels = np.unique(frequency[frequency > 0], return_counts=True)
    counts = rising[::-1]
    if len(counts) == 0:
        return bins
    reached = (counts * labels[::-1]).cumsum()
    # In whole numbers, so that a share reached exactly is not missed by rounding.
    half, most = np.searchsorted(100 * reached, np.array([50, 80]) * reached[-1]).tolist()
    rarest = len(counts) - 1
    head = min(half, max(0, rarest - 2))
    torso = min(max(most, head + 1), max(0, rarest - 1))
    for number, last in ((2, rarest), (1, torso), (0, head)):
        bins[frequency >= counts[last]] = number
    return bins


def _percent(part: float, whole: float) -> float:
    return 100.0 * float(part) / float(whole) if whole else 0.0
