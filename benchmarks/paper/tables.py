"""The tables of the study, in the shape of the paper's Tables 1, 2 and 4, beside its own figures."""

import json
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.paper.methods import SUB_LINEAR, TABLE_1, TABLE_2, TABLE_4, Row
from benchmarks.paper.render import Cell, Table, latex, markdown
from benchmarks.paper.sets import SETS

METRICS = tuple(f"{name}@{k}" for name in ("psp", "p") for k in (1, 3, 5))
COSTS = ("train_hours", "test_ms")
REPORTED = json.loads((Path(__file__).resolve().parent / "reported.json").read_text())
Spread = tuple[float, float | None]  # mean, standard error (None for a single seed)
Summary = dict[tuple[str, str, str], dict[str, Spread]]  # data set, method, search


def write_tables(results: Path) -> list[Path]:
    """Write ``tables.md`` and ``tables.tex`` of all cells below ``results``; return their paths."""
    cells = [json.loads(path.read_text()) for path in sorted(results.glob("*/*.json"))]
    summary = summarize(cells)
    tables = [*table_1(summary), *table_2(summary), *table_4(summary)]
    paths = [results / "tables.md", results / "tables.tex"]
    results.mkdir(parents=True, exist_ok=True)
    note = load_note(cells)
    paths[0].write_text("\n".join([f"{note}\n", *map(markdown, tables)]))
    paths[1].write_text("\n".join([f"% {note}\n", *map(latex, tables)]))
    return paths


