"""The services of the load benchmark: started on a free port of this machine, asked, and stopped."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks import data
from benchmarks.load.models import PEER_PYTHON

HOST = "127.0.0.1"
PATIENCE_SECONDS = 120.0
TICKS = os.sysconf("SC_CLK_TCK")
_OPEN = urllib.request.build_opener(urllib.request.ProxyHandler({})).open


@dataclass(frozen=True)
class Service:
    """One that runs."""

    process: subprocess.Popen[bytes]
    port: int

    def post(self, path: str, body: bytes) -> Any:
        """Send one request, and give the JSON of its answer."""
        headers = {"content-type": "application/json"}
        request = urllib.request.Request(f"http://{HOST}:{self.port}{path}", body, headers)
        with _OPEN(request, timeout=PATIENCE_SECONDS) as answer:
            return json.load(answer)

    def cpu_seconds(self) -> float:
        """Give the CPU time of all its processes so far."""
        return sum(_cpu_seconds(process) for process in _family(self.process.pid))

    def memory_bytes(self) -> int:
        """Give the memory of all its processes; what they share counts once."""
        return sum(_proportional(process) for process in _family(self.process.pid))


def longleaf_command(model: Path, port: int, workers: int) -> list[str]:
    """``longleaf serve`` as it comes, with its log."""
    command = [sys.executable, "-m", "longleaf.cli", "serve", str(model), "--host", HOST]
    return [*command, "--port", str(port), "--workers", str(workers)]


def omikuji_command(port: int, workers: int) -> list[str]:
    """Uvicorn as it comes, with its log."""
    command = [str(PEER_PYTHON), "-m", "uvicorn", "--factory", "benchmarks.load.omikuji:create_app"]
    return [*command, "--host", HOST, "--port", str(port), "--workers", str(workers)]


@contextmanager
def serving(system: str, model: Path, workers: int, warm_up: list[bytes], log: Path) -> Iterator[Service]:
    """Run a service, and ask it a few things before it is measured."""
    port = free_port()
    ours = system == "longleaf"
    command = longleaf_command(model, port, workers) if ours else omikuji_command(port, workers)
    environment = os.environ | {"LOAD_OMIKUJI": str(model)}
    with open(log, "wb") as sink:
        process = subprocess.Popen(command, cwd=data.ROOT, stdout=sink, stderr=sink, env=environment)
    try:
        service = Service(process, port)
        _wait_until_ready(service, warm_up[0])
        for body in warm_up * workers:
            results = service.post("/v1/suggest", body)["results"]
            if not results or not all(len(result["suggestions"]) for result in results):
                raise RuntimeError(f"{system} must suggest something for each law; see {log}.")
        yield service
    finally:
        process.terminate()
        try:
            process.wait(PATIENCE_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def free_port() -> int:
    """Find a port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


def _wait_until_ready(service: Service, body: bytes) -> None:
    last = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            service.post("/v1/suggest", body)
            return
        except (urllib.error.URLError, ConnectionError):
            if service.process.poll() is not None or time.monotonic() > last:
                raise
            time.sleep(0.1)


def machine_cpu_seconds() -> float:
    """Give the CPU time of everything on this machine so far, what its host took away included."""
    ticks = [int(word) for word in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
    user, nice, system, _, _, interrupts, soft_interrupts, stolen = ticks
    return (user + nice + system + interrupts + soft_interrupts + stolen) / TICKS


def _cpu_seconds(process: int) -> float:
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def _family(process: int) -> Iterator[int]:
    yield process
    for task in Path(f"/proc/{process}/task").iterdir():
        for child in (task / "children").read_text().split():
            yield from _family(int(child))


def _proportional(process: int) -> int:
    for line in Path(f"/proc/{process}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) * 1024
    raise LookupError(f"/proc/{process}/smaps_rollup must have a line Pss.")
