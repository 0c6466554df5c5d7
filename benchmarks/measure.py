"""Clocks and memory of the running process (Linux)."""

import os
import resource
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ENOUGH_SECONDS = 30.0


@dataclass
class Cost:
    """What one call cost: wall and CPU seconds, the peak of memory above where it began, and in all."""

    seconds: float
    cpu_seconds: float
    peak_bytes: int | None
    process_peak_bytes: int | None = None


def measure(call: Callable[[], Any]) -> tuple[Any, Cost]:
    """Run ``call`` once; return its result and what it cost."""
    resettable = _reset_peak()
    before = _status("VmRSS")
    children = children_seconds()  # looked up outside of the clocks: it takes milliseconds
    wall, cpu = time.perf_counter(), time.process_time()
    result = call()
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    cpu += children_seconds() - children
    peak = _status("VmHWM")
    return result, Cost(wall, cpu, max(0, peak - before) if resettable else None, peak)


def children_seconds() -> float:
    """Return the CPU seconds of all processes that this one has started, ended or not."""
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return ended.ru_utime + ended.ru_stime + _running_children_seconds()


def _running_children_seconds() -> float:
    parents, ticks = {}, {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:  # it has just ended
            continue
        process = int(path.parent.name)
        parents[process], ticks[process] = int(fields[1]), sum(map(int, fields[11:15]))

    def is_below(process: int) -> bool:
        parent = parents.get(process, 0)
        return parent == os.getpid() or (parent > 1 and is_below(parent))

    return sum(ticks[process] for process in ticks if is_below(process)) / os.sysconf("SC_CLK_TCK")


def best_of(call: Callable[[], Any], runs: int) -> tuple[Any, Cost]:
    """Run ``call`` up to ``runs`` times; return the last result and the least of each clock.

    Calls that have already taken ``ENOUGH_SECONDS`` together are not repeated.
    """
    costs: list[Cost] = []
    while len(costs) < runs and sum(cost.seconds for cost in costs) < ENOUGH_SECONDS:
        result, cost = measure(call)
        costs.append(cost)
    least = Cost(min(c.seconds for c in costs), min(c.cpu_seconds for c in costs), costs[0].peak_bytes)
    return result, least


def least_mean(call: Callable[[Any], Any], items: list[Any], runs: int) -> Cost:
    """Return the mean cost of a call over ``items``, the least of ``runs`` passes over them.

    A pass ends early after ``ENOUGH_SECONDS / runs``: one peer reads its model anew in every call.
    """
    walls, cpus = [], []
    for _ in range(runs):
        begun, cpu_begun, done = time.perf_counter(), time.process_time(), 0
        for item in items:
            call(item)
            done += 1
            if time.perf_counter() - begun > ENOUGH_SECONDS / runs:
                break
        walls.append((time.perf_counter() - begun) / done)
        cpus.append((time.process_time() - cpu_begun) / done)
    return Cost(min(walls), min(cpus), None)


def limit_memory(limit: int) -> None:
    """Refuse this process more than ``limit`` bytes of memory of its own (mapped files do not count)."""
    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))


def size_on_disk(path: Path) -> int:
    """Return the bytes of a file, or of all files below a folder."""
    if path.is_file():
        return path.stat().st_size
    return sum(file.stat().st_size for file in path.rglob("*") if file.is_file())


def _reset_peak() -> bool:
    """Let the kernel's high-water mark start again from the present size; False where that is refused.

    The mark is kept by the kernel, so that it also sees peaks inside a call that holds Python's lock.
    """
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return False
    return True


def _status(field: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1]) * 1024
    raise LookupError(f"/proc/self/status must have a line {field}.")
