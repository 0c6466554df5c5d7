"""longleaf and its peers, same files, same number of threads: ``python -m benchmarks.speed``."""

import argparse
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich.console import Console

from benchmarks import data, runner
from benchmarks.records import commit, machine, save
from benchmarks.settings import ENTRIES
from benchmarks.table import render

REPEATS = {"eurlex57k": 2, "tib-sid": 1}
WIDTH = 240


def arguments() -> argparse.Namespace:
    systems = sorted({entry.name for entry in ENTRIES})
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", nargs="+", choices=data.NAMES, default=list(data.NAMES))
    parser.add_argument("--system", nargs="+", choices=systems, default=systems)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeat", type=int, help="train so often (2 on eurlex57k, 1 on tib-sid)")
    parser.add_argument("--rows", type=int, help="a quick look: only a sample of that many rows")
    parser.add_argument(
        "--timeout", type=float, default=3600.0, help="seconds for one training or prediction"
    )
    parser.add_argument(
        "--json", type=Path, help="where the result is saved; a new file in results/ if left out"
    )
    return parser.parse_args()


def main() -> None:
    options, console = arguments(), Console()
    begun = datetime.now(UTC)
    path = options.json or data.RESULTS / f"speed-{begun:%Y%m%d-%H%M%S}.json"
    result: dict[str, Any] = {
        "date": begun.isoformat(timespec="seconds"),
        "commit": commit(),
        "machine": machine(),
        "threads": options.threads,
        "rows": options.rows,
        "records": [],
    }
    for name in options.data:
        folder = data.prepare(name, options.rows)
        repeat = options.repeat or REPEATS[name]
        scratch = data.ROOT / "build" / "bench-models"
        job = runner.Job(name, folder, scratch, options.threads, repeat, options.timeout)
        for entry in ENTRIES:
            if entry.name not in options.system:
                continue
            console.log(f"{name}: {entry.name}, {entry.setting}")
            for record in runner.measure_entry(job, entry):
                result["records"].append(record)
                save(path, result)
    Console(width=max(WIDTH, console.width)).print(render(result["records"], options.threads))
    console.print(f"Saved as {path}", soft_wrap=True)
