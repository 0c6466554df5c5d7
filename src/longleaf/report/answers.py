"""What a model answers along the tail dial, how good that is, and how sure one can be of it."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from longleaf.metrics import FrequencyBin, compare, evaluate, frequency_table
from longleaf.metrics._hits import find_hits
from longleaf.report.problem import Ints, Problem, Side

TAILS = tuple(step / 10 for step in range(11))
"""The settings of the dial."""

Band = tuple[float, float]


@dataclass(frozen=True, eq=False)
class Ranking:
    """The best labels of every row, in the model's own numbers and in the common ones; -1 pads."""

    own: npt.NDArray[np.int32]
    labels: Ints
    evaluations: Ints
    seconds: float


@dataclass(frozen=True, eq=False)
class Answer:
    """One setting of the dial.

    Attributes
    ----------
    tail : float
    ranking : Ranking
    hits : bool array [rows, k]
    metrics : dict of str to float
        As `longleaf.metrics.evaluate` gives them.
    bins : list of FrequencyBin
    bands : dict of str to (float, float)
        What the middle 95 % of resamples of the rows give for ``p@k``, ``psp@k`` and the recall of each bin.
    """

    tail: float
    ranking: Ranking
    hits: npt.NDArray[np.bool_]
    metrics: dict[str, float]
    bins: list[FrequencyBin]
    bands: dict[str, Band]

    @property
    def labels(self) -> Ints:
        """The ranked labels in common numbers."""
        return self.ranking.labels


def rank(
    problem: Problem,
    side: Side,
    tail: float,
    propensity: tuple[float, float] | None = None,
    n_jobs: int | None = None,
) -> Ranking:
    """Find the best labels of all rows, with the time that takes."""
    k = min(problem.k, side.model.n_labels_)
    constants = problem.propensity if propensity is None else propensity
    start = time.perf_counter()
    top = side.model.top_k(side.X, k, tail=tail, propensity=constants, n_jobs=n_jobs)
    seconds = time.perf_counter() - start
    missing = problem.k - k
    own = np.pad(top.labels, ((0, 0), (0, missing)), constant_values=-1)
    return Ranking(own, np.append(side.number, -1)[own], top.evaluations, seconds)


def answer(
    problem: Problem, side: Side, tail: float, *, samples: int, seed: int, n_jobs: int | None = None
) -> Answer:
    """Ask one model at one setting of the dial, and judge what it says."""
    ranking = rank(problem, side, tail, n_jobs=n_jobs)
    labels, truth = ranking.labels, problem.truth
    # Against a ranking that names nothing, the interval of the difference is that of the metric itself.
    nothing = np.full_like(labels, -1)
    bands = compare(
        truth,
        nothing,
        labels,
        inverse_propensity=problem.worth,
        counts=problem.counts,
        k=problem.places,
        n_samples=samples,
        random_state=seed,
    )
    return Answer(
        tail,
        ranking,
        find_hits(truth, labels),
        evaluate(truth, labels, inverse_propensity=problem.worth, k=problem.places),
        frequency_table(truth, labels, problem.counts, k=problem.k),
        {name: (one.low, one.high) for name, one in bands.items()},
    )
