"""What the plots show beyond the metrics of the library: by frequency, probability, row and label."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from longleaf.metrics import evaluate
from longleaf.metrics._hits import label_counts
from longleaf.report.answers import Answer, rank
from longleaf.report.problem import Floats, Ints, Problem, Side

LEAST_TRUE = 5
"""True rows that a label must have to be called hard: below, one miss decides."""
HARD_RECALL = 0.5
"""Recall below which a label is called hard."""
TIMED_ROWS = 200
GRID_A, GRID_B = (0.4, 0.5, 0.55, 0.6, 0.7), (0.4, 1.5, 2.6)
"""Around the constants of all data sets of the paper."""


@dataclass(frozen=True)
class CountBin:
    """Labels of ``low`` to ``high`` training rows: how many, true assignments, recall in percent."""

    low: int
    high: int
    labels: int
    true: int
    recall: tuple[float, ...]

    @property
    def name(self) -> str:
        """The counts in words."""
        return f"{self.low}" if self.low == self.high else f"{self.low}-{self.high}"


def recall_by_count(problem: Problem, answers: Sequence[Answer]) -> list[CountBin]:
    """Give recall@k of labels with 1, 2-3, 4-7, … training rows; only bins with a true assignment."""
    power = np.where(problem.counts > 0, np.frexp(problem.counts.astype(np.float64))[1], 0)
    true = np.bincount(problem.truth.indices, minlength=len(power))
    right = [label_counts(problem.truth, one.labels, one.hits)[2] for one in answers]
    bins = []
    for exponent in range(1, int(power.max(initial=0)) + 1):
        inside = power == exponent
        whole = int(true[inside].sum())
        if whole:
            recall = tuple(100.0 * float(one[inside].sum()) / whole for one in right)
            bins.append(CountBin(2 ** (exponent - 1), 2**exponent - 1, int(inside.sum()), whole, recall))
    return bins


@dataclass(frozen=True)
class Bucket:
    """Suggestions of about the same probability: the mean of it, and how many of how many were right."""

    probability: float
    right: int
    pairs: int

    @property
    def share(self) -> float:
        """The part that was right."""
        return self.right / self.pairs

    @property
    def interval(self) -> tuple[float, float]:
        """The part that was right, within the 95 % interval of Wilson (1927)."""
        z, n, share = 1.96, self.pairs, self.share
        middle = (share + z * z / (2 * n)) / (1 + z * z / n)
        half = z / (1 + z * z / n) * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
        return max(0.0, middle - half), min(1.0, middle + half)


def probabilities(side: Side, one: Answer) -> Floats:
    """Give the probability of each suggestion [rows, k]; 0 for pads."""
    found = np.zeros(one.labels.shape)
    row, place = np.nonzero(one.ranking.own >= 0)
    found[row, place] = side.model.probability(side.X, row, one.ranking.own[row, place])
    return found


def reliability(probability: Floats, right: npt.NDArray[np.bool_], buckets: int = 10) -> list[Bucket]:
    """Sort suggestions into buckets of equal width by their probability; empty ones are left out."""
    place = np.minimum((probability * buckets).astype(np.int64), buckets - 1)
    found = []
    for number in range(buckets):
        inside = place == number
        if inside.any():
            mean = float(probability[inside].mean())
            found.append(Bucket(mean, int(right[inside].sum()), int(inside.sum())))
    return found


def calibration_error(buckets: Sequence[Bucket]) -> float:
    """Give the mean distance between probability and share of right ones, over all suggestions; percent."""
    pairs = sum(one.pairs for one in buckets)
    off = sum(one.pairs * abs(one.probability - one.share) for one in buckets)
    return 100.0 * off / pairs if pairs else 0.0


@dataclass(frozen=True, eq=False)
class Cost:
    """What single rows cost: node classifiers evaluated, and milliseconds, asked one at a time."""

    evaluations: Ints
    milliseconds: Floats


def row_costs(problem: Problem, side: Side, one: Answer) -> Cost:
    """Time rows alone, on one thread, spread over the data; the best of three, as clocks are disturbed."""
    rows = np.unique(np.linspace(0, problem.n_rows - 1, min(TIMED_ROWS, problem.n_rows)).astype(np.int64))
    k = min(problem.k, side.model.n_labels_)
    options: dict[str, Any] = {"tail": one.tail, "propensity": problem.propensity, "n_jobs": 1}
    taken = np.empty((3, len(rows)))
    for attempt in taken:
        for place, row in enumerate(rows):
            X = side.X[[row]]
            start = time.perf_counter()
            side.model.top_k(X, k, **options)
            attempt[place] = 1000 * (time.perf_counter() - start)
    return Cost(one.ranking.evaluations[rows], taken.min(axis=0))


@dataclass(frozen=True)
class LabelChange:
    """How often a label was found before and after, in how many true rows."""

    label: int
    count: int
    true: int
    before: int
    after: int

    @property
    def gained(self) -> int:
        """Hits after, less those before."""
        return self.after - self.before


def label_changes(problem: Problem, before: Answer, after: Answer) -> list[LabelChange]:
    """Compare two answers label by label; labels with a true row, the most gained first, rarer ones first."""
    true, _, first = label_counts(problem.truth, before.labels, before.hits)
    _, _, second = label_counts(problem.truth, after.labels, after.hits)
    columns = zip(problem.counts, true, first, second, strict=True)
    changes = [LabelChange(label, *map(int, row)) for label, row in enumerate(columns) if row[1]]
    return sorted(changes, key=lambda one: (-one.gained, one.count, one.label))


@dataclass(frozen=True)
class HardLabel:
    """A label that is often missed, and the label that stood most often, wrongly, where it was missed."""

    change: LabelChange
    instead: int | None
    times: int


def hardest_labels(
    problem: Problem, changes: Sequence[LabelChange], after: Answer, most: int
) -> list[HardLabel]:
    """Give labels that the better of two answers finds in less than half of their rows, the worst first."""
    missed = (one for one in changes if max(one.before, one.after) < HARD_RECALL * one.true)
    known = [one for one in missed if one.count and one.true >= LEAST_TRUE]
    known.sort(key=lambda one: (max(one.before, one.after) / one.true, -one.true, one.label))
    by_label = problem.truth.tocsc()
    found = []
    for one in known[:most]:
        rows = by_label.indices[by_label.indptr[one.label] : by_label.indptr[one.label + 1]]
        without = rows[(after.labels[rows] != one.label).all(axis=1)]
        wrong = after.labels[without][~after.hits[without] & (after.labels[without] >= 0)]
        names, times = np.unique(wrong, return_counts=True)
        best = int(times.argmax()) if len(times) else None
        found.append(HardLabel(one, None if best is None else int(names[best]), int(times.max(initial=0))))
    return found


@dataclass(frozen=True, eq=False)
class Sensitivity:
    """Propensity-scored precision at the largest k for pairs of constants, [A, B]; percent.

    ``plain`` and ``fixed`` are tail 0 and tail 1 as the model's own constants dial it, judged by each pair;
    ``own`` is tail 1, dialled by the pair that also judges.
    """

    a: tuple[float, ...]
    b: tuple[float, ...]
    plain: Floats
    fixed: Floats
    own: Floats


def sensitivity(
    problem: Problem, side: Side, plain: Answer, rare: Answer, n_jobs: int | None = None
) -> Sensitivity:
    """Judge tail 0 and tail 1 by other constants of the propensity model, and dial by them, too."""
    a = tuple(sorted({*GRID_A, problem.propensity[0]}))
    b = tuple(sorted({*GRID_B, problem.propensity[1]}))
    found = np.empty((3, len(a), len(b)))
    for i, j in np.ndindex(len(a), len(b)):
        constants = (a[i], b[j])
        worth = problem.worth_by(constants)
        own = rank(problem, side, 1.0, constants, n_jobs).labels
        for place, labels in enumerate((plain.labels, rare.labels, own)):
            judged = evaluate(problem.truth, labels, inverse_propensity=worth, k=problem.k)
            found[place, i, j] = judged[f"psp@{problem.k}"]
    return Sensitivity(a, b, *found)
