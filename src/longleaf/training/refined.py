"""Refined labels: one more classifier per label, trained on its rows and on those mistaken for them.

The problem: a label's classifier in a tree tells its rows from those of its siblings only, and that for many
labels it has a handful of rows. One classifier per label trained on all rows ranks rare labels better, at a
cost of rows times labels. Nearly all of these rows teach it nothing: they are easily told apart. So

1. a trained tree ranks the training rows (the best `RANKS` labels of each, found by beam search);
2. a label's classifier is trained on the rows that carry it and on its *hard negatives*, the rows that have
   it or one of its group high in their ranking; the margin begins at `MARGIN`, which stands for the others;
3. positive rows are weighted as in `longleaf.BR.pw_dismec` with ``class_balanced=True``.

Labels are grouped by `GROUP`, as they lie in the leaves of the tree: a group is trained in lanes on the rows
of all its labels, and its weights are stored together. `longleaf.calibration` says what the margins become.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from longleaf import _core
from longleaf._validation import Rows
from longleaf.training.data import DataSizes, TrainingData
from longleaf.training.job import Refining
from longleaf.training.memory import release_unused
from longleaf.training.positive_weight import balanced_share
from longleaf.training.solver import (
    NodeTrainer,
    SolverSettings,
    node_costs,
    positive_weights,
)
from longleaf.training.store import Facts, WeightStore
from longleaf.training.trees import train_nodes
from longleaf.trees.label_tree import LabelTree
from longleaf.weights.chunks import WeightedTree, ranges

logger = logging.getLogger("longleaf")

GROUP = 16
RANKS, MOST_RANKED = 400, 2**27
"""Labels ranked per row; fewer where there are so many rows that all rankings together would be too long."""
BEAM = 20
BLOCK_ROWS = 1 << 14
REFINED_STEPS, REFINED_SIZE = 5, 1.2
"""They take about as long as the training of so many trees, and as much room."""
MARGIN = -1.0
C, BIAS, TOLERANCE = 1.0, 0.2, 0.05


def refined_tree(tree: LabelTree) -> LabelTree:
    """Return the groups of a tree's labels as a tree: the root, the groups, the labels."""
    labels = tree.labels
    n = len(labels)
    n_groups = -(-n // GROUP) if n > GROUP else 0
    inner = 1 + n_groups
    groups = inner + np.arange(n_groups) * n // max(n_groups, 1)
    first_child = np.concatenate([[1], groups, np.full(n + 1, inner + n)])
    label = np.concatenate([np.full(inner, -1), labels])
    return LabelTree(first_child.astype(np.int32), label.astype(np.int32))


def refined_settings(
    settings: SolverSettings,
    label_counts: npt.NDArray[np.int64],
    inverse_propensity: npt.NDArray[np.float64],
) -> SolverSettings:
    """Return how refined classifiers are trained, given the settings of the trees."""
    balanced = (2 * inverse_propensity - 1) * balanced_share(np.maximum(label_counts, 1))
    return replace(
        settings,
        loss="squared-hinge",
        C=C,
        C_scale="none",
        bias=BIAS,
        tolerance=TOLERANCE,
        threshold=settings.threshold / 2,
        positive_weight=1.0,
        inverse_prior=False,
        label_weight=balanced,
        label_inverse_propensity=None,
        margin=MARGIN,
    )


def confused_rows(
    weighted: WeightedTree, rows: Rows, Y: sp.csr_array, tree: LabelTree, link: int, threads: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int32]]:
    """Return the rows of each node of a refined tree, as `node_rows` does of other trees.

    A label has the rows that carry it, a group those and the rows that rank one of its labels high.
    """
    ranks = min(RANKS, len(weighted.tree.labels), max(MOST_RANKED // max(rows.n_rows, 1), 1))
    forest, nothing = weighted.forest(rows.n_features, link), np.zeros(0, np.float32)
    pieces = []
    for start in range(0, rows.n_rows, BLOCK_ROWS):
        block, labels = rows[start : start + BLOCK_ROWS], Y[start : start + BLOCK_ROWS]
        ranked, *_ = forest.top_k(
            *block.csr,
            block.scale,
            k=ranks,
            beam=BEAM,
            union_rule=False,
            log_gain=nothing,
            log_bounds=nothing,
            log_threshold=nothing,
            log_floor=-np.inf,
            threads=threads,
        )
        indptr, members = _core.ranked_rows(
            labels.indptr.astype(np.int64, copy=False),
            labels.indices.astype(np.int32, copy=False),
            Y.shape[1],
            ranked.ravel(),
            tree.first_child,
            tree.label,
        )
        pieces.append((np.diff(indptr), members + np.int32(start)))
    return _joined(pieces)


def _joined(
    pieces: list[tuple[npt.NDArray[np.int64], npt.NDArray[np.int32]]],
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int32]]:
    """Join the lists of rows of several blocks, given as the lists' lengths and their rows."""
    indptr = np.concatenate([[0], np.cumsum(np.sum([sizes for sizes, _ in pieces], axis=0))]).astype(np.int64)
    members, begin = np.empty(indptr[-1], np.int32), indptr[:-1].copy()
    for sizes, rows in pieces:
        members[ranges(begin, sizes)] = rows
        begin += sizes
    return indptr, members


def refined_trainer(
    weighted: WeightedTree,
    data: TrainingData,
    settings: SolverSettings,
    *,
    link: int,
    seed: int,
    threads: int,
    tree: LabelTree | None = None,
) -> NodeTrainer:
    """Find the rows of each refined label, and return what trains them.

    Parameters
    ----------
    weighted : WeightedTree
        The trained tree that ranks the rows.
    data : TrainingData
    settings : SolverSettings
        As `refined_settings` returns them.
    link : int
        How margins of the tree become probabilities.
    tree : LabelTree, optional
        The groups; those of the tree by default.
    """
    tree = refined_tree(weighted.tree) if tree is None else tree
    indptr, members = confused_rows(weighted, data.rows, data.labels, tree, link, threads)
    sizes = np.diff(indptr)
    return NodeTrainer(
        data.rows,
        tree,
        settings,
        seed,
        indptr,
        members,
        node_costs(tree, np.maximum(sizes, 1), settings),
        positive_weights(tree, sizes, settings),
        data.row_weight,
    )


def train_refined(
    weighted: WeightedTree,
    data: TrainingData,
    sizes: DataSizes,
    refining: Refining,
    seed: int,
    threads: int,
    progress: Callable[[float], None] | None,
    store: WeightStore | None,
    number: int,
) -> tuple[WeightedTree, Facts]:
    """Train the refined labels of a model whose first tree is trained; a store has them as one more tree."""
    settings = refining.settings(sizes)
    trainer = refined_trainer(weighted, data, settings, link=refining.link, seed=seed, threads=threads)
    weights, facts = train_nodes(trainer, number, threads, progress, store)
    release_unused()
    logger.info("refined labels: %d, %s", len(trainer.tree.labels), facts)
    return WeightedTree(trainer.tree, weights), facts
