"""How a cost grows: curves from the records of the scale benchmark, fitted, as tables."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from rich import box
from rich.table import Table

from benchmarks.scale.cells import BASE_LABELS, BEAM_SEARCH, GENERATORS, SEARCHES, SOURCES, K, usual_rows
from benchmarks.table import MIB, Record

FEWEST_POINTS = 3
SEARCH_NAMES = tuple(search.name for search in SEARCHES)
# Heading, key of the record, factor to the heading's unit.
TRAINING = (
    ("train s", "train_seconds", 1.0),
    ("CPU s", "train_cpu_seconds", 1.0),
    ("peak MiB", "peak_bytes", MIB),
    ("model MiB", "model_bytes", MIB),
)
PREDICTION = (("nodes", "evaluations", 1.0), ("CPU µs", "batch_cpu_ms", 1000.0))


@dataclass(frozen=True)
class Curve:
    """One cost of one source against labels, rows or k."""

    source: str
    against: str
    search: str
    heading: str
    x: npt.NDArray[np.float64]
    y: npt.NDArray[np.float64]


def records(result: dict[str, Any]) -> list[Record]:
    """Return what was measured, without the failures, smaller cells first."""
    all_records = [record for cell in result["cells"].values() for record in cell if "failed" not in record]
    order = {source: place for place, source in enumerate(SOURCES)}
    return sorted(all_records, key=lambda r: (order[r["source"]], r["labels"], r["rows"], r["k"]))


def is_usual(record: Record) -> bool:
    """Whether the record has the number of rows that goes with its labels, and may lie on their curve."""
    return record["source"] not in GENERATORS or record["rows"] == usual_rows(record["labels"])


def curves(found: list[Record]) -> Iterator[Curve]:
    """Yield each curve that has a point."""
    on_curve: dict[str, Callable[[Record], bool]] = {
        "labels": lambda r: is_usual(r) and r["k"] == K,
        "rows": lambda r: r["source"] in GENERATORS and r["labels"] == BASE_LABELS and r["k"] == K,
        "k": lambda r: r["labels"] == BASE_LABELS and is_usual(r),
    }
    for against, belongs in on_curve.items():
        for source in SOURCES:
            chosen = [record for record in found if record["source"] == source and belongs(record)]
            costs = [(SEARCH_NAMES[0], "", *cost) for cost in TRAINING if against != "k"]
            costs += [(search, search, *cost) for search in SEARCH_NAMES for cost in PREDICTION]
            for asked, search, heading, key, factor in costs:
                points = [
                    (r[against], factor * r[key]) for r in chosen if r["search"] == asked and r.get(key)
                ]
                if points:
                    x, y = np.array(points, np.float64).T
                    yield Curve(source, against, search, heading, x, y)


def fit_power(x: npt.NDArray[np.float64], y: npt.NDArray[np.float64]) -> tuple[float, float]:
    """Fit ``y = a x**b`` by least squares of the logarithms; return the exponent b and R²."""
    return _fit_line(np.log(x), np.log(y))


def fit_logarithm(x: npt.NDArray[np.float64], y: npt.NDArray[np.float64]) -> tuple[float, float]:
    """Fit ``y = a + b log2(x)``; return b, what every doubling adds, and R²."""
    return _fit_line(np.log2(x), y)


def _fit_line(x: npt.NDArray[np.float64], y: npt.NDArray[np.float64]) -> tuple[float, float]:
    slope, offset = np.polyfit(x, y, 1)
    spread = np.sum((y - y.mean()) ** 2)
    left = np.sum((y - offset - slope * x) ** 2)
    return float(slope), float(1 - left / spread) if spread > 0 else 1.0


def cost_table(found: list[Record], markdown: bool = False) -> Table:
    """One line for each trained model: what training cost, and what each search costs a row, for k = 5."""
    table = Table(title=f"k = {K}", box=box.MARKDOWN if markdown else box.HEAVY_HEAD)
    table.add_column("data")
    headings = ["labels", "rows", *(heading for heading, _, _ in TRAINING)]
    headings += [f"{search}: {heading}" for search in SEARCH_NAMES for heading in ("nodes", "CPU µs", "p@1")]
    for heading in headings:
        table.add_column(heading, justify="right")
    models: dict[tuple[str, int, int], dict[str, Record]] = {}
    for record in found:
        if record["k"] == K:
            key = record["source"], record["labels"], record["rows"]
            models.setdefault(key, {})[record["search"]] = record
    for (source, labels, rows), asked in models.items():
        trained = next(iter(asked.values()))
        cells = [source, f"{labels:,}", f"{rows:,}", *(_write(trained, key, by) for _, key, by in TRAINING)]
        for search in SEARCH_NAMES:
            costs = (*((key, by) for _, key, by in PREDICTION), ("p@1", 1.0))
            cells += [_write(asked.get(search, {}), key, by) for key, by in costs]
        table.add_row(*cells)
    return table


def fit_table(found: list[Record], markdown: bool = False) -> Table:
    """One line for each curve: its exponent, and for beam search what a doubling adds."""
    table = Table(title="cost ~ x ** exponent", box=box.MARKDOWN if markdown else box.HEAVY_HEAD)
    for heading in ("against", "data", "search", "cost"):
        table.add_column(heading)
    for heading in ("from", "to", "exponent", "R²", "each doubling adds", "R² of a + b log x"):
        table.add_column(heading, justify="right")
    for curve in curves(found):
        if len(curve.x) < FEWEST_POINTS:
            continue
        exponent, square = fit_power(curve.x, curve.y)
        cells = [f"{curve.x.min():,.0f}", f"{curve.x.max():,.0f}", f"{exponent:.2f}", f"{square:.3f}"]
        if curve.search == BEAM_SEARCH and curve.against == "labels":
            step, log_square = fit_logarithm(curve.x, curve.y)
            cells += [f"{step:.1f}", f"{log_square:.3f}"]
        table.add_row(curve.against, curve.source, curve.search or "training", curve.heading, *cells)
    return table


def _write(record: Record, key: str, factor: float) -> str:
    value = record.get(key)
    if value is None:
        return ""
    scaled = value * factor
    return f"{scaled:,.0f}" if scaled >= 100 else f"{scaled:.1f}"
