"""How cost grows with labels, rows and k: ``python -m benchmarks.scale``.

Every cell is trained and asked in processes of its own and kept in the result file; a second run measures
only what is missing there. When a cell fails (by the limits of time and memory), the larger ones of its
curve are left out, and tried again next time.
"""

import argparse
import json
import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich.console import Console

from benchmarks import data, runner
from benchmarks.records import commit, machine, save
from benchmarks.scale import cells, growth
from benchmarks.scale.cells import Cell
from benchmarks.table import Record

RESULT = data.RESULTS / "scale.json"
AMAZON_RESULT = data.RESULTS / "scale-amazon.json"
AMAZON = Cell("hierarchy", cells.AMAZON_LABELS, cells.AMAZON_ROWS, cells.AMAZON_FEATURES)
AMAZON_C = 32.0  # for Amazon-670K in the scripts of the paper's experiments
GIB = 2**30
SINGLE_ROWS = 100
WIDTH = 240


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--largest", type=int, default=cells.LABEL_GRID[-1], help="the most labels, and rows")
    parser.add_argument("--data", nargs="+", choices=cells.SOURCES, default=list(cells.SOURCES))
    parser.add_argument("--amazon", action="store_true", help="only a set of Amazon-670K's shape, in 8 GiB")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeat", type=int, default=1, help="train so often, and keep the best clocks")
    parser.add_argument(
        "--timeout", type=float, default=3600.0, help="seconds for one training or prediction"
    )
    parser.add_argument("--memory", type=float, default=8.0, help="GiB that a process may hold")
    parser.add_argument("--again", action="store_true", help="measure cells anew that are in the result")
    parser.add_argument("--markdown", action="store_true", help="write the tables as Markdown")
    parser.add_argument("--json", type=Path, help="the result file")
    return parser.parse_args()


def main() -> None:
    options, console = arguments(), Console(width=WIDTH)
    path = options.json or (AMAZON_RESULT if options.amazon else RESULT)
    result = load(path)
    wanted = [[AMAZON]] if options.amazon else cells.curves(options.data, options.largest)
    for curve in wanted:
        for cell in curve:
            if options.again or failed(result["cells"].get(cell.name)):
                console.log(f"{cell.source}: {cell.labels:,} labels, {cell.rows or 'all'} rows")
                result["cells"][cell.name] = measure(cell, options)
                save(path, result)
            if failed(result["cells"][cell.name]):
                console.log(f"{cell.name}: {reason(result['cells'][cell.name])}", markup=False)
                break
    found = growth.records(result)
    console.print(growth.cost_table(found, options.markdown))
    console.print(growth.fit_table(found, options.markdown))
    if options.amazon and found:
        console.print(f"Peak of the training process: {found[0]['process_peak_bytes'] / GIB:.2f} GiB")
    console.print(f"Saved as {path}", soft_wrap=True)


def load(path: Path) -> dict[str, Any]:
    """Return the result so far."""
    if path.exists():
        found: dict[str, Any] = json.loads(path.read_text())
        return found
    return {"machine": machine(), "cells": {}}


def failed(records: list[Record] | None) -> bool:
    """Whether a cell has yet to be measured: it never was, or one of its processes failed."""
    return not records or any("failed" in record for record in records)


def reason(records: list[Record]) -> str:
    """Say why a cell failed."""
    return next(str(record["failed"]) for record in records if "failed" in record)


def measure(cell: Cell, options: argparse.Namespace) -> list[Record]:
    """Make the data of a cell, train and ask; return a record for each search and k."""
    folder = data.CACHE / f"scale-{cell.name}"
    cells.prepare(cell, folder)
    X, Y = data.load(folder, "train")
    common = {
        "source": cell.source,
        "labels": Y.shape[1],
        "rows": X.shape[0],
        "features": X.shape[1],
        "features_per_row": X.nnz / X.shape[0],
        "labels_per_row": Y.nnz / Y.shape[0],
        "threads": options.threads,
        "commit": commit(),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    del X, Y
    job = runner.Job(
        f"scale-{cell.name}",
        folder,
        data.ROOT / "build" / "bench-models",
        options.threads,
        options.repeat,
        options.timeout,
        int(options.memory * GIB),
        SINGLE_ROWS,
    )
    entry = cells.entry(cell, AMAZON_C if cell == AMAZON else 16.0)
    records = [record | common for record in runner.measure_entry(job, entry)]
    shutil.rmtree(folder)
    return records
