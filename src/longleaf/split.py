"""Splitting rows for training, development and testing such that training keeps every label.

Given: the labels of each row. Result: a split for each row. A plain random split holds out the only rows of
many rare labels, which then cannot be learned. Here rows are visited in random order, and one is held out
only if each of its labels keeps enough other rows in training, until enough rows are held out. These are then
divided at random, so that development and test rows have the same distribution.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from longleaf._validation import LabelsLike, check_count, check_labels, check_number, check_seed

TRAIN, DEV, TEST = 0, 1, 2


def split_rows(
    Y: LabelsLike, dev: float = 0.1, test: float = 0.1, *, keep: int = 1, random_state: int = 1
) -> npt.NDArray[np.int8]:
    """Assign each row to a split: 0 for training, 1 for development, 2 for testing.

    Parameters
    ----------
    Y : sparse or dense indicator [rows, labels], or list of label lists
    dev, test : float
        The shares of rows to hold out; their sum must be below 1. Fewer are held out if ``keep`` requires it.
    keep : int
        Minimum number of training rows of each label, or all of its rows if it has fewer.
    random_state : int
        The same seed gives the same split.

    Returns
    -------
    int8 array [rows]

    Examples
    --------
    >>> splits = split_rows([[0], [0], [0], [0, 1]], dev=0.25, test=0.25)
    >>> sorted(splits.tolist()), int(splits[3])
    ([0, 0, 1, 2], 0)
    """
    labels = check_labels(Y)
    shares = [check_number(share, name, low=0.0) for share, name in ((dev, "dev"), (test, "test"))]
    if sum(shares) >= 1:
        raise ValueError(f"dev and test must sum to less than 1; got {dev:g} and {test:g}.")
    random = np.random.RandomState(check_seed(random_state))
    n_rows = labels.shape[0]
    n_dev, n_test = (round(share * n_rows) for share in shares)
    held_out = _held_out(labels.indptr, labels.indices, labels.shape[1], n_dev + n_test, keep, random)
    n_test = round(len(held_out) * n_test / max(1, n_dev + n_test))
    shuffled = random.permutation(held_out)
    splits = np.zeros(n_rows, np.int8)
    splits[shuffled[:n_test]] = TEST
    splits[shuffled[n_test:]] = DEV
    return splits


def _held_out(
    indptr: npt.NDArray[np.integer],
    indices: npt.NDArray[np.integer],
    n_labels: int,
    n_held_out: int,
    keep: int,
    random: np.random.RandomState,
) -> npt.NDArray[np.int64]:
    """Choose up to ``n_held_out`` rows such that every label keeps ``keep`` others."""
    left = np.bincount(indices, minlength=n_labels)
    keep = check_count(keep, "keep", low=0)
    chosen: list[int] = []
    for row in random.permutation(len(indptr) - 1).tolist():
        if len(chosen) == n_held_out:
            break
        own = indices[indptr[row] : indptr[row + 1]]
        if np.all(left[own] > keep):
            left[own] -= 1
            chosen.append(row)
    return np.array(chosen, np.int64)
