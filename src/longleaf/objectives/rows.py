"""Rows whose predictions are measured together: searched in blocks, and summed up per label."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from longleaf._validation import Rows, check_per_label
from longleaf.estimator import LabelEstimator
from longleaf.objectives.measures import Doubles, Lines, Measure, Sums
from longleaf.search.rows import overrides_of
from longleaf.search.score_map import Overrides
from longleaf.search.top_k import TopK
from longleaf.search.utility import Utility

Ints = npt.NDArray[np.int64]

SEARCHED_ROWS = 256
"""As many are searched at once at most."""
DEPTH = 200
"""How many labels of each row say how often labels are expected, unless labels are refined."""


@dataclass(frozen=True, eq=False)
class Counts:
    """What the predictions of some rows add up to, per label, by the terms of a measure."""

    measure: Measure
    total: Doubles
    predicted: Doubles
    positives: Doubles
    n_rows: int

    @classmethod
    def none(cls, measure: Measure, positives: Doubles, n_rows: int) -> Counts:
        """Return the counts where nothing is predicted."""
        return cls(measure, np.zeros_like(positives), np.zeros_like(positives), positives, n_rows)

    @classmethod
    def of(cls, measure: Measure, top: TopK, positives: Doubles) -> Counts:
        """Sum up predictions."""
        counts = cls.none(measure, positives, len(top.labels))
        counts.add(top)
        return counts

    def add(self, top: TopK) -> None:
        """Add predictions of other rows."""
        given, size = top.labels >= 0, len(self.positives)
        labels, eta = top.labels[given], top.probabilities[given].astype(np.float64)
        self.total[:] += np.bincount(labels, self.measure.term(eta), size)
        self.predicted[:] += np.bincount(labels, minlength=size)

    def change(self, labels: npt.NDArray[np.int32], eta: Doubles, rows: float) -> None:
        """Add predictions of one row, or take them back if ``rows`` is -1."""
        self.total[labels] += rows * self.measure.term(eta)
        self.predicted[labels] += rows

    @property
    def sums(self) -> Sums:
        """The same as a measure takes it."""
        return Sums(self.total, self.predicted, self.positives, self.n_rows)

    @property
    def value(self) -> float:
        """The measure from 0 to 1: the mean over all labels."""
        return float(self.measure.value(self.sums).mean())

    def lines(self, labels: npt.NDArray[Any], without: Doubles | None = None) -> Lines:
        """Return what one more prediction of some labels adds, as a line in its probability.

        ``without`` has the probabilities of one prediction of each that is taken back first; -1 is no label,
        and its line means nothing.
        """
        total, predicted = self.total[labels], self.predicted[labels]
        if without is not None:
            total, predicted = total - self.measure.term(without), predicted - (labels >= 0)
        return self.measure.step(Sums(total, predicted, self.positives[labels], self.n_rows))

    def mixed(self, other: Counts, share: float) -> Counts:
        """Return the counts if this share of all rows is predicted as in the other ones."""
        total = (1 - share) * self.total + share * other.total
        predicted = (1 - share) * self.predicted + share * other.predicted
        return replace(self, total=total, predicted=predicted)


@dataclass(frozen=True, eq=False)
class RowSet:
    """A model and the rows to be predicted together."""

    model: LabelEstimator
    rows: Rows
    overrides: Overrides | None
    n_jobs: int | None

    @classmethod
    def of(cls, model: LabelEstimator, X: Any, n_jobs: int | None) -> RowSet:
        """Check the rows of a caller."""
        return cls(model, model._check_rows(X), overrides_of(X), n_jobs)

    @property
    def n_rows(self) -> int:
        """How many rows there are."""
        return self.rows.n_rows

    @property
    def n_labels(self) -> int:
        """How many labels the model has."""
        return self.model.n_labels_

    def search(self, k: int, utility: Utility | None = None, chosen: Ints | None = None) -> TopK:
        """Find the best k labels of all rows, or of some; in blocks, which need little memory at once."""
        numbers = np.arange(self.n_rows) if chosen is None else chosen
        return TopK.concatenate(
            [self._search(k, utility, block) for block in self.blocks(numbers, SEARCHED_ROWS)]
        )

    def _search(self, k: int, utility: Utility | None, block: Ints) -> TopK:
        overrides = None if self.overrides is None else self.overrides.take(block)
        return self.model._search(self.rows.take(block), k, overrides, utility=utility, n_jobs=self.n_jobs)

    def blocks(self, order: Ints, size: int) -> Iterator[Ints]:
        """Yield the row numbers in the given order, so many at once; of none an empty block."""
        for start in range(0, max(1, len(order)), size):
            yield order[start : start + size]

    def survey(self, k: int, measure: Measure, shares: npt.ArrayLike | None) -> tuple[TopK, Counts]:
        """Return the plain top k of all rows, and what they add up to, with how often labels are expected.

        That is the caller's own share of rows, or the sum of the probabilities of each row's best labels.
        Where labels are refined these are all that are not 0; of other models the sum lacks those after the
        first 200, which are small.
        """
        given = None
        if shares is not None:
            given = self.n_rows * check_per_label(shares, self.n_labels, "positives", high=1.0)
        depth = k if given is not None else max(k, self._depth())
        counts = Counts.none(measure, np.zeros(self.n_labels) if given is None else given, self.n_rows)
        tops = []
        for block in self.blocks(np.arange(self.n_rows), SEARCHED_ROWS):
            deep = self._search(min(depth, self.n_labels), None, block)
            labels, scores, eta = deep.labels[:, :k], deep.scores[:, :k], deep.probabilities[:, :k]
            tops.append(TopK(labels.copy(), scores.copy(), eta.copy(), deep.evaluations))
            counts.add(tops[-1])
            if given is None:
                found = deep.labels >= 0
                counts.positives[:] += np.bincount(
                    deep.labels[found], deep.probabilities[found], self.n_labels
                )
        return TopK.concatenate(tops), counts

    def _depth(self) -> int:
        score_map = self.model._score_map()
        if self.model.refined_ is None or score_map is None:
            return DEPTH
        named = 0 if self.overrides is None else int(np.diff(self.overrides.indptr).max(initial=0))
        return score_map.nominees * len(self.model.trees_) + named
