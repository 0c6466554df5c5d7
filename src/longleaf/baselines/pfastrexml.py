"""PfastreXML: a forest that splits by propensity-scored nDCG, re-ranked by tail classifiers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from longleaf import _core
from longleaf._validation import (
    LabelsLike,
    Rows,
    check_count,
    check_features,
    check_labels,
    check_number,
    check_threads,
)
from longleaf.baselines.ndcg_tree import NdcgTree, grow_trees
from longleaf.propensity import check_constants, inverse_propensity_from_counts
from longleaf.search.top_k import TopK
from longleaf.training.solver import check_bias, check_cost


class PfastreXML(BaseEstimator):  # type: ignore[misc]
    """A forest of nDCG-splitting trees over the rows, with re-ranking by tail classifiers.

    Jain, Prabhu and Varma, "Extreme multi-label loss functions for recommendation, tagging, ranking and other
    missing label applications", KDD 2016. A tree splits the rows in two until at most ``max_leaf`` are left,
    so that the propensity-scored nDCG of the two sides is highest; a leaf has the mean gains of its rows'
    labels. With the mean ``P`` over the trees, labels are ranked by

        alpha log P_j(x) + (1 - alpha) log(1 / (1 + v_j)),   v_j = exp(gamma / 2 |x - mu_j|²),

    where ``mu_j`` is the mean of the rows with label j, with all rows at unit length. Implemented for
    comparison: it can be pickled, but not saved as a folder.

    Parameters
    ----------
    n_trees, max_leaf : int
        Number of trees, and maximum rows of a leaf.
    C : float
        Cost of an error in the separators' logistic loss.
    alpha, gamma : float
        The weight of the forest in the ranking, and how fast a tail classifier falls with distance.
    max_labels : int
        Maximum labels of a leaf; the best are kept.
    normalize : bool
        Whether the trees also see rows at unit length; by default, as in the authors' code, they do not.
    bias, propensity, k, random_state
        As in `longleaf.PLT`.
    n_jobs : int or None
        Threads for training and search; the model is the same for any number.

    Examples
    --------
    >>> X, Y = [[1.0, 0.0], [0.9, 0.1], [0.0, 1.0]], [[0], [0], [1]]
    >>> PfastreXML(n_trees=3, max_leaf=1, random_state=1).fit(X, Y).top_k([[0.0, 1.0]], k=1).labels
    array([[1]], dtype=int32)
    """

    def __init__(
        self,
        n_trees: int = 50,
        max_leaf: int = 10,
        C: float = 1.0,
        alpha: float = 0.8,
        gamma: float = 30.0,
        max_labels: int = 100,
        normalize: bool = False,
        bias: float = 1.0,
        propensity: tuple[float, float] = (0.55, 1.5),
        k: int = 5,
        random_state: Any = None,
        n_jobs: int | None = -1,
    ) -> None:
        self.n_trees = n_trees
        self.max_leaf = max_leaf
        self.C = C
        self.alpha = alpha
        self.gamma = gamma
        self.max_labels = max_labels
        self.normalize = normalize
        self.bias = bias
        self.propensity = propensity
        self.k = k
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(
        self,
        X: Any,
        y: LabelsLike,
        *,
        progress: Callable[[float], None] | None = None,
        checkpoint: None = None,
    ) -> Self:
        """Grow the trees and compute the mean row of each label; arguments as in `longleaf.PLT.fit`."""
        if checkpoint is not None:
            raise ValueError("checkpoint must be None for PfastreXML, whose training cannot be divided.")
        self._check_settings()
        rows, labels = check_features(X, normalize=self.normalize), check_labels(y, name="y")
        if rows.n_rows != labels.shape[0] or labels.nnz == 0:
            raise ValueError(
                f"X and y must have the same number of rows, and a label; "
                f"got {rows.n_rows} and {labels.shape[0]} rows, {labels.nnz} labels."
            )
        Y = sp.csr_matrix(labels)
        self.n_rows_, self.n_labels_ = Y.shape
        self.n_features_in_ = rows.n_features
        self.label_counts_ = np.bincount(Y.indices, minlength=self.n_labels_).astype(np.int64)
        a, b = check_constants(self.propensity)
        gains = inverse_propensity_from_counts(self.label_counts_, self.n_rows_, a=a, b=b)
        seeds = check_random_state(self.random_state).randint(2**31 - 1, size=self.n_trees)
        self.trees_: list[NdcgTree] = grow_trees(
            rows,
            Y,
            gains,
            seeds,
            max_leaf=self.max_leaf,
            max_labels=self.max_labels,
            C=self.C,
            bias=self.bias,
            threads=check_threads(self.n_jobs),
            progress=progress,
        )
        self.means_ = _label_means(check_features(X), Y, self.label_counts_)
        self.__dict__.pop("_forest", None)
        if progress is not None:
            progress(1.0)
        return self

    def top_k(self, X: Any, k: int | None = None, *, n_jobs: int | None = None) -> TopK:
        """Return the best k labels of each row among those in its leaves.

        Returns
        -------
        TopK
            ``labels`` int32 [rows, k] padded with -1; ``scores`` float32, the exponential of the
            ranking function; ``probabilities`` are NaN, as there are none; ``evaluations`` are the
            numbers of candidates.
        """
        check_is_fitted(self, "means_")
        self._check_settings()  # they may have changed since fit
        k = check_count(self.k if k is None else k, "k")
        rows = check_features(X, n_features=self.n_features_in_, normalize=self.normalize)
        threads = check_threads(self.n_jobs if n_jobs is None else n_jobs)
        found = self._prepare().top_k(
            *rows.csr,
            rows.scale,
            check_features(X).scale,
            k=k,
            alpha=self.alpha,
            gamma=self.gamma,
            threads=threads,
        )
        labels, scores, candidates = found
        return TopK(labels, scores, np.full_like(scores, np.nan), candidates)

    def predict(self, X: Any) -> sp.csr_matrix[np.float32]:
        """Return the top ``k`` labels of each row as a CSR indicator [rows, labels]."""
        labels = self.top_k(X).labels
        row, place = np.nonzero(labels >= 0)
        ones = np.ones(len(row), np.float32)
        return sp.csr_matrix((ones, (row, labels[row, place])), shape=(len(labels), self.n_labels_))

    def _check_settings(self) -> None:
        for name in ("n_trees", "max_leaf", "max_labels", "k"):
            check_count(getattr(self, name), name)
        check_cost(self.C)
        check_number(self.alpha, "alpha", low=0, high=1)
        check_number(self.gamma, "gamma", low=0)
        check_bias(self.bias)

    def _prepare(self) -> _core.NdcgForest:
        """Return the native forest, which is created on first use and not pickled."""
        if "_forest" not in self.__dict__:
            means = self.means_
            self._forest = _core.NdcgForest(
                [vars(tree) for tree in self.trees_],
                means.indptr.astype(np.int64),
                means.indices.astype(np.int32, copy=False),
                means.data,
                self.n_features_in_,
            )
        return self._forest

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = super().__getstate__()
        return {name: value for name, value in state.items() if name != "_forest"}


def _label_means(rows: Rows, Y: Any, counts: Any) -> sp.csr_matrix[np.float32]:
    """Return the mean of the rows with each label [labels, features]; none for a label without rows."""
    data = rows.data * np.repeat(rows.scale, np.diff(rows.indptr))
    X = sp.csr_matrix((data, rows.indices, rows.indptr), shape=(rows.n_rows, rows.n_features))
    means = sp.csr_matrix(Y.T @ X)
    means.sort_indices()
    means.data /= np.repeat(counts, np.diff(means.indptr)).astype(np.float32)
    return means
