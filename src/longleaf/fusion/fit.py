"""Fitting the two regressions on rows that the trees were not trained on."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from longleaf._validation import Rows, carries
from longleaf.calibration import (
    CANDIDATES,
    EVIDENCE,
    SHOWN,
    evidence_of_trees,
    first,
    fit_curve,
    regression,
    rounded,
)
from longleaf.estimator import LabelEstimator
from longleaf.fusion.evidence import Evidence
from longleaf.fusion.weights import (
    OF_TREE,
    FusionWeights,
    frequencies,
    match_columns,
    tree_columns,
)
from longleaf.search.score_map import IDENTITY, Overrides

Doubles = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


def fit_weights(
    model: LabelEstimator, rows: Rows, Y: sp.csr_array, names: Evidence, label_counts: Ints
) -> FusionWeights:
    """Fit both regressions, and the curve that makes probabilities of what they return.

    Parameters
    ----------
    model : LabelEstimator
        Trained on other rows.
    rows, Y
        The rows that were kept from it, and their labels.
    names : Evidence
        What names say about these rows.
    label_counts : int64 array [labels]
        How often each label occurs in the rows that the model was trained on.
    """
    zeros = np.zeros(len(names.labels), np.float32)
    found = model._candidates(
        rows, Overrides(names.indptr, names.labels.astype(np.int32), zeros, zeros), CANDIDATES
    )
    n_labels = np.int64(Y.shape[1])
    pairs = found.rows * n_labels + found.labels
    named = np.isin(pairs, names.rows * n_labels + names.labels)  # both are sorted
    truth, log_h = carries(Y, found.rows, found.labels), found.log_h[:, None]
    curve = EVIDENCE if found.refined and truth.any() and not truth.all() else IDENTITY
    odds, counts = evidence_of_trees(found.probability, curve), label_counts[found.labels]
    of_tree = np.hstack([tree_columns(odds, counts), log_h])
    of_match = np.hstack([match_columns(odds[named], counts[named], names.features), log_h[named]])
    ranked = np.flatnonzero(~named)
    ranked = ranked[first(found.rows[ranked], found.probability[ranked], CANDIDATES)]
    tree = regression(of_tree[ranked, 1:], truth[ranked])
    match = regression(of_match[:, 1:], truth[named])
    refined = np.maximum([tree[-1], match[-1]], 0.0) * found.refined
    most = float(frequencies(counts)[0].max(initial=0))
    known = named & (found.probability > 0)
    absent = [values[known].mean() if known.any() else 0.0 for values in (odds, log_h[:, 0])]
    weights = FusionWeights(
        tree[:OF_TREE], match[:-1], refined, rounded(np.array(absent)), curve, IDENTITY, most
    )
    z = np.empty(len(pairs))
    slope, offset = weights.of_labels(counts[~named])
    z[~named] = slope * odds[~named] + offset + refined[0] * log_h[~named, 0]
    slope, offset = weights.of_matches(counts[named], names.features)
    z[named] = slope * odds[named] + offset + refined[1] * log_h[named, 0]
    shown = first(found.rows, z, SHOWN)
    return replace(weights, result=fit_curve(z[shown], truth[shown]))
