"""The rungs of successive halving: training and evaluating candidates."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.base import clone

from longleaf._validation import check_count, check_number
from longleaf.estimator import LabelEstimator
from longleaf.metrics import Difference, compare, evaluate
from longleaf.propensity import inverse_propensity_from_counts
from longleaf.text.field_rows import FieldRows
from longleaf.training.trees import logger
from longleaf.tuning.candidates import Settings, of_estimator

METRIC = re.compile(r"(p|f1|ndcg|psp)@([1-9]\d{0,3})")

Labels = npt.NDArray[np.int32]
Report = Callable[["Trial"], None]
Progress = Callable[[float], None]


@dataclass(frozen=True)
class Trial:
    """One training run and its result.

    Attributes
    ----------
    candidate : int
        Number of the settings; 0 are the starting ones.
    settings : dict
        The settings.
    rung, rows : int
        The rung, from 0, and its number of training rows.
    value : float
        The metric on the development rows, in percent.
    seconds : float
        Time for training and evaluation; it does not affect the choice.
    """

    candidate: int
    settings: Settings
    rung: int
    rows: int
    value: float
    seconds: float = field(compare=False)


def parse_metric(metric: str) -> tuple[str, int]:
    """Parse ``psp@5`` as ``("psp", 5)``."""
    match = METRIC.fullmatch(metric) if isinstance(metric, str) else None
    if match is None:
        raise ValueError(f"metric must be p@k, f1@k, ndcg@k or psp@k, as in psp@5; got {metric!r}.")
    return match[1], int(match[2])


@dataclass(frozen=True, eq=False)
class Evaluator:
    """Training rows, development rows, and the metric."""

    X: Any
    Y: sp.csr_array
    X_dev: Any
    truth: sp.csr_array
    metric: str
    k: int
    tail: float
    inverse_propensity: npt.NDArray[np.float64]

    @classmethod
    def of(
        cls,
        metric: str,
        tail: float | None,
        propensity: tuple[float, float],
        X: Any,
        Y: sp.csr_array,
        X_dev: Any,
        Y_dev: sp.csr_array,
    ) -> Evaluator:
        """Check and complete the arguments."""
        name, k = parse_metric(metric)
        dial = check_number(float(name == "psp") if tail is None else tail, "tail", low=0)
        if Y.nnz == 0 or Y_dev.nnz == 0:
            raise ValueError(
                "Y must have labels in both training and development rows; got none in one of them."
            )
        width = max(Y.shape[1], Y_dev.shape[1])  # labels that training never saw also count
        truth = sp.csr_array((Y_dev.data, Y_dev.indices, Y_dev.indptr), shape=(Y_dev.shape[0], width))
        a, b = propensity
        counts = np.bincount(Y.indices, minlength=width)
        inverse_propensity = inverse_propensity_from_counts(counts, Y.shape[0], a, b)
        return cls(X, Y, X_dev, truth, metric, k, dial, inverse_propensity)

    def top(self, model: LabelEstimator, settings: Settings) -> Labels:
        """Rank the development rows; propensities are those of all training rows, in every rung."""
        n_labels = self.Y.shape[1]
        gain = self.inverse_propensity[:n_labels] ** self.tail if self.tail else None
        return model.top_k(_weighted(self.X_dev, settings), min(self.k, n_labels), gain=gain).labels

    def value(self, top: Labels) -> float:
        """Return the metric, in percent."""
        return evaluate(self.truth, top, inverse_propensity=self.inverse_propensity, k=self.k)[self.metric]

    def difference(self, a: Labels, b: Labels) -> Difference:
        """Compare two rankings by the metric."""
        return compare(self.truth, a, b, inverse_propensity=self.inverse_propensity, k=self.k)[self.metric]


@dataclass(eq=False)
class Halving:
    """Train fewer and fewer candidates on more and more rows."""

    evaluator: Evaluator
    base: LabelEstimator
    drawn: list[Settings]
    sizes: list[int]
    factor: int
    progress: Progress | None
    report: Report | None
    tops: dict[int, Labels] = field(default_factory=dict)
    """The rankings of each candidate of the last rung."""

    def run(self, order: npt.NDArray[np.int64]) -> tuple[list[Trial], Trial]:
        """Return all trials and the best of the last rung; a rung trains on the first rows of ``order``."""
        remaining, trials, ranked = list(range(len(self.drawn))), [], []
        for rung, size in enumerate(self.sizes):
            rows = None if size == len(order) else np.sort(order[:size])
            X, Y = (
                matrix if rows is None else matrix[rows] for matrix in (self.evaluator.X, self.evaluator.Y)
            )
            # rungs cost about the same: later ones train fewer candidates on more rows
            share = 1 / len(remaining) / len(self.sizes)
            tried: list[Trial] = []
            for one in remaining:
                progress = self._rescaled_progress(rung / len(self.sizes) + len(tried) * share, share)
                tried.append(self._try(one, rung, X, Y, progress))
            trials += tried
            ranked = sorted(tried, key=lambda trial: (-trial.value, trial.candidate))
            best = [trial.candidate for trial in ranked[: -(-len(remaining) // self.factor)]]
            remaining = sorted({0, *best})  # the starting settings stay for comparison
        return trials, ranked[0]

    def _try(self, candidate: int, rung: int, X: Any, Y: sp.csr_array, progress: Progress | None) -> Trial:
        begin = time.perf_counter()
        settings = self.drawn[candidate]
        model: Any = clone(self.base).set_params(**of_estimator(settings))
        top = self.evaluator.top(model.fit(_weighted(X, settings), Y, progress=progress), settings)
        if progress is not None:
            progress(1.0)
        if rung == len(self.sizes) - 1:
            self.tops[candidate] = top
        value, seconds = self.evaluator.value(top), time.perf_counter() - begin
        trial = Trial(candidate, self.drawn[candidate], rung, Y.shape[0], value, seconds)
        logger.info("rung %d, %d rows, %s: %.2f", rung, trial.rows, trial.settings, trial.value)
        if self.report is not None:
            self.report(trial)
        return trial

    def _rescaled_progress(self, before: float, share: float) -> Progress | None:
        """Return a callback that reports the progress of one training as that of the whole search."""
        report = self.progress
        return None if report is None else lambda done: report(before + share * min(done, 1.0))


def _weighted(X: Any, settings: Settings) -> Any:
    """Return the matrix of rows, by the weights of fields and encoder where these are tried."""
    if not isinstance(X, FieldRows):
        return X
    return X.weighted(settings.get("fields"), settings.get("encoder_weight"))


def rung_sizes(n_rows: int, n_candidates: int, factor: int, min_rows: int) -> list[int]:
    """Return the number of rows of each rung, increasing by ``factor`` up to all rows.

    Examples
    --------
    >>> rung_sizes(9000, 18, 3, 500), rung_sizes(9000, 18, 3, 2000), rung_sizes(800, 18, 3, 1000)
    ([1000, 3000, 9000], [3000, 9000], [800])
    """
    least = check_count(min_rows, "min_rows")
    sizes, share = [n_rows], factor
    while share <= n_candidates and n_rows // share >= least:
        sizes.append(n_rows // share)
        share *= factor
    return sizes[::-1]
