"""Many machines: real runs of `longleaf.distributed.fit` on few processes, and their tasks replayed on many.

``python -m benchmarks.scaleout`` trains EURLEX57K on clusters of 1, 2 and 4 processes, then once more on one
process cut as for 64 threads, replays the recorded tasks on 1 to 64 workers, and prints tables in Markdown.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections import Counter, defaultdict
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any
from unittest import mock

from distributed import Client, LocalCluster
from distributed.diagnostics.plugin import SchedulerPlugin

import longleaf as ll
from benchmarks.data import ROOT, load, prepare
from benchmarks.scaleout.replay import Costs, Task, critical_path, replay
from longleaf.training.cluster import run as cluster_run

RESULTS = ROOT / "benchmarks" / "results" / "scaleout.json"
PROCESSES = (1, 2, 4)
WORKERS = (1, 2, 4, 8, 16, 32, 64)
PHASES = (  # the client waits for one before it submits the next
    ("rows", "read", "check", "sizes"),
    ("labels", "weigh"),
    ("gather", "centroids", "seen"),
    ("size",),
    ("kmeans",),
    ("tree", "index", "nodes", "settings", "features"),
    ("order", "costs", "select", "train"),
)


class Recorder(SchedulerPlugin):  # type: ignore[misc]  # distributed has no types here
    """Notes what each task needs, when Dask hands it to a worker; the task stream does not say."""

    name = "longleaf-recorder"

    def __init__(self) -> None:
        self.needs: dict[str, tuple[str, ...]] = {}

    async def start(self, scheduler: Any) -> None:
        """Keep the notes where the client can ask for them."""
        self.scheduler = scheduler
        scheduler.longleaf_needs = self.needs

    def transition(self, key: str, start: str, finish: str, *args: Any, **kwargs: Any) -> None:
        """Note what a task needs when it goes to a worker."""
        if finish == "processing":
            self.needs[key] = tuple(one.key for one in self.scheduler.tasks[key].dependencies)


def phase_of(key: str, needs: tuple[str, ...], phases: dict[str, int]) -> int:
    """Give the phase of a task; a sum belongs to that of what it sums."""
    word = key.split("-")[1]
    if word == "add":
        return max(phases[one] for one in needs)
    return next(number for number, words in enumerate(PHASES) if word in words)


def record(client: Client, begin: float) -> list[Task]:
    """Give the tasks that ran since ``begin``."""
    needs = client.run_on_scheduler(lambda dask_scheduler: dask_scheduler.longleaf_needs)
    ran = {one["key"]: one for one in client.get_task_stream(start=begin)}
    numbers = {key: int(key.split("-")[2]) for key in ran}
    tasks, phases = [], dict[str, int]()
    for key in sorted(ran, key=numbers.__getitem__):
        phases[key] = phase_of(key, needs[key], phases)
        seconds = sum(s["stop"] - s["start"] for s in ran[key]["startstops"] if s["action"] == "compute")
        tasks.append(Task(key, seconds, int(ran[key]["nbytes"]), needs[key], phases[key], numbers[key]))
    return tasks


def moved(client: Client, begin: float) -> int:
    """Give the bytes that workers fetched from each other."""
    incoming = client.run(
        lambda dask_worker: sum(
            one["total"] for one in dask_worker.transfer_incoming_log if one["start"] >= begin
        )
    )
    return sum(incoming.values())


def train_on(
    processes: int, X: Any, Y: Any, *, cut_for: int | None = None
) -> tuple[dict[str, Any], list[Task]]:
    """Train on a fresh cluster; give what it took, and its tasks."""
    cluster = LocalCluster(n_workers=processes, threads_per_worker=1, dashboard_address=None)
    with cluster, Client(cluster) as client:
        client.register_plugin(Recorder())
        client.get_task_stream()  # from now on it is recorded
        client.run(lambda: __import__("longleaf.distributed") and None)  # importing is no part of training
        own = cluster_run.Run.workers

        def cut(run: cluster_run.Run, share: float = 1.0) -> list[cluster_run.Worker]:
            return [replace(one, threads=cut_for or one.threads) for one in own(run, share)]

        begin, start = time.time(), time.perf_counter()
        with mock.patch.object(cluster_run.Run, "workers", cut):
            model = ll.PLT(refine=False, random_state=1).fit(X, Y, client=client)
        seconds = time.perf_counter() - start
        tasks = record(client, begin)
        facts = {
            "processes": processes,
            "cut_for": cut_for or processes,
            "seconds": seconds,
            "tasks": len(tasks),
            "task_seconds": sum(task.seconds for task in tasks),
            "moved_bytes": moved(client, begin),
            "weights": int(sum(weights["weights"].sum() for weights in model.weights_)),
        }
    return facts, tasks


def by_kind(tasks: list[Task]) -> dict[str, dict[str, float]]:
    """Sum up tasks by what they do."""
    count, size = Counter[str](), Counter[str]()
    seconds, longest = defaultdict[str, float](float), dict[str, float]()
    for task in tasks:
        count[task.kind] += 1
        seconds[task.kind] += task.seconds
        size[task.kind] += task.bytes
        longest[task.kind] = max(longest.get(task.kind, 0.0), task.seconds)
    return {
        kind: {"tasks": count[kind], "seconds": seconds[kind], "longest": longest[kind], "bytes": size[kind]}
        for kind in sorted(count, key=lambda kind: -seconds[kind])
    }


def measure(name: str, rows: int | None, processes: tuple[int, ...]) -> dict[str, Any]:
    X, Y = load(prepare(name, rows), "train")
    start = time.perf_counter()
    ll.PLT(refine=False, random_state=1, n_jobs=1).fit(X, Y)
    alone = time.perf_counter() - start
    runs, replays = [], []
    plans = [(count, None) for count in processes] + [(1, max(WORKERS))]
    for count, cut_for in plans:
        facts, tasks = train_on(count, X, Y, cut_for=cut_for)
        print(json.dumps(facts), flush=True)
        runs.append(facts | {"kinds": by_kind(tasks)})
        if count == 1:
            replays.append(simulate(facts, tasks))
    return {
        "data": name,
        "rows": X.shape[0],
        "cores": len(os.sched_getaffinity(0)),
        "one_machine_seconds": alone,
        "runs": runs,
        "replays": replays,
    }


def simulate(facts: dict[str, Any], tasks: list[Task]) -> dict[str, Any]:
    """Replay the tasks of a run of one process on all numbers of workers."""
    costs = Costs()
    found = {str(workers): asdict(replay(tasks, workers, costs)) for workers in WORKERS}
    return {
        "cut_for": facts["cut_for"],
        "costs": asdict(costs),
        "client_seconds": max(0.0, facts["seconds"] - facts["task_seconds"]),
        "critical_path": critical_path(tasks),
        "workers": found,
    }


def tables(found: dict[str, Any]) -> str:
    """Give the results as Markdown."""
    lines = ["| processes | cut for | seconds | tasks | compute s | moved MiB |", "|---|---|---|---|---|---|"]
    for run in found["runs"]:
        lines.append(
            f"| {run['processes']} | {run['cut_for']} | {run['seconds']:.1f} | {run['tasks']} "
            f"| {run['task_seconds']:.1f} | {run['moved_bytes'] / 2**20:.0f} |"
        )
    for one in found["replays"]:
        lines += [
            "",
            f"cut for {one['cut_for']}: critical path {one['critical_path']:.1f} s, "
            f"client {one['client_seconds']:.1f} s",
            "",
            "| workers | seconds | speed-up | moved MiB |",
            "|---|---|---|---|",
        ]
        base = one["workers"]["1"]["seconds"]
        for workers, schedule in one["workers"].items():
            lines.append(
                f"| {workers} | {schedule['seconds']:.1f} | {base / schedule['seconds']:.1f} "
                f"| {schedule['moved_bytes'] / 2**20:.0f} |"
            )
    lines += [
        "",
        "| task | number | seconds in all | longest s | result MiB in all |",
        "|---|---|---|---|---|",
    ]
    for kind, sums in found["runs"][-1]["kinds"].items():
        lines.append(
            f"| {kind} | {sums['tasks']} | {sums['seconds']:.2f} | {sums['longest']:.2f} "
            f"| {sums['bytes'] / 2**20:.0f} |"
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", default="eurlex57k")
    parser.add_argument("--rows", type=int, help="train on a random sample of so many rows")
    parser.add_argument("--processes", type=int, nargs="*", default=list(PROCESSES))
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    found = measure(options.data, options.rows, tuple(options.processes))
    options.out.write_text(json.dumps(found, indent=1) + "\n")
    print(tables(found))
