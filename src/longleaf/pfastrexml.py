"""PfastreXML: a forest that splits by propensity-scored nDCG, re-ranked by tail classifiers."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import check_is_fitted

from longleaf._ndcg_split import Matrix, best_sides, normalised_gains, separator
from longleaf._validation import (
    LabelsLike,
    Rows,
    check_count,
    check_features,
    check_labels,
    check_number,
    check_threads,
)
from longleaf.propensity import check_constants, inverse_propensity_from_counts
from longleaf.search import TopK

ROWS_AT_ONCE = 1024


@dataclass(eq=False)
class NdcgTree:
    """One tree: inner nodes have a separator and two children, leaves what their rows' labels are worth.

    ``children[v]`` are the nodes for margins of at most and above 0, or (-1, -1) at a leaf; ``place[v]`` is
    the line of ``weights`` and ``bias`` of an inner node, and of ``leaves`` of a leaf.
    """

    children: list[tuple[int, int]] = field(default_factory=list)
    place: list[int] = field(default_factory=list)
    separators: list[tuple[Matrix, float]] = field(default_factory=list)
    worth: list[Matrix] = field(default_factory=list)

    def freeze(self, n_features: int) -> Self:
        """Turn the lists into matrices."""
        lines = [w for w, _ in self.separators]
        self.weights = sp.vstack(lines, format="csr") if lines else sp.csr_matrix((0, n_features))
        self.bias = np.array([b for _, b in self.separators])
        self.leaves = sp.vstack(self.worth, format="csr")
        self.separators, self.worth = [], []
        return self

    def find(self, X: Matrix) -> Matrix:
        """Give the leaves' lines that the rows fall into [rows, labels]."""
        children, place = np.array(self.children), np.array(self.place)
        at = np.zeros(X.shape[0], np.int64)
        rows = np.flatnonzero(children[at, 0] >= 0)
        while len(rows):
            line = place[at[rows]]
            margin = np.asarray(X[rows].multiply(self.weights[line]).sum(axis=1)).ravel() + self.bias[line]
            at[rows] = children[at[rows], (margin > 0).astype(np.int64)]
            rows = rows[children[at[rows], 0] >= 0]
        return self.leaves[place[at]]