def summarize(cells: list[dict[str, Any]]) -> Summary:
    """Give mean and standard error over the seeds of everything measured; failures are left out."""
    gathered: dict[tuple[str, str, str], dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for cell in cells:
        for record in cell["records"]:
            if "failed" in record:
                continue
            into = gathered[cell["data"], cell["method"], record["search"]]
            for metric in METRICS:
                into[metric].append(record[metric])
            into["train_hours"].append(record["train_cpu_seconds"] / 3600)
            into["test_ms"].append(record["batch_cpu_ms"])
    return {key: {name: spread(values) for name, values in of.items()} for key, of in gathered.items()}


def spread(values: list[float]) -> Spread:
    """Give the mean and its standard error."""
    if len(values) < 2:
        return float(np.mean(values)), None
    return float(np.mean(values)), float(np.std(values, ddof=1) / np.sqrt(len(values)))


def load_note(cells: list[dict[str, Any]]) -> str:
    """Say on what the cells were measured, and whether the machine was busy with other things."""
    if not cells:
        return "Nothing is measured yet."
    loads = [record["both_load"][0] for cell in cells for record in cell["records"] if "both_load" in record]
    busy = (
        np.median(loads) > max(cell["threads"] for cell in cells) + 1
    )  # the run itself is up to its threads
    seeds = len({cell["seed"] for cell in cells})
    machines = {f"{cell['machine']['cores']} cores of {cell['machine']['cpu']}" for cell in cells}
    state = "a loaded machine: times are upper bounds" if busy else "an otherwise idle machine"
    return (
        f"{len(cells)} cells, up to {seeds} seeds; {' and '.join(sorted(machines))}; {state} "
        f"(load average when training began: median {np.median(loads):.1f}). Times are CPU times."
    )


def table_1(summary: Summary) -> Iterator[Table]:
    """Quality by algorithm, a table per data set."""
    for name in _measured(summary):
        reported = REPORTED["table1"].get(name, {})
        a, b = SETS[name].constants
        title = f"Table 1, {name} ({SETS[name].judged_on} rows), A={a:g}, B={b:g}"
        own = dict(_rows(summary, name, TABLE_1))
        marks = _marks(own, METRICS)
        rows: list[list[Cell]] = []
        for row in dict.fromkeys([*reported, *own]):
            theirs: dict[str, Spread] = {
                metric: (value, None) for metric, value in reported.get(row, {}).items()
            }
            rows += _beside(row, theirs, own.get(row), METRICS, marks.get(row))
        yield Table(title, ["Algorithm", "source", *METRICS], rows)


def table_2(summary: Summary) -> Iterator[Table]:
    """CPU hours of training and CPU milliseconds per row, all data sets in one table."""
    names = dict.fromkeys(row for row, _, _ in TABLE_1)
    columns = [*TABLE_2, *(row for row in names if row not in TABLE_2)]
    rows: list[list[Cell]] = []
    for name in _measured(summary):
        own = dict(_rows(summary, name, TABLE_1))
        reported = REPORTED["table2"].get(name, {})
        for cost, unit in zip(COSTS, ("train, CPU h", "test, CPU ms/row"), strict=True):
            theirs: dict[str, Spread] = {row: (values[cost], None) for row, values in reported.items()}
            ours = {row: values[cost] for row, values in own.items()}
            rows += _beside(f"{name}, {unit}", theirs, ours, columns)
    if rows:
        yield Table("Table 2, times", ["Data set", "source", *columns], rows)


def table_4(summary: Summary) -> Iterator[Table]:
    """Every variant with standard errors and times, a table per data set."""
    for name in _measured(summary):
        reported = REPORTED["table4"].get(name, {})
        rows: list[list[Cell]] = []
        for row, values in _rows(summary, name, TABLE_4):
            theirs = {key: tuple(pair) for key, pair in reported.get(row, {}).items()}
            rows += _beside(row, theirs, values, (*METRICS, *COSTS))
        header = ["Variant", "source", *METRICS, "train, CPU h", "test, CPU ms/row"]
        yield Table(f"Table 4, {name}: mean ± standard error", header, rows)


def _measured(summary: Summary) -> list[str]:
    return [name for name in SETS if any(key[0] == name for key in summary)]


def _rows(summary: Summary, name: str, rows: tuple[Row, ...]) -> Iterator[tuple[str, dict[str, Spread]]]:
    for row, method, search in rows:
        values = summary.get((name, method, search.name))
        if values is not None:
            yield row, values


def _marks(own: dict[str, dict[str, Spread]], columns: tuple[str, ...]) -> dict[str, dict[str, str]]:
    """Say by row and column which are the best of a column, of all and of the sub-linear ones."""
    marks: dict[str, dict[str, str]] = defaultdict(dict)
    for column in columns:
        for rows, mark in (([row for row in own if row in SUB_LINEAR], Cell.SECOND), (list(own), Cell.BEST)):
            if rows:
                best = max(rows, key=lambda row: own[row][column][0])
                both = mark == Cell.BEST and marks[best].get(column) == Cell.SECOND
                marks[best][column] = Cell.BOTH if both else mark
    return marks


def _beside(
    title: str,
    theirs: dict[str, Spread],
    ours: dict[str, Spread] | None,
    columns: Any,
    marks: dict[str, str] | None = None,
) -> Iterator[list[Cell]]:
    """Give the lines paper, longleaf and difference; only those that there are."""
    if theirs:
        yield [Cell(title), Cell("paper"), *(Cell(_write(theirs.get(column))) for column in columns)]
    if ours:
        cells = (Cell(_write(ours.get(column)), (marks or {}).get(column, Cell.PLAIN)) for column in columns)
        yield [Cell("" if theirs else title), Cell("longleaf"), *cells]
    if theirs and ours:
        both = [
            Cell(f"{ours[c][0] - theirs[c][0]:+.2f}" if c in ours and c in theirs else "") for c in columns
        ]
        yield [Cell(""), Cell("difference"), *both]


def _write(value: Spread | None) -> str:
    if value is None:
        return ""
    mean, error = value
    digits = 2 if mean >= 0.1 or mean == 0 else min(6, 1 - int(np.floor(np.log10(mean))))
    return f"{mean:.{digits}f}" + ("" if error is None else f" ± {error:.{digits}f}")
