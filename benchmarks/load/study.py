"""The service under load, and omikuji in a FastAPI app beside it: ``python -m benchmarks.load``.

Service and caller are two processes on one machine. In a closed loop, so many callers each wait for their
answer before they ask again: what the service can do at most. In the open loop requests are due at fixed
times, whatever the answers, each with another law, and an answer's time counts from when its request was due.
Nothing here keeps answers to give them again.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

import longleaf as ll
from benchmarks import data
from benchmarks.load import models
from benchmarks.load.client import Job
from benchmarks.load.report import WARM_SECONDS, Record, percentiles, render, summarize
from benchmarks.load.servers import HOST, Service, machine_cpu_seconds, serving
from benchmarks.records import commit, machine, save

RESULTS = data.RESULTS / "load.json"
SYSTEMS = ("longleaf", "omikuji")
PACKAGES = ("longleaf", "numpy", "scipy", "starlette", "uvicorn", "uvloop", "httptools")
PEER_PACKAGES = ("omikuji", "numpy", "scipy", "scikit-learn", "fastapi", "uvicorn", "uvloop", "httptools")
RATE, OPEN_CONNECTIONS = 300.0, 32
WARM_UP = 20
WIDTH = 160


@dataclass(frozen=True)
class Case:
    """What is asked in a closed loop, and by how many at once."""

    name: str
    texts: int = 1
    explain: bool = False
    callers: int = 1


CASES = (
    Case("1 law, 1 caller"),
    Case("1 law, 8 callers", callers=8),
    Case("100 laws, 2 callers", texts=100, callers=2),
    Case("1 law, explained, 4 callers", explain=True, callers=4),
)
OPEN, RELOADS = "1 law, {:g}/s", "1 law, {:g}/s, reloads"


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--system", nargs="+", choices=SYSTEMS, default=list(SYSTEMS))
    parser.add_argument("--loop", nargs="+", choices=("closed", "open", "reloads"))
    parser.add_argument("--workers", nargs="+", type=int, default=[1, 2, 4])
    parser.add_argument("--rate", type=float, default=RATE, help="requests a second of the open loop")
    parser.add_argument("--seconds", type=float, default=60.0, help="of an open loop")
    parser.add_argument("--closed-seconds", type=float, default=6.0, help="of a closed loop")
    parser.add_argument("--reload-every", type=float, default=5.0, help="seconds")
    parser.add_argument("--repeat", type=int, default=1, help="the best run of each case is shown")
    parser.add_argument("--quick", action="store_true", help="a look: loops of 5 and 2 s")
    parser.add_argument("--add", action="store_true", help="add to the runs that the file has already")
    parser.add_argument("--json", type=Path, default=RESULTS)
    options = parser.parse_args()
    options.loop = options.loop or ["closed", "open", "reloads"]
    if options.quick:
        options.seconds, options.closed_seconds, options.reload_every = 5.0, 2.0, 1.0
    return options


class Bench:
    """The models, the laws, and how runs are recorded."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options, self.folder, self.commit = options, models.FOLDER, commit()
        self.versions = models.longleaf_models()
        self.link = self.folder / "served.ll"
        models.point_to(self.link, self.versions[0])
        self.models = {"longleaf": self.link}
        if "omikuji" in options.system:
            self.models["omikuji"] = models.omikuji_model(ll.load(self.versions[0]))
        self.unseen = models.read_laws("dev")[0]
        laws = self._distinct() if set(options.loop) & {"open", "reloads"} else self.unseen[:WARM_UP]
        self.open_bodies = models.write_bodies(self.folder / "open.jsonl", laws, 1, False)
        with self.open_bodies.open("rb") as lines:
            self.warm_up = [line for line, _ in zip(lines, range(WARM_UP), strict=False)]

    def _distinct(self) -> list[str]:
        count = round(self.options.rate * self.options.seconds)
        laws, self.is_unseen = models.distinct_laws(self.unseen, models.read_laws("train")[0], count)
        return laws

    def closed(self, system: str, workers: int) -> list[Record]:
        """Run all cases that a system can answer, each as often as it goes."""
        records = []
        with self._serving(system, workers) as service:
            for place, case in enumerate(CASES):
                if case.explain and system != "longleaf":
                    continue
                path = self.folder / "closed.jsonl"
                bodies = models.write_bodies(path, self.unseen, case.texts, case.explain)
                job = Job(HOST, service.port, str(bodies), case.callers, self.options.closed_seconds)
                record, sent = self._run(service, job)
                named = _named(system, workers, "closed", case.name, place)
                records.append(named | record | summarize(sent, case.texts, WARM_SECONDS))
        return records

    def open(self, system: str, workers: int, reloads: bool) -> Record:
        """Send requests at fixed times; meanwhile, if asked for, let models take each other's place."""
        name = (RELOADS if reloads else OPEN).format(self.options.rate)
        with self._serving(system, workers) as service:
            rate, seconds = self.options.rate, self.options.seconds
            job = Job(HOST, service.port, str(self.open_bodies), OPEN_CONNECTIONS, seconds, rate)
            record, sent = self._run(service, job, reloads)
        unseen = [one for one in sent if self.is_unseen[one["body"]] and one["status"] == 200]
        latencies = [one["end"] - one["due"] for one in unseen]
        named = _named(system, workers, "open", name, len(CASES) + reloads)
        return named | record | summarize(sent, 1) | percentiles(latencies, "p{}_unseen_ms")

    def _run(self, service: Service, job: Job, reloads: bool = False) -> tuple[Record, list[Record]]:
        """Let the second process call; give what it cost, and each request that was sent."""
        begin = time.monotonic(), machine_cpu_seconds(), service.cpu_seconds()
        caller = _caller(job)
        took = self._reload(service, job.seconds) if reloads else []
        told = json.loads(caller.communicate()[0])
        end = time.monotonic(), machine_cpu_seconds(), service.cpu_seconds()
        seconds, machine_cpu, cpu = (later - earlier for later, earlier in zip(end, begin, strict=True))
        record = {
            "commit": self.commit,
            "date": datetime.now(UTC).isoformat(timespec="seconds"),
            "memory_mib": service.memory_bytes() / 2**20,
            "cpu_ms": 1000 * cpu / len(told["sent"]),
            "others_cores": (machine_cpu - cpu - told["cpu_seconds"]) / seconds,
        }
        if took:
            record |= {"reloads": len(took), "reload_seconds": float(np.median(took))}
        return record, told["sent"]

    def _reload(self, service: Service, seconds: float) -> list[float]:
        took: list[float] = []
        last = time.monotonic() + seconds - self.options.reload_every / 2
        time.sleep(self.options.reload_every / 2)
        while time.monotonic() < last:
            models.point_to(self.link, self.versions[(len(took) + 1) % len(self.versions)])
            begin = time.monotonic()
            if not service.post("/v1/reload", b"")["changed"]:
                raise RuntimeError("A reload must take up the other model; the old one stayed.")
            took.append(time.monotonic() - begin)
            time.sleep(max(0.0, self.options.reload_every - took[-1]))
        return took

    def _serving(self, system: str, workers: int) -> Any:
        models.point_to(self.link, self.versions[0])
        log = self.folder / f"{system}.log"
        return serving(system, self.models[system], workers, self.warm_up, log)


