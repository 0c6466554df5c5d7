"""From an explanation of the trees' probability to one of the probability that a model returns.

Problem: the trees explain ``log P``; a `longleaf.search.ScoreMap` makes ``z = slope e(logit P) + offset +
refined log h`` of it, and ``sigmoid(g(z))`` of that. Both terms of ``z`` move when the empty row becomes this
one: what the words moved in each is theirs in proportion to what they added to ``log P``, and to the margin
of the refined classifier. All of it is scaled to the logarithm of the final probability.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from longleaf.estimator import LabelEstimator
from longleaf.explain.paths import node_weights
from longleaf.explain.row import Level, RowExplanation, explain_by_trees, row_to_explain
from longleaf.search.score_map import LIMIT, ScoreMap, curve_at

Doubles = npt.NDArray[np.float64]

LOG_LEAST = math.log(1e-6)


@dataclass(frozen=True)
class LabelLine:
    """What becomes of the trees' log probability of one label, and of its refined classifier.

    Attributes
    ----------
    slope, offset, refined : float
    shape : ScoreMap
        Whose curves they are.
    """

    slope: float
    offset: float
    refined: float
    shape: ScoreMap

    def z(self, log_probability: float, log_h: float) -> float:
        """Return the log-odds before the last curve."""
        log = min(log_probability, -1e-12)
        odds = min(max(log - math.log(-math.expm1(log)), -LIMIT), LIMIT) if log > -700 else -LIMIT
        return self.slope * curve_at(self.shape.evidence, odds) + self.offset + self.refined * log_h

    def log_probability(self, z: float) -> float:
        """Return the logarithm of the final probability."""
        odds = curve_at(self.shape.result, z)
        return -math.log1p(math.exp(-odds)) if odds > 0 else odds - math.log1p(math.exp(odds))


@dataclass(frozen=True, eq=False)
class RefinedTerms:
    """A refined classifier and one row.

    Attributes
    ----------
    bias : float
        The margin for the empty row.
    products : float64 array [features of the row]
        What each feature adds to the margin.
    """

    bias: float
    products: Doubles

    @property
    def log_h(self) -> tuple[float, float]:
        """``-max(0, 1 - s)^2`` for the empty row, and for the row."""
        empty, row = self.bias, self.bias + float(self.products.sum())
        return -(max(0.0, 1.0 - empty) ** 2), -(max(0.0, 1.0 - row) ** 2)


def label_line(score_map: ScoreMap, label: int) -> LabelLine:
    """Return the map of a label."""
    return LabelLine(
        float(score_map.slope[label]), float(score_map.offset[label]), score_map.refined, score_map
    )


def explain_row(model: LabelEstimator, X: Any, label: int, row: int = 0) -> RowExplanation:
    """Return what each feature of a row added to the log probability of a label.

    Parameters
    ----------
    model : PLT or BR
    X : sparse or dense matrix [rows, features]
    label : int
    row : int
        Index of the row of ``X``.
    """
    found = explain_by_trees(model, X, label, row)
    score_map = model._score_map()
    if score_map is None:
        return found
    found, refined = with_refined(model, X, label, row, found)
    return mapped_explanation(found, label_line(score_map, label), refined)


def with_refined(
    model: LabelEstimator, X: Any, label: int, row: int, found: RowExplanation
) -> tuple[RowExplanation, RefinedTerms | None]:
    """Return what the trees that nominate a label say, and what its refined classifier says, if there is one.

    A label that no tree nominates, whose probability is 0, is explained as if all did.
    """
    if model.refined_ is None:
        return found, None
    rows, features, values = row_to_explain(model, X, row, label)
    leaves = np.flatnonzero(model.refined_.tree.label == label)
    refined = None
    if len(leaves):
        node = int(leaves[0])
        products = node_weights(model, len(model.trees_), node, features) * values
        refined = RefinedTerms(float(model.refined_.weights["bias"][node]), products)
    nominees = model._candidates(rows)
    place = int(np.searchsorted(nominees.labels, label))
    if place == len(nominees.labels) or nominees.labels[place] != label:
        return found, refined
    log_probability = math.log(max(float(nominees.probability[place]), 1e-300))
    # what the other trees would add is missing from the empty row, too
    lost = log_probability - found.log_probability
    baseline = found.log_baseline + lost
    nominated = replace(found, log_probability=log_probability, log_baseline=baseline)
    return nominated, refined


def mapped_explanation(
    found: RowExplanation | None, line: LabelLine, refined: RefinedTerms | None = None
) -> RowExplanation:
    """Turn an explanation of the trees' probability into one of the final probability.

    Parameters
    ----------
    found : RowExplanation or None
        What the trees say; None if no tree has the label.
    line : LabelLine
    refined : RefinedTerms, optional
    """
    if found is None:
        found = RowExplanation(
            np.empty(0, np.int64), np.empty(0), LOG_LEAST, LOG_LEAST, (Level(1, LOG_LEAST, 0.0),)
        )
    before, after = (0.0, 0.0) if refined is None else refined.log_h
    z_before, z_after = line.z(found.log_baseline, before), line.z(found.log_probability, after)
    log_before, log_after = line.log_probability(z_before), line.log_probability(z_after)
    moved, whole = z_after - z_before, log_after - log_before
    scale = whole / moved if abs(moved) > 1e-9 else 0.0
    by_refined = scale * line.refined * (after - before)
    by_trees = whole - by_refined
    contributions, change = found.contributions, found.log_probability - found.log_baseline
    share = by_trees / change if abs(change) > 1e-9 else 0.0
    levels = [replace(level, change=share * level.change) for level in found.levels]
    contributions = share * contributions
    if refined is not None and line.refined > 0:
        total = float(refined.products.sum())
        own = refined.products / total if abs(total) > 1e-9 else np.zeros(len(refined.products))
        contributions = contributions + by_refined * own
        levels.append(Level(len(levels) + 1, after, by_refined if abs(total) > 1e-9 else 0.0))
    return RowExplanation(found.features, contributions, log_after, log_before, tuple(levels))
