"""Precision and propensity-scored precision at k, as the XMLC repository defines them."""

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

A, B = 0.55, 1.5
CUTS = (1, 3, 5)


def inverse_propensity(Y: sp.csr_matrix, a: float = A, b: float = B) -> npt.NDArray[np.float64]:
    """Return one inverse propensity per label, from the label counts of the training rows ``Y``.

    Jain, Prabhu and Varma, "Extreme multi-label loss functions for recommendation, tagging, ranking and
    other missing label applications", KDD 2016.
    """
    rows = Y.shape[0]
    counts = np.bincount(Y.indices, minlength=Y.shape[1])
    return np.asarray(1 + (np.log(rows) - 1) * (b + 1) ** a * (counts + b) ** -a, np.float64)


def evaluate(
    truth: sp.csr_matrix, top: npt.NDArray[np.int32], q: npt.NDArray[np.float64]
) -> dict[str, float]:
    """Judge ranked labels.

    Parameters
    ----------
    truth : csr_matrix of shape (n_rows, n_labels)
    top : int32 array of shape (n_rows, 5)
        Labels of each row, best first; -1 where there is none.
    q : float64 array of shape (n_labels,)
        Inverse propensities.

    Returns
    -------
    dict of str to float
        ``p@k`` and ``psp@k`` in percent for k = 1, 3, 5; ``psp@k`` is divided by the best reachable.
    """
    most = max(CUTS)
    rows = np.repeat(np.arange(len(top)), most).reshape(-1, most)
    found = np.asarray(truth[rows.ravel(), np.maximum(top, 0).ravel()]).reshape(-1, most)
    hit = (found > 0) & (top >= 0)
    hits, won = hit.sum(axis=0), np.where(hit, q[top], 0.0).sum(axis=0)
    of_row = np.repeat(np.arange(len(top)), np.diff(truth.indptr))
    worth = q[truth.indices][np.lexsort((-q[truth.indices], of_row))]  # of each row, the highest first
    place = np.arange(len(worth)) - truth.indptr[of_row]
    best = np.bincount(place[place < most], worth[place < most], minlength=most)
    result = {f"p@{k}": 100 * hits[:k].sum() / (k * len(top)) for k in CUTS}
    return result | {f"psp@{k}": 100 * won[:k].sum() / best[:k].sum() for k in CUTS}
