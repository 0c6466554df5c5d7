"""What the training of all estimators shares: checked settings, weights of rows, one tree after the other."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from longleaf import _core
from longleaf._fitting.memory import release_unused
from longleaf._fitting.part_store import Facts as Facts
from longleaf._fitting.part_store import PartStore
from longleaf._fitting.part_training import train_by_parts
from longleaf._positive_weight import MOST_WEIGHT
from longleaf._validation import LabelsLike, Rows, check_features, check_labels
from longleaf.linear import NodeTrainer, SolverSettings
from longleaf.tree import LabelTree

logger = logging.getLogger("longleaf")

PIECE = 1 << 18
"""About so many entries are summed at a time: the rows may be on disk."""
MASS_UNIT = 1 << 24

Progress = Callable[[float], None] | None


@dataclass(frozen=True, eq=False)
class TrainingData:
    """Checked rows, their labels and what an error on each costs."""

    rows: Rows
    labels: sp.csr_array
    row_weight: npt.NDArray[np.float32] | None


def check_training_data(
    X: Any, y: LabelsLike, sample_weight: npt.ArrayLike | None, *, normalize: bool
) -> TrainingData:
    """Refuse what nothing can be learned from; ``normalize`` scales rows to unit length."""
    rows = check_features(X, normalize=normalize)
    if rows.n_features == 0:
        raise ValueError(
            f"X must have features; got 0 feature(s) (shape=({rows.n_rows}, 0)) "
            "while a minimum of 1 is required."
        )
    labels = check_labels(y, name="y")
    if rows.n_rows != labels.shape[0]:
        raise ValueError(
            f"X and y must have the same number of rows; got {rows.n_rows} and {labels.shape[0]}."
        )
    if rows.n_rows == 0 or labels.nnz == 0:
        raise ValueError(f"y must have at least one label to train on; got {rows.n_rows} rows with none.")
    return TrainingData(rows, labels, check_row_weight(sample_weight, rows.n_rows))


def train_trees(
    data: TrainingData,
    trees: list[LabelTree],
    seeds: list[int],
    settings: SolverSettings,
    threads: int,
    progress: Progress,
    store: PartStore | None = None,
) -> tuple[list[_core.WeightArrays], list[Facts]]:
    """Train every node of every tree; give the weights of each tree and what it took.

    With a ``store``, only what it does not have is trained, and goes there; the weights are mapped from it.
    """
    trained = []
    for t, (tree, seed) in enumerate(zip(trees, seeds, strict=True)):
        trainer = NodeTrainer.prepare(
            data.rows, data.labels, tree, settings, seed=seed, row_weight=data.row_weight
        )
        share = _share(progress, t, len(trees))
        if store is None:
            weights, facts = trainer.train(threads=threads, progress=share)
        else:
            weights, facts = train_by_parts(trainer, store, t, threads, share)
        trained.append((weights, facts))
        release_unused()
        logger.info("tree %d of %d: %d nodes, %s", t + 1, len(trees), tree.n_nodes, facts)
        warn_of_trouble(t + 1, weights, facts, settings)
    return [weights for weights, _ in trained], [facts for _, facts in trained]


def warn_of_trouble(tree: int, weights: _core.WeightArrays, facts: Facts, settings: SolverSettings) -> None:
    """Say what went wrong in the training of a tree, though a model came out."""
    if facts["unfinished"]:
        logger.warning(
            "tree %d: %d blocks of classifiers stopped at max_epochs=%d before reaching tolerance=%g",
            tree,
            facts["unfinished"],
            settings.max_epochs,
            settings.tolerance,
        )
    if settings.threshold > 0 and not weights["weights"].any():
        logger.warning(
            "tree %d: no weight reached threshold=%g, so that all rows get the same answer",
            tree,
            settings.threshold,
        )


def feature_mass(rows: Rows) -> npt.NDArray[np.int64]:
    """Say how much of the rows each feature makes up: the sum of its shares of their squared lengths.

    In whole numbers of 1 / ``MASS_UNIT``, so that sums are the same in any order, on any number of machines.
    """
    scale = _core.row_scales(rows.indptr, rows.data)
    mass = np.zeros(rows.n_features, np.int64)
    cuts = np.searchsorted(rows.indptr, np.arange(0, len(rows.indices), PIECE))
    for first, last in pairwise([*np.unique(cuts).tolist(), rows.n_rows]):
        piece = slice(int(rows.indptr[first]), int(rows.indptr[last]))
        value = rows.data[piece] * np.repeat(scale[first:last], np.diff(rows.indptr[first : last + 1]))
        units = np.rint(value.astype(np.float64) ** 2 * MASS_UNIT)
        mass += np.bincount(rows.indices[piece], units, rows.n_features).astype(np.int64)
    return mass


def check_row_weight(weight: npt.ArrayLike | None, n_rows: int) -> npt.NDArray[np.float32] | None:
    """Give float32 [rows], or None where every row counts alike."""
    if weight is None:
        return None
    with np.errstate(over="ignore"):
        array = np.asarray(weight, np.float32)
    if array.shape != (n_rows,) or not np.isfinite(array).all() or (array < 0).any():
        raise ValueError(
            f"sample_weight must be {n_rows} finite numbers of at least 0; got shape {array.shape}."
        )
    if n_rows and array.max() > MOST_WEIGHT:
        raise ValueError(f"sample_weight must be at most {MOST_WEIGHT:g}; got {array.max():g}.")
    if not array.any():
        raise ValueError("sample_weight must be above 0 for at least one row; got only zeros.")
    return array


def _share(progress: Progress, tree: int, n_trees: int) -> Progress:
    return None if progress is None else lambda done: progress((tree + min(done, 1.0)) / n_trees)
