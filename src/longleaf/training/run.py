"""Running a training in this process: within a limit of memory, and from a checkpoint, if wished."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from longleaf.training.checkpoint import StrPath, describe_training, kept_trees, open_checkpoint
from longleaf.training.data import DataSizes, TrainingData
from longleaf.training.job import Trained, TrainingJob
from longleaf.training.memory import parse_memory, release_unused
from longleaf.training.plan import plan_within
from longleaf.training.scratch import scratch_files
from longleaf.training.store import WeightStore
from longleaf.training.trees import train_trees


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
        weights, facts = train_trees(data, trees, seeds, settings, threads, progress, store)
    return Trained(sizes, trees, weights, facts)
