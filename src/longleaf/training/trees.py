"""One tree after the other: the classifiers of all nodes."""

from __future__ import annotations

import logging
from collections.abc import Callable

from longleaf import _core
from longleaf.training.data import TrainingData
from longleaf.training.memory import release_unused
from longleaf.training.resumable import train_resumably
from longleaf.training.solver import NodeTrainer, SolverSettings
from longleaf.training.store import Facts, WeightStore
from longleaf.trees.label_tree import LabelTree

logger = logging.getLogger("longleaf")

Progress = Callable[[float], None] | None


def train_trees(
    data: TrainingData,
    trees: list[LabelTree],
    seeds: list[int],
    settings: SolverSettings,
    threads: int,
    progress: Progress,
    store: WeightStore | None = None,
) -> tuple[list[_core.WeightArrays], list[Facts]]:
    """Train every node of every tree; return the weights of each tree and what it took.

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
            weights, facts = train_resumably(trainer, store, t, threads, share)
        trained.append((weights, facts))
        release_unused()
        logger.info("tree %d of %d: %d nodes, %s", t + 1, len(trees), tree.n_nodes, facts)
        warn_of_trouble(t + 1, weights, facts, settings)
    return [weights for weights, _ in trained], [facts for _, facts in trained]


def warn_of_trouble(tree: int, weights: _core.WeightArrays, facts: Facts, settings: SolverSettings) -> None:
    """Say what went wrong in the training of a tree, although a model came out."""
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
            "tree %d: no weight reached threshold=%g, so all rows get the same answer",
            tree,
            settings.threshold,
        )


def _share(progress: Progress, tree: int, n_trees: int) -> Progress:
    return None if progress is None else lambda done: progress((tree + min(done, 1.0)) / n_trees)
