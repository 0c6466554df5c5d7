"""Rows that are computed one by one by several threads, and stop within a moment of Ctrl-C."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from typing import Protocol

SECONDS_BETWEEN_REPORTS = 0.1


class Task(Protocol):
    """What one thread does."""

    def run(self, row: int) -> None:
        """Compute a row."""

    def cancel(self) -> None:
        """Make a `run` in progress fail soon; called by another thread."""


def run_rows(tasks: Sequence[Task], n_rows: int, progress: Callable[[float], None] | None) -> None:
    """Compute all rows, each by one of the tasks; report progress and wait in the calling thread."""
    rows = iter(range(n_rows))
    lock = threading.Lock()
    stopped = threading.Event()
    finished = [0] * len(tasks)

    def work(place: int) -> None:
        while not stopped.is_set():
            with lock:
                row = next(rows, None)
            if row is None:
                return
            tasks[place].run(row)
            finished[place] += 1

    with ThreadPoolExecutor(len(tasks), thread_name_prefix="longleaf-encoder") as pool:
        try:
            running = {pool.submit(work, place) for place in range(len(tasks))}
            while running:
                done, running = wait(running, SECONDS_BETWEEN_REPORTS, FIRST_EXCEPTION)
                for one in done:
                    one.result()
                if progress is not None:
                    progress(sum(finished) / n_rows)
        except BaseException:
            stopped.set()
            for task in tasks:
                task.cancel()
            raise
