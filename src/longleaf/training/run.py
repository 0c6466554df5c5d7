"""Running a training in this process: within a limit of memory, and from a checkpoint, if wished."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from longleaf.training.checkpoint import StrPath, describe_training, kept_trees, open_checkpoint
from longleaf.training.data import DataSizes, TrainingData
from longleaf.training.job import Trained, TrainingJob
from longleaf.training.memory import parse_memory, release_unused
from longleaf.training.plan import plan_within
from longleaf.training.refined import REFINED_STEPS, train_refined
from longleaf.training.scratch import scratch_files
from longleaf.training.store import WeightStore
from longleaf.training.trees import share_of, train_trees
from longleaf.weights.chunks import WeightedTree

Progress = Callable[[float], None] | None


def first_of_two(options: dict[str, Any]) -> dict[str, Any]:
    """Return the options of a training that another follows: checkpoints are for the last one."""
    own = options | {"progress": _scaled(options.get("progress"), 0.0)}
    return own | ({"checkpoint": None} if "checkpoint" in own else {})


def second_of_two(options: dict[str, Any]) -> dict[str, Any]:
    """Return the options of the training that follows."""
    return options | {"progress": _scaled(options.get("progress"), 0.5)}


def _scaled(progress: Progress, start: float) -> Progress:
    return None if progress is None else lambda done: progress(start + done / 2)


def run(
    job: TrainingJob,
    data: TrainingData,
    sizes: DataSizes,
    *,
    progress: Callable[[float], None] | None = None,
    checkpoint: StrPath | None = None,
    memory: str | int | None = None,
    scratch: StrPath | None = None,
) -> Trained:
    """Make the trees and train them.

    Parameters
    ----------
    job : TrainingJob
    data, sizes
        The checked rows, and what was counted of them.
    progress, checkpoint, memory, scratch
        As in `longleaf.PLT.fit`.
    """
    settings, seeds, threads = job.weigh(job.settings, sizes), job.seeds(sizes), job.threads
    with ExitStack() as files:  # mapped weights outlive their files' names
        store = None
        if memory is not None:
            folder = Path(files.enter_context(TemporaryDirectory(prefix="longleaf-", dir=scratch)))
            execution = plan_within(job, data, sizes, parse_memory(memory), folder)
            threads, store = execution.threads, WeightStore(folder) if execution.spill else None
            files.enter_context(scratch_files(folder if execution.scratch else None))
        build = partial(job.source.build, data.rows, data.labels, sizes.label_counts, threads=threads)
        if checkpoint is None:
            trees = list(build(seeds))
        else:
            description = describe_training(job.kind, job.params, seeds, data)
            kept = open_checkpoint(checkpoint, description, any_seeds=job.random_state is None)
            store, seeds = files.enter_context(kept)
            trees = kept_trees(store, seeds, build)
        release_unused()
        steps = len(trees) + (0 if job.refining is None else REFINED_STEPS)
        share = partial(share_of, progress, n_steps=steps)
        weights, facts = train_trees(data, trees, seeds, settings, threads, share, store)
        refined = None
        if job.refining is not None:
            ranking, last = WeightedTree(trees[0], weights[0]), share(len(trees), REFINED_STEPS)
            refined, more = train_refined(
                ranking, data, sizes, job.refining, seeds[0], threads, last, store, len(trees)
            )
            facts.append(more)
    return Trained(sizes, trees, weights, facts, refined)
