"""Macro measures as sums over labels, and the lines in a label's probability that raise them the most.

A measure is the mean over all labels of a function of three numbers, each expected under the model: how many
rows have the label and are predicted to (the hits), how many are predicted to, and how many have it (the
positives). One more row that is predicted to have the label, with probability eta, adds eta to the hits and 1
to the predicted. All functions here are linear in the hits, so what it adds to the measure is a line in eta,
and the best k labels of a row are a search by utilities.

A label that is expected in less than one row counts as expected in one: where it is found right, some row has
it. Otherwise labels that hardly any row has would be worth the most.

Coverage is not a function of these numbers. Instead of the hits it has the sum of log(1 - eta) over the rows
predicted: the log of the probability that none of them has the label.

Sources: Schultheis et al., NeurIPS 2023 (arXiv 2311.05081) and ICLR 2024 (arXiv 2401.16594).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Doubles = npt.NDArray[np.float64]
Lines = tuple[Doubles, Doubles]

SUREST = 1 - 1e-12
"""No label is covered for sure, so that its prediction can be taken back."""


class Sums(NamedTuple):
    """What predictions add up to, for any labels; all arrays have one shape."""

    total: Doubles  # of the measure's terms: the hits, unless the measure says otherwise
    predicted: Doubles
    positives: Doubles
    n_rows: int


def _itself(eta: Doubles) -> Doubles:
    return eta


@dataclass(frozen=True)
class Measure:
    """What predictions are worth, label by label.

    Attributes
    ----------
    value : callable
        From sums, the value of each label, from 0 to 1.
    step : callable
        From sums, a and b: one more row with probability eta adds ``a * eta + b`` to the value.
    slope : callable or None
        From sums, the derivatives by hits and predicted, for Frank-Wolfe; None if there are none.
    term : callable
        What a row predicted with probability eta adds to the total.
    """

    value: Callable[[Sums], Doubles]
    step: Callable[[Sums], Lines]
    slope: Callable[[Sums], Lines] | None
    term: Callable[[Doubles], Doubles] = _itself


def _at_least_one(counts: Doubles) -> Doubles:
    return np.maximum(counts, 1.0)


def _f1(s: Sums) -> Doubles:
    return 2.0 * s.total / (s.predicted + _at_least_one(s.positives))


def _f1_step(s: Sums) -> Lines:
    before = s.predicted + _at_least_one(s.positives)
    a = 2.0 / (before + 1.0)
    return a, -a * s.total / before


def _f1_slope(s: Sums) -> Lines:
    whole = s.predicted + _at_least_one(s.positives)
    return 2.0 / whole, -2.0 * s.total / whole**2


def _precision(s: Sums) -> Doubles:
    return s.total / _at_least_one(s.predicted)


def _precision_step(s: Sums) -> Lines:
    a = 1.0 / (s.predicted + 1.0)
    return a, -a * s.total / _at_least_one(s.predicted)


def _precision_slope(s: Sums) -> Lines:
    whole = _at_least_one(s.predicted)
    return 1.0 / whole, np.where(s.predicted > 1.0, -s.total / whole**2, 0.0)


def _recall(s: Sums) -> Doubles:
    return s.total / _at_least_one(s.positives)


def _recall_step(s: Sums) -> Lines:
    return 1.0 / _at_least_one(s.positives), np.zeros_like(s.total)


def _balanced_accuracy(s: Sums) -> Doubles:
    negatives = s.n_rows - s.positives
    right = (negatives - s.predicted + s.total) / _at_least_one(negatives)
    return 0.5 * (_recall(s) + right)


def _balanced_accuracy_step(s: Sums) -> Lines:
    wrong = 0.5 / _at_least_one(s.n_rows - s.positives)
    return 0.5 / _at_least_one(s.positives) + wrong, -wrong


def _log_missed(eta: Doubles) -> Doubles:
    logs: Doubles = np.log1p(-np.minimum(eta, SUREST))
    return logs


def _coverage(s: Sums) -> Doubles:
    covered: Doubles = -np.expm1(s.total)
    return covered


def _coverage_step(s: Sums) -> Lines:
    return np.exp(s.total), np.zeros_like(s.total)


MEASURES = {
    "macro_f1": Measure(_f1, _f1_step, _f1_slope),
    "macro_precision": Measure(_precision, _precision_step, _precision_slope),
    "macro_recall": Measure(_recall, _recall_step, _recall_step),
    "macro_balanced_accuracy": Measure(_balanced_accuracy, _balanced_accuracy_step, _balanced_accuracy_step),
    "coverage": Measure(_coverage, _coverage_step, None, _log_missed),
}
"""By the names that `longleaf.metrics.evaluate` has, where it has them."""
