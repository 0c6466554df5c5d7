"""Measurements for the plots beyond the library's metrics: by number of labels, frequency, row and label."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from longleaf.metrics import Difference, compare, evaluate
from longleaf.metrics._hits import label_counts
from longleaf.report.answers import Answer, Ranking, rank
from longleaf.report.problem import Floats, Ints, Problem, Side
from longleaf.search.auto_k import DEFAULT_MOST
from longleaf.suggest import AUTO, Suggester

LEAST_TRUE = 5
"""Minimum true rows of a hard label; with fewer, a single miss would decide."""
HARD_RECALL = 0.5
"""Maximum recall of a hard label."""
TIMED_ROWS = 200
GRID_A, GRID_B = (0.4, 0.5, 0.55, 0.6, 0.7), (0.4, 1.5, 2.6)
"""Grid around the constants of all data sets of the paper."""


@dataclass(frozen=True)
class CountBin:
    """Labels with ``low`` to ``high`` training rows: their number, true assignments and recall in percent."""

    low: int
    high: int
    labels: int
    true: int
    recall: tuple[float, ...]

    @property
    def name(self) -> str:
        """The range of counts."""
        return f"{self.low}" if self.low == self.high else f"{self.low}-{self.high}"


def recall_by_count(problem: Problem, answers: Sequence[Answer]) -> list[CountBin]:
    """Return recall@k of labels with 1, 2-3, 4-7, … training rows; only bins with true assignments."""
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
class SizeFigures:
    """What suggesting a number of labels per row leads to; shares in percent, means over rows.

    Attributes
    ----------
    name : str
        The number of labels, or ``auto``.
    precision, recall, f1 : float
    labels : float
        Labels per row.
    none : float
        The share of the rows that get no label.
    """

    name: str
    precision: float
    recall: float
    f1: float
    labels: float
    none: float


@dataclass(frozen=True)
class Sizes:
    """Fixed numbers of labels, 1, 2, …, and as many as are likely.

    ``best`` is the fixed number of the largest F1, and ``over_best`` the difference of auto in F1.
    """

    fixed: tuple[SizeFigures, ...]
    auto: SizeFigures
    best: SizeFigures
    over_best: Difference


def by_size(problem: Problem, side: Side, *, samples: int, seed: int, n_jobs: int | None = None) -> Sizes:
    """Suggest 1, 2, …, `DEFAULT_MOST` labels, and as many as are likely, by probability."""
    suggester, k = Suggester(side.model), min(max(DEFAULT_MOST, problem.k), side.model.n_labels_)
    ranked = Ranking.of(side, side.model.top_k(side.X, k, n_jobs=n_jobs), k).labels
    query = suggester.query(AUTO, n_jobs=n_jobs)
    chosen = Ranking.of(side, suggester.top_k(side.X, query), k).labels
    found = evaluate(problem.truth, ranked, k=range(1, k + 1))
    fixed = [_size_figures(str(at), found, at, ranked[:, :at]) for at in range(1, k + 1)]
    auto = _size_figures(AUTO, evaluate(problem.truth, chosen, k=k), k, chosen)
    best = max(fixed, key=lambda one: one.f1)
    cut = np.where(np.arange(k) < int(best.name), ranked, -1)
    change = compare(problem.truth, cut, chosen, k=k, n_samples=samples, random_state=seed)[f"f1@{k}"]
    return Sizes(tuple(fixed), auto, best, change)


def _size_figures(name: str, found: dict[str, float], k: int, labels: Ints) -> SizeFigures:
    number = (labels >= 0).sum(axis=1)
    precision, recall, f1 = (found[f"{metric}@{k}"] for metric in ("precision", "recall", "f1"))
    return SizeFigures(name, precision, recall, f1, float(number.mean()), 100.0 * float((number == 0).mean()))


@dataclass(frozen=True, eq=False)
class Cost:
    """The cost of single rows: node classifiers evaluated, and milliseconds when searched one at a time."""

    evaluations: Ints
    milliseconds: Floats


def row_costs(problem: Problem, side: Side, one: Answer) -> Cost:
    """Time single rows, evenly spaced in the data, on one thread; the best of three runs counts."""
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
    """How often a label was found before and after, and its number of true rows."""

    label: int
    count: int
    true: int
    before: int
    after: int

    @property
    def gained(self) -> int:
        """Hits after minus hits before."""
        return self.after - self.before


def label_changes(problem: Problem, before: Answer, after: Answer) -> list[LabelChange]:
    """Compare two answers per label with true rows; sorted by largest gain, then by rarity."""
    true, _, first = label_counts(problem.truth, before.labels, before.hits)
    _, _, second = label_counts(problem.truth, after.labels, after.hits)
    columns = zip(problem.counts, true, first, second, strict=True)
    changes = [LabelChange(label, *map(int, row)) for label, row in enumerate(columns) if row[1]]
    return sorted(changes, key=lambda one: (-one.gained, one.count, one.label))


@dataclass(frozen=True)
class HardLabel:
    """A label that is often missed, and the wrong label suggested most often where it was missed."""

    change: LabelChange
    instead: int | None
    times: int


def hardest_labels(
    problem: Problem, changes: Sequence[LabelChange], after: Answer, most: int
) -> list[HardLabel]:
    """Return labels that the better of two answers finds in less than half of their rows, worst first."""
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

    ``plain`` and ``fixed`` are tail 0 and tail 1 predicted with the model's own constants and evaluated with
    each pair; ``own`` is tail 1 with the same pair for prediction and evaluation.
    """

    a: tuple[float, ...]
    b: tuple[float, ...]
    plain: Floats
    fixed: Floats
    own: Floats


def sensitivity(
    problem: Problem, side: Side, plain: Answer, rare: Answer, n_jobs: int | None = None
) -> Sensitivity:
    """Evaluate tail 0 and tail 1 with other constants of the propensity model, also used for prediction."""
    a = tuple(sorted({*GRID_A, problem.propensity[0]}))
    b = tuple(sorted({*GRID_B, problem.propensity[1]}))
    found = np.empty((3, len(a), len(b)))
    for i, j in np.ndindex(len(a), len(b)):
        constants = (a[i], b[j])
        inverse_propensity = problem.inverse_propensity_with(constants)
        own = rank(problem, side, 1.0, constants, n_jobs).labels
        for place, labels in enumerate((plain.labels, rare.labels, own)):
            metrics = evaluate(problem.truth, labels, inverse_propensity=inverse_propensity, k=problem.k)
            found[place, i, j] = metrics[f"psp@{problem.k}"]
    return Sensitivity(a, b, *found)
