"""Rows for training, for choosing and for judging, such that training keeps every label.

Given: the labels of each row. Out: a part for each row. A plain random split sends the only rows of many rare
labels to where nothing can be learned from them. Here rows are met in random order, and one is held out only
if each of its labels keeps enough other rows in training, until as many are held out as are wanted. What is
held out is then dealt at random, so that development and test rows are alike.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from longleaf._validation import LabelsLike, check_count, check_labels, check_number, check_seed

TRAIN, DEV, TEST = 0, 1, 2


def split_rows(
    Y: LabelsLike, dev: float = 0.1, test: float = 0.1, *, keep: int = 1, random_state: int = 1
) -> npt.NDArray[np.int8]:
    """Return each row a part: 0 for training, 1 for development, 2 for testing.

    Parameters
    ----------
    Y : sparse or dense indicator [rows, labels], or list of label lists
    dev, test : float
        The shares of rows that are held out; together below 1. Fewer are where ``keep`` forbids more.
    keep : int
        How many rows each label has in training at least, or all of its rows if it has no more.
    random_state : int
        The same number gives the same split.

    Returns
    -------
    int8 array [rows]

    Examples
    --------
    >>> parts = split_rows([[0], [0], [0], [0, 1]], dev=0.25, test=0.25)
    >>> sorted(parts.tolist()), int(parts[3])
    ([0, 0, 1, 2], 0)
    """
    labels = check_labels(Y)
    shares = [check_number(share, name, low=0.0) for share, name in ((dev, "dev"), (test, "test"))]
    if sum(shares) >= 1:
        raise ValueError(f"dev and test must be below 1 together; got {dev:g} and {test:g}.")
    random = np.random.RandomState(check_seed(random_state))
    n_rows = labels.shape[0]
    n_dev, n_test = (round(share * n_rows) for share in shares)
    held_out = _held_out(labels.indptr, labels.indices, labels.shape[1], n_dev + n_test, keep, random)
    n_test = round(len(held_out) * n_test / max(1, n_dev + n_test))
    dealt = random.permutation(held_out)
    parts = np.zeros(n_rows, np.int8)
    parts[dealt[:n_test]] = TEST
    parts[dealt[n_test:]] = DEV
    return parts


def _held_out(
    indptr: npt.NDArray[np.integer],
    indices: npt.NDArray[np.integer],
    n_labels: int,
    wanted: int,
    keep: int,
    random: np.random.RandomState,
) -> npt.NDArray[np.int64]:
    """Choose up to ``wanted`` rows that no label misses."""
    left = np.bincount(indices, minlength=n_labels)
    keep = check_count(keep, "keep", low=0)
    chosen: list[int] = []
    for row in random.permutation(len(indptr) - 1).tolist():
        if len(chosen) == wanted:
            break
        own = indices[indptr[row] : indptr[row + 1]]
        if np.all(left[own] > keep):
            left[own] -= 1
            chosen.append(row)
    return np.array(chosen, np.int64)
