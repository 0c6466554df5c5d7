"""Training that keeps what it has finished: range by range, each thread at one of its own."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait

from longleaf import _core
from longleaf.training.queue import UnitQueue
from longleaf.training.solver import NodeTrainer
from longleaf.training.store import Facts, WeightStore

LOOK_SECONDS = 0.1
"""How often progress is reported."""


def train_resumably(
    trainer: NodeTrainer,
    store: WeightStore,
    tree: int,
    threads: int,
    progress: Callable[[float], None] | None = None,
) -> tuple[_core.WeightArrays, Facts]:
    """Train the nodes of a tree that ``store`` does not have yet, and keep them there.

    Parameters
    ----------
    trainer : NodeTrainer
        Of the tree.
    store : WeightStore
        Where finished ranges are and go.
    tree : int
        The number by which the store knows the tree.
    threads : int
        How many ranges are trained at a time, each by one thread: none waits for others between ranges.
    progress : callable, optional
        Called now and then, from the calling thread, with the share of the tree that is done.

    Returns
    -------
    WeightArrays, dict
        What `NodeTrainer.train` returns, bit for bit; the weights are mapped from the store.
    """
    queue = UnitQueue(*trainer.units(), threads)
    for stored in store.ranges(tree):
        queue.skip(stored.first_node, stored.last_node)
    stop = threading.Event()

    def train_range(first: int, last: int) -> None:
        def look(share: float) -> None:
            if stop.is_set():
                raise _StoppedError
            queue.note(first, last, share)

        first_node, last_node = queue.nodes(first, last)
        start = time.monotonic()
        weights, facts = trainer.train(first_node, last_node, threads=1, progress=look)
        queue.finish(first, last, time.monotonic() - start)
        store.save(tree, first_node, weights, facts)

    def work() -> None:
        while not stop.is_set() and (units := queue.take()) is not None:
            train_range(*units)

    _run(work, threads, stop, None if progress is None else lambda: progress(queue.share()))
    return store.joined(tree)


class _StoppedError(Exception):
    """Ends a thread's work because that of another has failed."""


def _run(
    work: Callable[[], None], threads: int, stop: threading.Event, report: Callable[[], None] | None
) -> None:
    """Run ``work`` in several threads; an error in any of them or Ctrl-C stops all."""
    with ThreadPoolExecutor(threads) as pool:
        running = {pool.submit(work) for _ in range(threads)}
        try:
            while running:
                done, running = wait(running, LOOK_SECONDS, FIRST_EXCEPTION)
                for future in done:
                    future.result()
                if report is not None:
                    report()
        finally:  # leaving the pool waits for its threads, so they must hear of it before
            stop.set()
