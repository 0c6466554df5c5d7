"""What `longleaf plan` says beside what `longleaf train` then takes: ``python -m benchmarks.scale.planned``.

Every cell is planned and trained in processes of its own; peaks are the kernel's (``ru_maxrss``). Time is
that of the processor, on one thread, so that a busy machine does not matter; starting Python is left out.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.data import source_folder
from longleaf.datasets import make_hierarchy, make_topics
from longleaf.io.storage import folder_bytes
from longleaf.io.xmlc import save_xmlc

DATA = source_folder()
SETS = {
    "Bibtex": "bibtex/bibtex_train.txt",
    "Delicious": "delicious/delicious_train.txt",
    "EURLEX57K": "eurlex57k/train.tfidf.txt.xz",
    "EURLEX57K dev": "eurlex57k/dev.tfidf.txt.xz",
    "TIB-SID": "tib-sid/train.tfidf.txt.xz",
    "TIB-SID dev": "tib-sid/dev.tfidf.txt.xz",
}
MADE = {
    "hierarchy 15,625": lambda: make_hierarchy(11_436, 17_000, 15_625, labels_per_row=5.45, random_state=1),
    "topics 4,000": lambda: make_topics(20_000, 20_000, 4_000, random_state=1),
    "hierarchy 500": lambda: make_hierarchy(60_000, 10_000, 500, random_state=1),
}
SETTINGS = {"default": [], "paper": ["--preset", "paper"], "one tree": ["--trees", "1"]}
COMMAND = [sys.executable, "-m", "longleaf.cli"]


def run(*arguments: object) -> tuple[str, float, int]:
    """Run a command; give what it prints, its processor time, and its peak of memory."""
    process = subprocess.Popen([*COMMAND, *map(str, arguments)], stdout=subprocess.PIPE, text=True)
    said = process.stdout.read() if process.stdout else ""
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"{arguments} failed")
    return said, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024


def measure(name: str, path: Path, setting: str, threads: int) -> dict[str, Any]:
    """Plan and train once."""
    options = [*SETTINGS[setting], "--threads", threads, "--seed", 1]
    said, planning, _ = run("plan", path, "--json", *options)
    planned = json.loads(said)
    with tempfile.TemporaryDirectory() as folder:
        _, seconds, peak = run("train", path, "-o", f"{folder}/m.ll", *options)
        seconds -= run("--version")[1]
        size = folder_bytes(f"{folder}/m.ll")
    return {
        "data": name,
        "setting": setting,
        "plan s": planning,
        "s": (planned["seconds"], seconds),
        "peak MB": (planned["memory_bytes"] / 1e6, peak / 1e6),
        "model MB": (planned["model_bytes"] / 1e6, size / 1e6),
        "phases": planned["memory"],
    }


def line(record: dict[str, Any]) -> str:
    """Give a record as a row of the table in docs/experiments/2026-11-planned-and-measured.md."""
    cells = [record["data"], record["setting"]]
    for name in ("peak MB", "model MB", "s"):
        said, found = record[name]
        cells.append(f"{said:,.1f} / {found:,.1f} ({said / found - 1:+.0%})")
    return f"| {' | '.join([*cells, format(record['plan s'], '.1f')])} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", nargs="+", choices=[*SETS, *MADE], default=[*SETS, *MADE])
    parser.add_argument("--settings", nargs="+", choices=SETTINGS, default=list(SETTINGS))
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    for name in options.data:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "made.txt") if name in MADE else DATA / SETS[name]
            if name in MADE:
                save_xmlc(path, *MADE[name]())
            for setting in options.settings:
                record = measure(name, path, setting, options.threads)
                print(line(record), record["phases"], flush=True)


if __name__ == "__main__":
    main()