def _named(system: str, workers: int, loop: str, case: str, place: int) -> Record:
    return {"system": system, "workers": workers, "loop": loop, "case": case, "place": place}


def _caller(job: Job) -> subprocess.Popen[str]:
    """Start the second process."""
    pipe = subprocess.PIPE
    command = [sys.executable, "-m", "benchmarks.load.client"]
    process = subprocess.Popen(command, cwd=data.ROOT, stdin=pipe, stdout=pipe, text=True)
    assert process.stdin is not None
    process.stdin.write(json.dumps(asdict(job)))
    process.stdin.close()
    process.stdin = None
    return process


def peer_versions() -> dict[str, str]:
    """Ask the peer's environment what it has."""
    code = "import sys, importlib.metadata as m; print(*map(m.version, sys.argv[1:]))"
    command = [str(models.PEER_PYTHON), "-c", code, *PEER_PACKAGES]
    told = subprocess.run(command, capture_output=True, check=True, text=True).stdout
    return dict(zip(PEER_PACKAGES, told.split(), strict=True))


def facts(options: argparse.Namespace) -> Record:
    """Say what was measured, where."""
    versions = {"longleaf": {"python": sys.version.split()[0]} | {name: version(name) for name in PACKAGES}}
    if "omikuji" in options.system:
        versions["omikuji"] = peer_versions()
    return {"machine": machine(), "versions": versions}


def main() -> None:
    options, console = arguments(), Console()
    bench = Bench(options)
    result: Record = facts(options) | {"records": []}
    if options.add and options.json.exists():
        former = json.loads(options.json.read_text())
        result["records"] = former["records"]
        result["versions"] = former["versions"] | result["versions"]
    for number in range(options.repeat):
        for system in options.system:
            for workers in options.workers:
                console.log(f"{system}, {workers} workers, run {number + 1}")
                if "closed" in options.loop:
                    result["records"] += bench.closed(system, workers)
                if "open" in options.loop:
                    result["records"].append(bench.open(system, workers, reloads=False))
                if "reloads" in options.loop and system == "longleaf":
                    result["records"].append(bench.open(system, workers, reloads=True))
                save(options.json, result)
    Console(width=max(WIDTH, console.width)).print(render(result["records"]))
    console.print(f"Saved as {options.json}", soft_wrap=True)
