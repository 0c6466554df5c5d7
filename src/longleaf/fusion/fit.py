"""Fitting the two regressions on rows that the trees were not trained on."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from threadpoolctl import threadpool_limits

from longleaf.estimator import LabelEstimator
from longleaf.fusion.evidence import Evidence, carries
from longleaf.fusion.weights import (
    OF_MATCH,
    OF_TREE,
    FusionWeights,
    frequencies,
    log_odds,
    match_columns,
    tree_columns,
)

Doubles = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

CANDIDATES = 100
"""The labels of a row, besides those with a match, that the regressions are fitted on: the trees' best."""
HELD_OUT_SHARE, MOST_HELD_OUT, LEAST_HELD_OUT = 0.1, 2000, 50
C = 1.0


def held_out_rows(n_rows: int, random_state: Any) -> npt.NDArray[np.bool_]:
    """Return which rows to keep from the trees: a tenth, at most 2,000; none of a small data set."""
    held = np.zeros(n_rows, bool)
    size = min(int(n_rows * HELD_OUT_SHARE), MOST_HELD_OUT)
    if size >= LEAST_HELD_OUT:
        seed = random_state if isinstance(random_state, int | np.integer) else 0
        held[np.random.RandomState(seed).permutation(n_rows)[:size]] = True
    return held


def fit_weights(
    model: LabelEstimator, X: Any, Y: sp.csr_array, evidence: Evidence, label_counts: Ints
) -> FusionWeights:
    """Fit both regressions.

    Parameters
    ----------
    model : LabelEstimator
        Trained on other rows.
    X, Y : matrices [rows, features], [rows, labels]
        The rows that were kept from it, and their labels.
    evidence : Evidence
        What names say about these rows.
    label_counts : int64 array [labels]
        How often each label occurs in the rows that the model was trained on.
    """
    n_labels = np.int64(Y.shape[1])
    top = model.top_k(X, CANDIDATES).labels
    row, place = np.nonzero(top >= 0)
    ranked = row.astype(np.int64) * n_labels + top[row, place]
    named = evidence.rows * n_labels + evidence.labels  # ascending
    unnamed = np.setdiff1d(ranked, named)
    odds, truth, counts = _pairs(model, X, Y, unnamed, label_counts)
    tree = _regression(tree_columns(odds, counts), truth, OF_TREE)
    most = float(frequencies(counts)[0].max(initial=0))
    odds, truth, counts = _pairs(model, X, Y, named, label_counts)
    match = _regression(match_columns(odds, counts, evidence.features), truth, OF_MATCH)
    return FusionWeights(tree, match, max(most, float(frequencies(counts)[0].max(initial=0))))


def _pairs(
    model: LabelEstimator, X: Any, Y: sp.csr_array, pairs: Ints, label_counts: Ints
) -> tuple[Doubles, npt.NDArray[np.bool_], Ints]:
    """Return log-odds, truth and label count of pairs, given as row * labels + label."""
    rows, labels = np.divmod(pairs, np.int64(Y.shape[1]))
    odds = log_odds(model.probability(X, rows, labels))
    return odds, carries(Y, rows, labels), label_counts[labels]


def _regression(columns: Doubles, truth: npt.NDArray[np.bool_], size: int) -> Doubles:
    """Return the weights of a logistic regression; where there is nothing to learn, those of the log-odds."""
    from sklearn.linear_model import LogisticRegression  # as slow to import as all of longleaf

    weights = np.zeros(size)
    weights[1] = 1.0
    if truth.all() or not truth.any():
        return weights
    mean, deviation = columns[:, 1:].mean(axis=0), columns[:, 1:].std(axis=0)
    varies = deviation > 1e-9
    scaled = (columns[:, 1:][:, varies] - mean[varies]) / deviation[varies]
    with threadpool_limits(1):  # sums must not depend on the number of threads
        fitted = LogisticRegression(C=C, max_iter=1000).fit(scaled, truth)
    weights[1:] = 0.0
    weights[1:][varies] = fitted.coef_[0] / deviation[varies]
    weights[0] = fitted.intercept_[0] - weights[1:] @ mean
    # fewer digits than any processor computes differently
    rounded: Doubles = np.array([float(f"{weight:.5g}") for weight in weights])
    return rounded
