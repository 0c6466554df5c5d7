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
    progress: Callable[[int, int], Progress],
    store: WeightStore | None = None,
) -> tuple[list[_core.WeightArrays], list[Facts]]:
    """Train every node of every tree; return the weights of each tree and what it took.

    ``progress`` returns what reports the progress of some steps; each tree is one. With a ``store``, only
    what it does not have is trained, and goes there; the weights are mapped from it.
    """
    trained = []
    for t, (tree, seed) in enumerate(zip(trees, seeds, strict=True)):
        trainer = NodeTrainer.prepare(
            data.rows, data.labels, tree, settings, seed=seed, row_weight=data.row_weight
        )
        weights, facts = train_nodes(trainer, t, threads, progress(t, 1), store)
        trained.append((weights, facts))
        release_unused()
        logger.info("tree %d of %d: %d nodes, %s", t + 1, len(trees), tree.n_nodes, facts)
        warn_of_trouble(t + 1, weights, facts, settings)
    return [weights for weights, _ in trained], [facts for _, facts in trained]


def train_nodes(
    trainer: NodeTrainer, number: int, threads: int, progress: Progress, store: WeightStore | None
) -> tuple[_core.WeightArrays, Facts]:
    """Train all nodes of a tree, or with a ``store`` those that it does not have."""
    if store is None:
        return trainer.train(threads=threads, progress=progress)
    return train_resumably(trainer, store, number, threads, progress)


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


def share_of(progress: Progress, first: int, steps: int, *, n_steps: int) -> Progress:
    """Return what reports the progress of some steps as that of all."""
    return None if progress is None else lambda done: progress((first + steps * min(done, 1.0)) / n_steps)
