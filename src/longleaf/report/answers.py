"""A model's predictions for several values of tail, their metrics and confidence bands."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from longleaf.metrics import FrequencyBin, compare, evaluate, frequency_table
from longleaf.metrics._hits import find_hits
from longleaf.report.problem import Ints, Problem, Side
from longleaf.search.top_k import TopK

TAILS = tuple(step / 10 for step in range(11))
"""The values of tail."""

Band = tuple[float, float]


@dataclass(frozen=True, eq=False)
class Ranking:
    """The best labels of every row, in the model's own numbering and in the common one; -1 pads."""

    own: npt.NDArray[np.int32]
    top: TopK
    seconds: float

    @property
    def labels(self) -> Ints:
        """The labels in the common numbering."""
        return self.top.labels.astype(np.int64)

    @property
    def evaluations(self) -> Ints:
        """The node classifiers evaluated for each row."""
        return self.top.evaluations

    @classmethod
    def of(cls, side: Side, top: TopK, k: int, seconds: float = 0.0) -> Ranking:
        """Translate what a model found into the common numbering, padded to k labels."""
        missing = ((0, 0), (0, k - top.labels.shape[1]))
        own = np.pad(top.labels, missing, constant_values=-1)
        labels = np.append(side.number, -1)[own].astype(np.int32)
        scores, probabilities = np.pad(top.scores, missing), np.pad(top.probabilities, missing)
        return cls(own, TopK(labels, scores, probabilities, top.evaluations), seconds)


@dataclass(frozen=True, eq=False)
class Answer:
    """The predictions for one value of tail.

    Attributes
    ----------
    tail : float
    ranking : Ranking
    hits : bool array [rows, k]
    metrics : dict of str to float
        As returned by `longleaf.metrics.evaluate`.
    bins : list of FrequencyBin
    bands : dict of str to (float, float)
        Bounds of the middle 95 % of bootstrap resamples, for ``p@k``, ``f1@k``, ``psp@k`` and the recall of
        each bin.
    """

    tail: float
    ranking: Ranking
    hits: npt.NDArray[np.bool_]
    metrics: dict[str, float]
    bins: list[FrequencyBin]
    bands: dict[str, Band]

    @property
    def labels(self) -> Ints:
        """The ranked labels in the common numbering."""
        return self.ranking.labels


def rank(
    problem: Problem,
    side: Side,
    tail: float,
    propensity: tuple[float, float] | None = None,
    n_jobs: int | None = None,
) -> Ranking:
    """Find the best labels of all rows, and measure the time."""
    k = min(problem.k, side.model.n_labels_)
    constants = problem.propensity if propensity is None else propensity
    start = time.perf_counter()
    top = side.model.top_k(side.X, k, tail=tail, propensity=constants, n_jobs=n_jobs)
    seconds = time.perf_counter() - start
    return Ranking.of(side, top, problem.k, seconds)


def answer(
    problem: Problem, side: Side, tail: float, *, samples: int, seed: int, n_jobs: int | None = None
) -> Answer:
    """Predict with one model and one value of tail, and evaluate the predictions."""
    ranking = rank(problem, side, tail, n_jobs=n_jobs)
    labels, truth = ranking.labels, problem.truth
    # Compared with an empty ranking, the interval of the difference is that of the metric itself.
    nothing = np.full_like(labels, -1)
    bands = compare(
        truth,
        nothing,
        labels,
        inverse_propensity=problem.inverse_propensity,
        counts=problem.counts,
        k=problem.places,
        n_samples=samples,
        random_state=seed,
    )
    return Answer(
        tail,
        ranking,
        find_hits(truth, labels),
        evaluate(truth, ranking.top, inverse_propensity=problem.inverse_propensity, k=problem.places),
        frequency_table(truth, labels, problem.counts, k=problem.k),
        {name: (one.low, one.high) for name, one in bands.items()},
    )
