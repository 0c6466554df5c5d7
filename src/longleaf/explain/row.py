r"""Explanation of a label's probability: what each feature added to its logarithm, and at which level.

The rule is integrated gradients (Sundararajan, Taly and Yan, 2017) along the straight line from the empty row
(only the bias) to the row ``x`` as it is scored. A tree has ``log eta_t = sum_v g(b_v + m_v)`` over
the nodes ``v`` of the label's path, with the bias ``b_v``, the margin ``m_v = w_v . x`` and

    g(z) = log sigmoid(z)           for "log"             g'(z) = sigmoid(-z)
    g(z) = -max(0, 1 - z) ** p      for "squared-hinge"   g'(z) = p max(0, 1 - z) ** (p - 1),

where ``p`` is the estimator's ``hinge_power``, 3 by default.

At the point ``s`` of the line, 0 <= s <= 1, the margins are ``b_v + s m_v``. The gradient of the logarithm of
the mean over the trees weights each tree by its share ``r_t(s) = eta_t(s) / sum_u eta_u(s)``, so that

    contribution of feature f  =  sum_t sum_v  w_vf x_f  I_tv,
    I_tv  =  integral from 0 to 1 of  r_t(s) g'(b_v + s m_v) ds.

One tree has ``r = 1`` and the closed form ``I_v = (g(b_v + m_v) - g(b_v)) / m_v``, which tends to ``g'(b_v)``
as ``m_v`` goes to 0. With several trees the integral is computed by Gauss-Legendre quadrature on pieces that
end at the corners of the hinge, and the rounding error is distributed in proportion. In both cases the
contributions sum to ``log p(x) - log p(0)``: the rule is complete.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from longleaf._validation import Rows, check_count, check_features
from longleaf.estimator import LabelEstimator
from longleaf.explain.paths import Doubles, LabelPath, label_path
from longleaf.search.rows import features_of
from longleaf.training.solver import LOGISTIC_LINK

PIECES = 64
"""Number of equal pieces of the line from the empty row."""
POINTS, POINT_WEIGHTS = np.polynomial.legendre.leggauss(8)
SMALL_MARGIN = 1e-6


@dataclass(frozen=True)
class Level:
    """The contribution of one level of the trees.

    Attributes
    ----------
    depth : int
        1 for the root's children.
    log_probability : float
        The mean over the trees of the log node probability.
    change : float
        The contribution of this level to ``log p(x) - log p(0)``, by the rule above.
    """

    depth: int
    log_probability: float
    change: float


@dataclass(frozen=True, eq=False)
class RowExplanation:
    """Explanation of one label for one row, by features.

    Attributes
    ----------
    features : int64 array
        The columns of the row.
    contributions : float64 array
        What each added to the logarithm of the probability; they sum to ``log_probability - log_baseline``.
    log_probability, log_baseline : float
        Log probabilities for the row, and for the empty row.
    levels : tuple of Level
        From the top; their changes have the same sum.
    """

    features: npt.NDArray[np.int64]
    contributions: Doubles
    log_probability: float
    log_baseline: float
    levels: tuple[Level, ...]


def explain_by_trees(model: LabelEstimator, X: Any, label: int, row: int = 0) -> RowExplanation:
    """Return what each feature of a row added to the log probability of a label in the trees.

    Parameters
    ----------
    model : PLT or BR
    X : sparse or dense matrix [rows, features]
    label : int
    row : int
        Index of the row of ``X``.
    """
    _, features, values = row_to_explain(model, X, row, label)
    if not model.has_leaf(label):
        raise ValueError(f"label must occur in training to have a probability to explain; got {label}.")
    paths = [label_path(model, tree, label, features, values) for tree in range(len(model.trees_))]
    return _explain_paths(paths, features, model._link)


def row_to_explain(
    model: LabelEstimator, X: Any, row: int, label: int
) -> tuple[Rows, npt.NDArray[np.int64], Doubles]:
    """Return one row of ``X``, with its features and their values as they are scored."""
    check_is_fitted(model)
    rows = check_features(features_of(X), model.n_features_in_, normalize=model.normalize)
    row, label = check_count(row, "row", low=0), check_count(label, "label", low=0)
    if row >= rows.n_rows or label >= model.n_labels_:
        raise ValueError(
            f"row and label must be below {rows.n_rows} and {model.n_labels_}; got {row} and {label}."
        )
    rows = rows[row : row + 1]
    return rows, rows.indices.astype(np.int64), rows.data.astype(np.float64) * float(rows.scale[0])


def _explain_paths(paths: list[LabelPath], features: npt.NDArray[np.int64], link: int) -> RowExplanation:
    gradients = _mean_gradients(paths, link)
    at_row = np.array([_log_eta(path, 1.0, link).sum() for path in paths])
    at_zero = np.array([_log_eta(path, 0.0, link).sum() for path in paths])
    log_probability, log_baseline = _log_mean(at_row), _log_mean(at_zero)
    change = [g * path.margin for g, path in zip(gradients, paths, strict=True)]
    contributions = np.sum([g @ path.products for g, path in zip(gradients, paths, strict=True)], axis=0)
    residual = log_probability - log_baseline - sum(values.sum() for values in change)
    contributions = contributions + residual * _shares(contributions)
    return RowExplanation(
        features, contributions, log_probability, log_baseline, _levels(paths, change, residual, link)
    )


def _mean_gradients(paths: list[LabelPath], link: int) -> list[Doubles]:
    """Return the integrals I_tv: for each tree, an array over the nodes of its path."""
    if len(paths) == 1:
        return [_closed_form(paths[0], link)]
    points, widths = _quadrature(paths, link)
    margins = [path.bias[:, None] + path.margin[:, None] * points for path in paths]
    log_eta = np.array([log_node_probability(margin, link).sum(axis=0) for margin in margins])
    share = np.exp(log_eta - log_eta.max(axis=0))
    share *= widths / share.sum(axis=0)
    return [node_slope(margin, link) @ r for margin, r in zip(margins, share, strict=True)]


def _closed_form(path: LabelPath, link: int) -> Doubles:
    margin = path.margin
    small = np.abs(margin) < SMALL_MARGIN
    rise = _log_eta(path, 1.0, link) - _log_eta(path, 0.0, link)
    middle = node_slope(path.bias + margin / 2, link)  # accurate to second order
    return np.where(small, middle, rise / np.where(small, 1.0, margin))


def _quadrature(paths: list[LabelPath], link: int) -> tuple[Doubles, Doubles]:
    """Return points in (0, 1) and their weights; corners of the integrand are ends of pieces."""
    ends = np.linspace(0, 1, PIECES + 1)
    if link != LOGISTIC_LINK:
        bias, margin = (
            np.concatenate([getattr(path, name) for path in paths]) for name in ("bias", "margin")
        )
        corners = (1 - bias[margin != 0]) / margin[margin != 0]
        ends = np.unique(np.concatenate([ends, corners[(corners > 0) & (corners < 1)]]))
    half = np.diff(ends)[:, None] / 2
    return (ends[:-1, None] + half * (1 + POINTS)).ravel(), (half * POINT_WEIGHTS).ravel()


def log_node_probability(margin: Doubles, link: int) -> Doubles:
    """Return g: the log probability of a node with this margin."""
    if link == LOGISTIC_LINK:
        return -np.logaddexp(0.0, -margin)
    return np.asarray(-(np.maximum(0.0, 1.0 - margin) ** link), np.float64)


def node_slope(margin: Doubles, link: int) -> Doubles:
    """Return g', the derivative of `log_node_probability`."""
    if link == LOGISTIC_LINK:
        return np.exp(-np.logaddexp(0.0, margin))
    return np.asarray(link * np.maximum(0.0, 1.0 - margin) ** (link - 1), np.float64)


def _log_eta(path: LabelPath, share: float, link: int) -> Doubles:
    return log_node_probability(path.bias + share * path.margin, link)


def _log_mean(logs: Doubles) -> float:
    top = float(logs.max())
    return top + math.log(float(np.exp(logs - top).mean()))


def _shares(values: Doubles) -> Doubles:
    total = np.abs(values).sum()
    return np.abs(values) / total if total > 0 else np.zeros_like(values)


def _levels(paths: list[LabelPath], change: list[Doubles], residual: float, link: int) -> tuple[Level, ...]:
    deepest = max(len(path.bias) for path in paths)
    changes, logs = np.zeros(deepest), np.zeros(deepest)
    for path, values in zip(paths, change, strict=True):
        changes[: len(values)] += values
        logs[: len(values)] += _log_eta(path, 1.0, link) / len(paths)
    changes = changes + residual * _shares(changes)
    return tuple(Level(d + 1, float(logs[d]), float(changes[d])) for d in range(deepest))
