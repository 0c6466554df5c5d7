"""The basis of all metrics: validated input, hits, and counts per label.

A *hit* is a predicted label that its row has.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from longleaf._validation import LabelsLike, check_labels, check_top, is_label_lists

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Hits = npt.NDArray[np.bool_]


def check_problem(
    Y_true: LabelsLike, top: Any, n_labels: int | None, *, name: str = "top"
) -> tuple[sp.csr_array, Ints]:
    """Validate true and predicted labels together.

    ``n_labels`` is the number of labels for label lists; by default it follows from the largest label, true
    or predicted. ``name`` is the name of ``top`` in error messages.
    """
    lists = is_label_lists(Y_true)
    truth = check_labels(Y_true, n_labels if lists else None, name="Y_true")
    if truth.shape[0] == 0:
        raise ValueError("Y_true must have at least one row; got 0.")
    open_ended = lists and n_labels is None
    labels = check_top(top, truth.shape[0], None if open_ended else truth.shape[1], name=name)
    if open_ended:
        shape = (truth.shape[0], max(truth.shape[1], int(labels.max(initial=-1)) + 1))
        truth = sp.csr_array((truth.data, truth.indices, truth.indptr), shape=shape)
    return truth, labels


def check_k(k: int | Iterable[int]) -> list[int]:
    """Return the cut-offs as a list of ints."""
    places = list(k) if isinstance(k, Iterable) else [k]
    if not places or any(not isinstance(at, int | np.integer) or at < 1 for at in places):
        raise ValueError(f"k must be whole numbers of at least 1; got {k!r}.")
    return [int(at) for at in places]


def first(labels: Ints, width: int) -> Ints:
    """Truncate or pad [rows, any] to [rows, width]."""
    missing = max(0, width - labels.shape[1])
    return np.pad(labels[:, :width], ((0, 0), (0, missing)), constant_values=-1)


def find_hits(truth: sp.csr_array, labels: Ints) -> Hits:
    """Return whether each predicted label is in its row, by search in sorted (row, label) numbers."""
    n_rows, n_labels = truth.shape
    row_of = np.repeat(np.arange(n_rows), np.diff(truth.indptr))
    known = np.append(row_of * n_labels + truth.indices, n_rows * n_labels)
    wanted = np.arange(n_rows)[:, None] * n_labels + labels
    found: Hits = known[np.searchsorted(known, wanted)] == wanted
    return found & (labels >= 0)


def label_counts(truth: sp.csr_array, labels: Ints, hits: Hits) -> tuple[Ints, Ints, Ints]:
    """Return for every label the number of true rows, predictions and hits."""
    n_labels = truth.shape[1]
    true = np.bincount(truth.indices, minlength=n_labels)
    predicted = np.bincount(labels[labels >= 0], minlength=n_labels)
    return true, predicted, np.bincount(labels[hits], minlength=n_labels)
