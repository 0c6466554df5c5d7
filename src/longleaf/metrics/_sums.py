"""Sums over rows and counts per label, from which metrics are computed; those of partitions add up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from longleaf.metrics._calibration import CalibrationSums
from longleaf.metrics._hits import Floats, Hits, Ints, find_hits, first, label_counts
from longleaf.metrics._ranking import (
    best_gains,
    f1_curves,
    ndcg_curves,
    precision_curves,
    recall_curves,
    returned_precision_curves,
    scored_hits,
)


@dataclass(frozen=True, eq=False)
class RankingSums:
    """Sums over some rows.

    Attributes
    ----------
    n_rows : int
    curves : dict of str to float64 array [width]
        For each metric, the sum over rows at 1, 2, …, width.
    best : dict of str to float64 array [width]
        The same for the best ranking, for the metrics that are divided by it.
    counts : dict of int to int64 array [3, labels]
        For each k and label: true rows, predictions, hits.
    calibration : dict of int to CalibrationSums
        For each k: the sums over its predictions; empty if the probabilities are not known.
    """

    n_rows: int
    curves: dict[str, Floats]
    best: dict[str, Floats]
    counts: dict[int, Ints]
    calibration: dict[int, CalibrationSums] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        truth: sp.csr_array,
        labels: Ints,
        places: Sequence[int],
        gains: Floats | None,
        normalize: bool,
        probabilities: npt.NDArray[Any] | None = None,
    ) -> RankingSums:
        """Compute the sums from true labels, ranked labels [rows, any], the values of k, and the gains.

        ``probabilities`` are those of the ranked labels [rows, any], if they are known.
        """
        labels = first(labels, max(places))
        hits = find_hits(truth, labels)
        n_true = np.diff(truth.indptr)
        curves = _rank_sums(hits.astype(np.float64), n_true) | _returned_sums(hits, labels, n_true)
        best = {}
        if gains is not None:
            scored = _rank_sums(scored_hits(hits, labels, gains), n_true)
            curves |= {f"ps{name}": curve for name, curve in scored.items()}
            if normalize:
                reached = _rank_sums(best_gains(truth, gains, max(places)), n_true)
                best = {f"ps{name}": curve for name, curve in reached.items()}
        counts = {at: _count_labels(truth, labels[:, :at], hits[:, :at]) for at in places}
        calibration = {}
        if probabilities is not None:
            calibration = {at: _calibrate(labels, hits, probabilities, at) for at in places}
        return cls(truth.shape[0], curves, best, counts, calibration)

    def __add__(self, other: RankingSums) -> RankingSums:
        """Return the sums over the rows of both; missing last labels count as 0."""
        return RankingSums(
            self.n_rows + other.n_rows,
            {name: curve + other.curves[name] for name, curve in self.curves.items()},
            {name: curve + other.best[name] for name, curve in self.best.items()},
            {at: _add_counts(count, other.counts[at]) for at, count in self.counts.items()},
            {at: sums + other.calibration[at] for at, sums in self.calibration.items()},
        )

    def figures(self) -> dict[str, float]:
        """Return the metrics in percent, as `longleaf.metrics.evaluate` names them."""
        curves = {name: curve / self.n_rows for name, curve in self.curves.items()}
        for name, curve in self.best.items():
            curves[name] = _ratio(curves[name], curve / self.n_rows)
        result = {
            f"{name}@{at}": 100.0 * float(curve[at - 1])
            for name, curve in curves.items()
            for at in self.counts
        }
        per_k = {at: _label_means(count) for at, count in self.counts.items()}
        names = next(iter(per_k.values()))
        result |= {f"{name}@{at}": 100.0 * per_k[at][name] for name in names for at in self.counts}
        calibrated = {at: sums.result() for at, sums in self.calibration.items()}
        for name in ("ece", "brier"):
            result |= {f"{name}@{at}": getattr(one, name) for at, one in calibrated.items()}
        return result


def _rank_sums(gained: Floats, n_true: npt.NDArray[Any]) -> dict[str, Floats]:
    """Sum precision, recall and nDCG at 1, 2, …, width over the rows, from the gain at each rank."""
    return {
        "p": precision_curves(gained).sum(axis=0),
        "recall": recall_curves(gained, n_true).sum(axis=0),
        "ndcg": ndcg_curves(gained, n_true).sum(axis=0),
    }


def _returned_sums(hits: Hits, labels: Ints, n_true: npt.NDArray[Any]) -> dict[str, Floats]:
    """Sum precision among the labels returned, and F1, at 1, 2, …, width over the rows."""
    found, returned = hits.cumsum(axis=1), (labels >= 0).cumsum(axis=1)
    return {
        "precision": returned_precision_curves(found, returned).sum(axis=0),
        "f1": f1_curves(found, returned, n_true).sum(axis=0),
    }


def _calibrate(labels: Ints, hits: Hits, probabilities: npt.NDArray[Any], k: int) -> CalibrationSums:
    width = min(k, probabilities.shape[1])
    given = labels[:, :width] >= 0
    return CalibrationSums.of(probabilities[:, :width][given], hits[:, :width][given])


def _count_labels(truth: sp.csr_array, labels: Ints, hits: Hits) -> Ints:
    return np.stack(label_counts(truth, labels, hits)).astype(np.int64)


def _add_counts(a: Ints, b: Ints) -> Ints:
    total = np.zeros((3, max(a.shape[1], b.shape[1])), np.int64)
    for one in (a, b):
        total[:, : one.shape[1]] += one
    return total


def _label_means(counts: Ints) -> dict[str, float]:
    """Return coverage and macro averages over the labels with a true row."""
    true, predicted, right = counts[:, counts[0] > 0]
    if not len(true):
        return dict.fromkeys(("coverage", "macro_precision", "macro_recall", "macro_f1"), 0.0)
    return {
        "coverage": float((right > 0).mean()),
        "macro_precision": float(_ratio(right, predicted).mean()),
        "macro_recall": float((right / true).mean()),
        "macro_f1": float((2.0 * right / (predicted + true)).mean()),
    }


def _ratio(part: npt.NDArray[Any], whole: npt.NDArray[Any]) -> Floats:
    """Divide; 0 / 0 is 0."""
    result: Floats = np.divide(part, whole, out=np.zeros(len(part)), where=whole > 0)
    return result
