"""Runs each measurement in a process of its own and gathers the results."""

import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import data, quality
from benchmarks.settings import GAINS_FILE, PYTHONS, Entry, Search

SINGLE_ROWS = 500
Record = dict[str, Any]


@dataclass(frozen=True)
class Job:
    """Where and how entries are measured: a converted data set, a scratch folder and limits.

    ``memory_bytes`` is the most that a process may hold, the loaded data included; ``constants`` are
    A and B of the propensities.
    """

    name: str
    folder: Path
    scratch: Path
    threads: int = 2
    repeat: int = 1
    timeout: float = 3600.0
    memory_bytes: int | None = None
    single_rows: int = SINGLE_ROWS
    constants: tuple[float, float] = (quality.A, quality.B)


def measure_entry(job: Job, entry: Entry) -> Iterator[Record]:
    """Train an entry and ask it; yield one record for each search, or one that says why training failed."""
    job = _in_new_folder(job, entry)
    common = {"data": job.name, "system": entry.name, "setting": entry.setting}
    trained = _run(job, entry, {"task": "train", "repeat": job.repeat})
    if "failed" in trained:
        yield common | trained | {"search": "", "gains": False}
        return
    for search in entry.searches:
        asked = {"search": search.name, "gains": search.gains, "k": search.k}
        yield common | trained | asked | _ask(job, entry, search)
    shutil.rmtree(job.scratch)


def measure_together(job: Job, entry: Entry) -> Iterator[Record]:
    """Do as `measure_entry` in a single process, which may fail only as a whole: for many small cells."""
    job = _in_new_folder(job, entry)
    tops = [job.scratch / f"top{place}.npy" for place in range(len(entry.searches))]
    searches = [
        {"options": search.options, "k": search.k, "top": str(top), "single_rows": job.single_rows}
        for search, top in zip(entry.searches, tops, strict=True)
    ]
    told = _run(job, entry, {"task": "both", "repeat": job.repeat, "searches": searches})
    common = {"data": job.name, "system": entry.name, "setting": entry.setting}
    if "failed" in told:
        yield common | told | {"search": "", "gains": False}
        return
    _, train_labels = data.load(job.folder, "train")
    _, truth = data.load(job.folder, "dev")
    q = quality.inverse_propensity(train_labels, *job.constants)
    answers = told.pop("asked")
    for search, answer, top in zip(entry.searches, answers, tops, strict=True):
        asked = {"search": search.name, "gains": search.gains, "k": search.k}
        judged = quality.evaluate(truth, np.load(top)[:, : max(quality.CUTS)], q)
        yield common | told | asked | answer | judged
    shutil.rmtree(job.scratch)


def _in_new_folder(job: Job, entry: Entry) -> Job:
    scratch = job.scratch / f"{job.name}-{entry.name}"
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir(parents=True)
    return replace(job, scratch=scratch)


def _ask(job: Job, entry: Entry, search: Search) -> Record:
    """Predict in a new process and judge its answer; a crash leaves what training told."""
    _, train_labels = data.load(job.folder, "train")
    q = quality.inverse_propensity(train_labels, *job.constants)
    top, gains = job.scratch / "top.npy", job.scratch / "gains.npy"
    np.save(gains, q)
    options = {name: str(gains) if value == GAINS_FILE else value for name, value in search.options.items()}
    asked = _run(
        job,
        entry,
        {
            "task": "predict",
            "options": options,
            "top": str(top),
            "k": search.k,
            "single_rows": job.single_rows,
        },
    )
    if "failed" in asked or search.k < max(quality.CUTS):
        return asked
    _, truth = data.load(job.folder, "dev")
    return asked | quality.evaluate(truth, np.load(top)[:, : max(quality.CUTS)], q)


def _run(job: Job, entry: Entry, task: dict[str, Any]) -> Record:
    spec = task | {
        "system": entry.system,
        "params": entry.params,
        "threads": job.threads,
        "memory_bytes": job.memory_bytes,
        "data": str(job.folder),
        "model": str(job.scratch / "model"),
    }
    spec_path, result_path = job.scratch / "spec.json", job.scratch / "result.json"
    spec_path.write_text(json.dumps(spec))
    result_path.unlink(missing_ok=True)
    command = [PYTHONS[entry.environment], "-m", "benchmarks.worker", str(spec_path), str(result_path)]
    load = os.getloadavg()[0]
    begun = time.perf_counter()
    try:
        process = subprocess.run(
            command, cwd=data.ROOT, env=_environment(job.threads), capture_output=True, timeout=job.timeout
        )
    except FileNotFoundError:
        return {"failed": f"{command[0]} must exist; run make peers."}
    except subprocess.TimeoutExpired:
        return {"failed": f"{task['task']} took longer than {job.timeout:.0f} seconds."}
    if process.returncode != 0:
        return {"failed": f"{task['task']} {_reason(process)}"}
    result: Record = json.loads(result_path.read_text())
    return result | {
        f"{task['task']}_load": [load, os.getloadavg()[0]],
        f"{task['task']}_process_seconds": time.perf_counter() - begun,
    }


def _environment(threads: int) -> dict[str, str]:
    """Hold thread pools that a system does not set itself to the same number of threads."""
    pools = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "RAYON_NUM_THREADS")
    return os.environ | dict.fromkeys(pools, str(threads))


def _reason(process: subprocess.CompletedProcess[bytes]) -> str:
    """Say how a worker ended: the signal that killed it or its exit status, and its last words."""
    words = process.stderr.decode(errors="replace").strip().splitlines()
    said = f": {words[-1].strip()}" if words else "."
    if process.returncode < 0:
        return f"was killed by {signal.Signals(-process.returncode).name}{said}"
    return f"ended with status {process.returncode}{said}"
