"""Long-tailed data with known label probabilities and known propensities.

In real data it is unknown which labels are missing. Here the complete labels are drawn from known
probabilities, and some are removed with known propensities, so that the theory can be tested, and the cost
of a wrong propensity model can be measured.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from scipy.special import expit, logit

from longleaf._validation import (
    LabelsLike,
    check_choice,
    check_labels,
    check_number,
    check_per_label,
    check_seed,
)
from longleaf.datasets._drawing import Floats, Random
from longleaf.datasets.generators import make_hierarchy, make_topics

STRUCTURES = {"hierarchy": make_hierarchy, "topics": make_topics}
HALVINGS = 40  # of an interval: enough for all significant digits

Sparse: TypeAlias = "sp.csr_matrix[np.float32]"
Law: TypeAlias = Callable[[Floats], Floats]
"""Maps the number of training rows in which each label is observed to its inverse propensity."""


@dataclass(frozen=True, eq=False)
class Truth:
    """Rows, their complete labels, and the probabilities from which these were drawn.

    Attributes
    ----------
    X, X_test : csr_matrix of float32 [rows, features]
    Y, Y_test : csr_matrix of float32 [rows, labels]
        Complete labels. Given the row, each was drawn independently with its probability.
    eta, eta_test : float64 array [rows, labels]
        The probability of each label of each row.
    """

    X: Sparse
    Y: Sparse
    eta: Floats
    X_test: Sparse
    Y_test: Sparse
    eta_test: Floats

    def propensities(self, law: Law) -> Floats:
        """Return the propensities that follow a law of observed counts, which in turn depend on them.

        A law such as Jain's refers to the observed counts ``n`` after labels are removed, not to the
        complete ones. So ``n`` solves ``n * law(n) = complete``, the expected complete count.

        Parameters
        ----------
        law : callable
            Maps counts [labels] to inverse propensities [labels] of at least 1. ``n * law(n)`` must not
            decrease.

        Returns
        -------
        float64 array [labels]
            Above 0 and at most 1.

        Examples
        --------
        >>> truth = make_truth(200, 900, 100, random_state=1)
        >>> bool(truth.propensities(lambda noted: 1 + 6 / (1 + noted)).min() > 1 / 7)
        True
        """
        complete = self.eta.sum(axis=0)
        low, high = np.zeros(len(complete)), complete.copy()
        for _ in range(HALVINGS):
            middle = (low + high) / 2
            above = middle * _obeyed(law, middle) > complete
            low, high = np.where(above, low, middle), np.where(above, middle, high)
        return 1.0 / _obeyed(law, high)


def make_truth(
    n_rows: int,
    n_features: int,
    n_labels: int,
    *,
    n_test: int = 0,
    structure: str = "hierarchy",
    sharpness: float = 20.0,
    labels_per_row: float = 5.0,
    features_per_row: float = 75.0,
    noise: float = 0.3,
    random_state: int | None = None,
) -> Truth:
    """Generate long-tailed data with known label probabilities.

    Rows are those of `make_hierarchy` or `make_topics`; the labels of that generator only determine the
    direction of each label. With ``c_j`` the direction of the mean of its rows,

        ``eta_j(x) = 1 / (1 + exp(-sharpness * (c_j . x) - b_j))``,

    where ``b_j`` is such that label ``j`` is as frequent among the rows as in the generated ones. All labels,
    of training and test rows, are then drawn from these probabilities.

    Parameters
    ----------
    n_rows, n_features, n_labels, n_test, labels_per_row, features_per_row, noise, random_state
        As in `make_hierarchy`. ``eta`` is dense, which suits some thousands of rows and labels.
    structure : {"hierarchy", "topics"}
        The generator of the rows. In a hierarchy, labels with near numbers are similar.
    sharpness : float
        How informative rows are about their labels; 0 is not at all.

    Returns
    -------
    Truth

    Examples
    --------
    >>> truth = make_truth(400, 900, 100, n_test=50, random_state=1)
    >>> truth.X.shape, truth.Y_test.shape, truth.eta.shape
    ((400, 900), (50, 100), (400, 100))
    """
    generator = STRUCTURES[check_choice(structure, "structure", STRUCTURES)]
    check_number(sharpness, "sharpness", low=0)
    random_state = check_seed(random_state)
    X, seeds = generator(
        n_rows,
        n_features,
        n_labels,
        n_test=n_test,
        labels_per_row=labels_per_row,
        features_per_row=features_per_row,
        noise=noise,
        random_state=random_state,
    )
    eta = _label_probabilities(X, seeds, sharpness)
    Y = _draw(eta, np.random.default_rng(None if random_state is None else [random_state, 1]))
    return Truth(X[:n_rows], Y[:n_rows], eta[:n_rows], X[n_rows:], Y[n_rows:], eta[n_rows:])


def lose_labels(Y: LabelsLike, propensity: npt.ArrayLike, random_state: int | None = None) -> Sparse:
    """Keep each label of each row with its propensity, as an annotator who misses labels would.

    Parameters
    ----------
    Y : sparse or dense matrix [rows, labels], or list of label lists
        Complete labels.
    propensity : array [labels]
        The probability that each label is observed, from 0 to 1. It may follow any law.
    random_state : int, optional
        The same seed gives the same labels.

    Returns
    -------
    csr_matrix of float32 [rows, labels]

    Examples
    --------
    >>> lose_labels([[0, 1], [1], [0]], [1.0, 0.0]).toarray().tolist()
    [[1.0, 0.0], [0.0, 0.0], [1.0, 0.0]]
    """
    chance = check_per_label(propensity, None, "propensity")
    complete = check_labels(Y, len(chance))
    if chance.max(initial=0.0) > 1:
        raise ValueError(f"propensity must be at most 1; got {chance.max()} for label {chance.argmax()}.")
    kept = np.random.default_rng(check_seed(random_state)).random(complete.nnz) < chance[complete.indices]
    pattern = complete.indices.copy(), complete.indptr.copy()  # these may belong to the caller
    noted = sp.csr_matrix((kept.astype(np.float32), *pattern), shape=complete.shape)
    noted.eliminate_zeros()
    return noted


def _obeyed(law: Law, counts: Floats) -> Floats:
    """Apply a law, and check that it returns inverse propensities."""
    inverse = check_per_label(law(counts), len(counts), "law's result")
    if inverse.min(initial=1.0) < 1:
        raise ValueError(
            f"law must return inverse propensities of at least 1; got {inverse.min():g} "
            f"for a label of {counts[inverse.argmin()]:g} rows."
        )
    return inverse


def _label_probabilities(X: Sparse, seeds: Sparse, sharpness: float) -> Floats:
    looks = (seeds.T @ X).tocsr()
    length = np.sqrt(np.asarray(looks.multiply(looks).sum(axis=1), np.float64).ravel())
    margin = sharpness * np.asarray((X @ looks.T).toarray(), np.float64) / length
    share = np.asarray(seeds.sum(axis=0), np.float64).ravel() / seeds.shape[0]
    return np.asarray(expit(margin + _offsets(margin, share)))


def _offsets(margin: Floats, share: Floats) -> Floats:
    """Return the offset of each label's margins that makes its mean probability equal its share."""
    target = logit(np.minimum(share, 1 - 0.5 / len(margin)))  # a label of every row stays below probability 1
    low, high = target - margin.max(axis=0), target - margin.min(axis=0)
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        above = expit(margin + middle).mean(axis=0) > share
        low, high = np.where(above, low, middle), np.where(above, middle, high)
    return np.asarray((low + high) / 2)


def _draw(eta: Floats, random: Random) -> Sparse:
    return sp.csr_matrix((random.random(eta.shape) < eta).astype(np.float32))
