"""Replays the task stream of one Dask run on any number of workers: list scheduling with transfers.

Given: tasks with compute seconds, result bytes, dependencies and phase, as Dask recorded them. Out: when
the last one ends on n workers of one thread. A task goes, in the order of submission, to the worker where it
would start first; what it needs and is not there yet is fetched one result after another. The client starts a
phase when the one before has ended, as `longleaf.distributed.fit` does. Source: Graham 1969.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Task:
    """What Dask recorded of a task."""

    key: str
    seconds: float
    bytes: int
    needs: tuple[str, ...]
    phase: int
    number: int  # in the order of submission

    @property
    def kind(self) -> str:
        """The word for what it does."""
        return self.key.split("-")[1]


@dataclass(frozen=True)
class Costs:
    """What a cluster takes besides computing."""

    bytes_per_second: float = 1e9  # between two workers: ten-gigabit Ethernet, less its overhead
    seconds_per_fetch: float = 0.001
    seconds_per_task: float = 0.001  # of the scheduler, which takes one task after another


@dataclass(frozen=True)
class Schedule:
    """What came of a replay."""

    seconds: float
    moved_bytes: int
    phase_seconds: list[float]


def replay(tasks: Sequence[Task], workers: int, costs: Costs) -> Schedule:
    """Schedule recorded tasks on so many workers."""
    size = {task.key: task.bytes for task in tasks}
    homes: dict[str, set[int]] = {}
    ready_at: dict[str, float] = {}
    free = [0.0] * workers
    clock, moved, phases = 0.0, 0, []
    scheduler = 0.0
    for phase in sorted({task.phase for task in tasks}):
        begin = clock
        free = [max(at, begin) for at in free]
        scheduler = max(scheduler, begin)
        for task in _in_order([task for task in tasks if task.phase == phase]):
            scheduler += costs.seconds_per_task
            known = max([scheduler, *(ready_at[key] for key in task.needs)])
            worker = min(
                range(workers),
                key=lambda w: (max(free[w], known) + _fetch(task, w, homes, size, costs)[0], w),
            )
            seconds, fetched = _fetch(task, worker, homes, size, costs)
            end = max(free[worker], known) + seconds + task.seconds
            free[worker] = end
            moved += fetched
            for key in task.needs:
                homes[key].add(worker)
            homes[task.key], ready_at[task.key] = {worker}, end
            clock = max(clock, end)
        phases.append(clock - begin)
    return Schedule(clock, moved, phases)


def critical_path(tasks: Sequence[Task]) -> float:
    """Give the seconds of the longest chain in each phase, summed: no number of workers is faster."""
    end: dict[str, float] = {}
    clock = 0.0
    for phase in sorted({task.phase for task in tasks}):
        begin = clock
        for task in _in_order([task for task in tasks if task.phase == phase]):
            end[task.key] = max([begin, *(end[key] for key in task.needs)]) + task.seconds
            clock = max(clock, end[task.key])
    return clock


def _fetch(
    task: Task, worker: int, homes: Mapping[str, set[int]], size: Mapping[str, int], costs: Costs
) -> tuple[float, int]:
    missing = [size[key] for key in task.needs if worker not in homes[key]]
    return sum(missing) / costs.bytes_per_second + len(missing) * costs.seconds_per_fetch, sum(missing)


def _in_order(tasks: Sequence[Task]) -> list[Task]:
    """Order tasks by submission, each after what it needs."""
    here = {task.key: task for task in tasks}
    left = {task.key: sum(key in here for key in task.needs) for task in tasks}
    then: dict[str, list[str]] = {}
    for task in tasks:
        for key in task.needs:
            if key in here:
                then.setdefault(key, []).append(task.key)
    heap = [(task.number, task.key) for task in tasks if not left[task.key]]
    heapq.heapify(heap)
    order = []
    while heap:
        _, key = heapq.heappop(heap)
        order.append(here[key])
        for other in then.get(key, []):
            left[other] -= 1
            if not left[other]:
                heapq.heappush(heap, (here[other].number, other))
    return order