class PfastreXML(BaseEstimator):  # type: ignore[misc]
    """A forest of nDCG-splitting trees over the rows, with tail classifiers re-ranking what it finds.

    Jain, Prabhu and Varma, "Extreme multi-label loss functions for recommendation, tagging, ranking and other
    missing label applications", KDD 2016. A tree splits the rows in two until at most ``max_leaf`` are left,
    so that the propensity-scored nDCG of the two parts is highest; a leaf gives what its rows' labels are
    worth on average. With the mean ``P`` over the trees, labels are ranked by

        alpha log P_j(x) + (1 - alpha) log(1 / (1 + v_j)),   v_j = exp(gamma / 2 |x - mu_j|²),

    where ``mu_j`` is the mean of the rows with label j. Written for comparison: a
    forest takes minutes where `longleaf.PLT` takes seconds. It can be pickled, not saved as a folder.

    Parameters
    ----------
    n_trees, max_leaf : int
        Trees, and rows of a leaf.
    C : float
        The cost of the separators' logistic loss.
    alpha, gamma : float
        The share of the forest in the ranking, and how fast a tail classifier falls with distance.
    max_labels : int
        The labels that a leaf keeps, the best ones.
    normalize, bias, propensity, k, random_state
        As in `longleaf.PLT`.
    n_jobs : int or None
        Processes that grow trees, and threads of searching; the model is the same for any number.

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
        normalize: bool = True,
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
        """Grow the trees and note the mean row of each label; arguments as in `longleaf.PLT.fit`."""
        if checkpoint is not None:
            raise ValueError(
                "checkpoint must be None for PfastreXML, whose training does not fall into parts."
            )
        self._check_settings()
        rows, labels = check_features(X, normalize=self.normalize), check_labels(y, name="y")
        if rows.n_rows != labels.shape[0] or labels.nnz == 0:
            raise ValueError(
                f"X and y must have the same number of rows, and a label; "
                f"got {rows.n_rows} and {labels.shape[0]} rows, {labels.nnz} labels."
            )
        features, Y = _scaled_rows(rows), sp.csr_matrix(labels).astype(np.float64)
        self.n_rows_, self.n_labels_ = Y.shape
        self.n_features_in_ = rows.n_features
        self.label_counts_ = np.bincount(Y.indices, minlength=self.n_labels_).astype(np.int64)
        a, b = check_constants(self.propensity)
        q = inverse_propensity_from_counts(self.label_counts_, self.n_rows_, a=a, b=b)
        worth = sp.csr_matrix((q[Y.indices], Y.indices, Y.indptr), shape=Y.shape)
        seeds = check_random_state(self.random_state).randint(2**31 - 1, size=self.n_trees)
        self.trees_: list[NdcgTree] = []
        grow = delayed(self._grow)
        processes = min(check_threads(self.n_jobs), self.n_trees)
        tasks = (grow(features, worth, int(seed)) for seed in seeds)
        for tree in Parallel(processes, return_as="generator")(tasks):
            self.trees_.append(tree)
            if progress is not None:
                progress(len(self.trees_) / self.n_trees)
        means = sp.diags_array(1.0 / np.maximum(self.label_counts_, 1)) @ (Y.T @ features)
        self.means_ = sp.csr_matrix(means)
        return self

    def top_k(self, X: Any, k: int | None = None, *, n_jobs: int | None = None) -> TopK:
        """Find the best k labels of each row among those that its leaves hold.

        Returns
        -------
        TopK
            ``labels`` int32 [rows, k] padded with -1; ``scores`` float32, the exponential of what labels are
            ranked by; ``evaluations`` are the rows' candidates.
        """
        check_is_fitted(self, "means_")
        k = check_count(self.k if k is None else k, "k")
        rows = check_features(X, n_features=self.n_features_in_, normalize=self.normalize)
        features = _scaled_rows(rows)
        parts = [slice(begin, begin + ROWS_AT_ONCE) for begin in range(0, rows.n_rows, ROWS_AT_ONCE)]
        with ThreadPoolExecutor(check_threads(self.n_jobs if n_jobs is None else n_jobs)) as pool:
            found = list(pool.map(lambda part: self._rank(features[part], k), parts))
        if not found:
            return TopK(np.zeros((0, k), np.int32), np.zeros((0, k), np.float32), np.zeros(0, np.int64))
        labels, scores, candidates = (np.concatenate(column) for column in zip(*found, strict=True))
        return TopK(labels, scores, candidates)

    def predict(self, X: Any) -> sp.csr_matrix[np.float32]:
        """Give the top ``k`` labels of each row as a CSR indicator [rows, labels]."""
        labels = self.top_k(X).labels
        row, place = np.nonzero(labels >= 0)
        ones = np.ones(len(row), np.float32)
        return sp.csr_matrix((ones, (row, labels[row, place])), shape=(len(labels), self.n_labels_))

    def _check_settings(self) -> None:
        for name in ("n_trees", "max_leaf", "max_labels", "k"):
            check_count(getattr(self, name), name)
        check_number(self.C, "C", low=0, open_low=True)
        check_number(self.alpha, "alpha", low=0, high=1)
        check_number(self.gamma, "gamma", low=0)
        check_number(self.bias, "bias")

    def _grow(self, X: Matrix, worth: Matrix, seed: int) -> NdcgTree:
        """Grow one tree, the parts of a node before those of the next."""
        random, tree, gains = np.random.RandomState(seed), NdcgTree(), normalised_gains(worth)
        waiting = [np.arange(X.shape[0])]
        for held in waiting:  # grows while it is walked
            split = None
            if len(held) > self.max_leaf:
                x, sides = X[held], best_sides(gains[held], random)
                split = separator(x, sides, self.C, self.bias, seed)
            above = np.zeros(len(held), bool) if split is None else x @ split[0] + split[1] > 0
            if split is None or above.all() or not above.any():
                tree.children.append((-1, -1))
                tree.place.append(len(tree.worth))
                tree.worth.append(_best(_mean(worth[held]), self.max_labels))
                continue
            tree.children.append((len(waiting), len(waiting) + 1))
            tree.place.append(len(tree.separators))
            tree.separators.append((sp.csr_matrix(split[0]), split[1]))
            waiting += [held[~above], held[above]]
        return tree.freeze(X.shape[1])

    def _rank(
        self, X: Matrix, k: int
    ) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.float32], npt.NDArray[np.int64]]:
        forest = sp.csr_matrix(sum(tree.find(X) for tree in self.trees_) / len(self.trees_))
        row = np.repeat(np.arange(X.shape[0]), np.diff(forest.indptr))
        label = forest.indices
        dot = np.asarray(X[row].multiply(self.means_[label]).sum(axis=1)).ravel()
        squares = [np.asarray(m.multiply(m).sum(axis=1)).ravel() for m in (X, self.means_)]
        distance = np.maximum(squares[0][row] + squares[1][label] - 2 * dot, 0.0)
        score = self.alpha * np.log(forest.data) - (1 - self.alpha) * np.logaddexp(
            0.0, self.gamma / 2 * distance
        )
        order = np.lexsort((label, -score, row))
        place = np.arange(len(order)) - forest.indptr[row]
        kept = place < k
        labels, scores = np.full((X.shape[0], k), -1, np.int32), np.zeros((X.shape[0], k), np.float32)
        best = order[kept]
        labels[row[best], place[kept]] = label[best]
        scores[row[best], place[kept]] = np.exp(score[best])
        return labels, scores, np.diff(forest.indptr).astype(np.int64)


def _scaled_rows(rows: Rows) -> Matrix:
    """Give the rows as a matrix, each times its scale."""
    data = rows.data.astype(np.float64) * np.repeat(rows.scale.astype(np.float64), np.diff(rows.indptr))
    return sp.csr_matrix((data, rows.indices, rows.indptr), shape=(rows.n_rows, rows.n_features))


def _mean(rows: Matrix) -> Matrix:
    """Give the mean of some rows as a single sparse line."""
    return sp.csr_matrix(np.full((1, rows.shape[0]), 1.0 / rows.shape[0])) @ rows


def _best(line: Matrix, n: int) -> Matrix:
    """Keep the n largest entries of a single line."""
    if line.nnz <= n:
        return line
    kept = np.sort(np.lexsort((line.indices, -line.data))[:n])
    return sp.csr_matrix((line.data[kept], line.indices[kept], [0, n]), shape=line.shape)
