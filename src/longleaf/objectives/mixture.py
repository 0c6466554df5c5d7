"""Frank-Wolfe: a mixture of a few utilities whose predictions make a macro measure large on average.

Given are a model, rows, and a measure of expected hits and predictions per label. A randomised classifier
draws one utility for a row and predicts the best k labels by it; the expected counts of a mixture are the
weighted mean of those of its utilities. The measure's slope at these counts is a line in the probability of
each label: the best k labels by this utility are the step that raises the measure the most. A share of it is
mixed in, the best one on a grid, and so on. The utilities and weights also serve rows that come later, one by
one.

Source: Schultheis et al., "Consistent algorithms for multi-label classification with macro-at-k metrics",
ICLR 2024 (arXiv 2401.16594).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from longleaf._validation import check_count
from longleaf.estimator import LabelEstimator
from longleaf.objectives.measures import Doubles
from longleaf.objectives.rows import Counts, RowSet
from longleaf.search.top_k import TopK
from longleaf.search.utility import Utility

GRID = 64
"""Shares that are tried in a step; then as many around the best."""
LEAST_SHARE = GRID**-2


@dataclass(frozen=True, eq=False)
class Mixture:
    """Utilities, one of which is drawn for each row.

    Attributes
    ----------
    utilities : tuple of Utility
    weights : float64 array [utilities]
        How likely each is drawn; they sum to 1.
    k : int
        How many labels the mixture was made for.

    Examples
    --------
    >>> import longleaf as ll
    >>> X, Y = [[1.0, 0.0], [0.9, 0.1], [0.0, 1.0]], [[0], [0, 1], [1]]
    >>> model = ll.PLT(n_trees=1, random_state=1).fit(X, Y)
    >>> mixture = ll.optimize(model, X, k=1, method="frank-wolfe").mixture
    >>> mixture.top_k(model, [[0.0, 1.0]], random_state=1).labels.shape
    (1, 1)
    """

    utilities: tuple[Utility, ...]
    weights: Doubles
    k: int

    def top_k(
        self,
        model: LabelEstimator,
        X: Any,
        k: int | None = None,
        *,
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = None,
    ) -> TopK:
        """Draw a utility for each row, and find the best k labels by it.

        Parameters
        ----------
        model : PLT or BR
            The model that the mixture was made for.
        X : sparse or dense matrix [rows, features]
            Any number of rows, also one.
        k : int, optional
            How many labels; by default as many as the mixture was made for.
        random_state : int or RandomState, optional
            The same seed draws the same. Where rows come one by one, pass one ``RandomState`` to all calls:
            with the same number each time, all rows would get the same utility.
        n_jobs : int, optional
            Threads; the estimator's own by default.

        Returns
        -------
        TopK
        """
        rows = RowSet.of(model, X, n_jobs)
        return self.predict(rows, check_count(self.k if k is None else k, "k"), random_state)

    def predict(self, rows: RowSet, k: int, random_state: int | np.random.RandomState | None) -> TopK:
        """Return `top_k` of rows that are checked."""
        if not rows.n_rows:
            return rows.search(k)
        drawn = check_random_state(random_state).choice(len(self.weights), rows.n_rows, p=self.weights)
        order = np.argsort(drawn, kind="stable")
        used = np.unique(drawn)
        found = [rows.search(k, self.utilities[one], np.flatnonzero(drawn == one)) for one in used]
        return TopK.concatenate(found).take(np.argsort(order))

    def __repr__(self) -> str:
        return f"Mixture({len(self.weights)} utilities, k={self.k})"


def frank_wolfe(
    rows: RowSet, k: int, plain: Counts, *, max_iter: int, tol: float
) -> tuple[Mixture, tuple[float, ...]]:
    """Return a mixture for these rows, and the expected measure of the plain top k and after each step.

    ``plain`` has the counts of the plain top k.
    """
    utilities, weights = [Utility()], np.ones(1)
    mixed, history = Counts.of(plain.measure, rows.search(k, utilities[0]), plain.positives), [plain.value]
    for _ in range(max_iter):
        utility = steepest(mixed)
        step = Counts.of(plain.measure, rows.search(k, utility), plain.positives)
        share = best_share(mixed, step)
        if share < LEAST_SHARE:
            break
        mixed = mixed.mixed(step, share)
        utilities, weights = [*utilities, utility], np.append((1 - share) * weights, share)
        history.append(mixed.value)
        if history[-1] - history[-2] <= tol * history[-1]:
            break
    kept = np.flatnonzero(weights)
    return Mixture(tuple(utilities[one] for one in kept), weights[kept] / weights.sum(), k), tuple(history)


def steepest(counts: Counts) -> Utility:
    """Return the utility whose best labels raise the measure the most, as far as its slope says."""
    slope = counts.measure.slope
    assert slope is not None
    return Utility(*slope(counts.sums))


def best_share(counts: Counts, step: Counts) -> float:
    """Return the share of a step that makes the mixture best, 0 if none is better than the present one."""
    best, width = 0.0, 1.0
    for _ in range(2):
        grid = np.clip(best + width * np.arange(-GRID, GRID + 1) / GRID, 0.0, 1.0)
        values = {share: counts.mixed(step, share).value for share in np.unique(np.append(grid, best))}
        best = max(values, key=lambda share: (values[share], -share))
        width /= GRID
    return float(best)


def one_step(rows: RowSet, top: TopK, counts: Counts, random_state: np.random.RandomState) -> TopK:
    """Return predictions after one step: those of a random share of rows are replaced by the step's."""
    found = rows.search(top.labels.shape[1], steepest(counts))
    share = best_share(counts, Counts.of(counts.measure, found, counts.positives))
    drawn = random_state.random_sample(rows.n_rows) < share
    return TopK.concatenate([top, found]).take(np.arange(rows.n_rows) + rows.n_rows * drawn)
