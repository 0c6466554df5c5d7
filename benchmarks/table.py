"""The one table, from the records of a run."""

from collections.abc import Callable
from typing import Any

from rich.table import Table

Record = dict[str, Any]


def _number(digits: int, scale: float = 1.0) -> Callable[[float], str]:
    return lambda value: f"{value * scale:,.{digits}f}"


MIB = 1 / 2**20
# Heading, key of the record, how to write it.
TRAINING = (
    ("train s", "train_seconds", _number(1)),
    ("CPU s", "train_cpu_seconds", _number(1)),
    ("peak MiB", "peak_bytes", _number(0, MIB)),
    ("model MiB", "model_bytes", _number(1, MIB)),
)
PREDICTION = (
    ("load s", "load_seconds", _number(3)),
    ("batch ms/row", "batch_ms", _number(4)),
    ("one row ms", "single_ms", _number(4)),
    ("nodes/row", "evaluations", _number(0)),
    *((f"{name}@{k}", f"{name}@{k}", _number(2)) for name in ("p", "psp") for k in (1, 3, 5)),
)


def render(records: list[Record], threads: int) -> Table:
    """Return the table of a run; what training cost is written once for all searches of a model."""
    table = Table(title=f"{threads} threads; best of several runs")
    for heading in ("data", "system", "setting", "search"):
        table.add_column(heading, overflow="fold")
    for heading, _, _ in TRAINING + PREDICTION:
        table.add_column(heading, justify="right", no_wrap=True)
    previous: tuple[str, ...] = ()
    for record in records:
        trained = (record["data"], record["system"], record["setting"])
        fresh = trained != previous
        if previous and record["data"] != previous[0]:
            table.add_section()
        table.add_row(
            *(trained if fresh else ("", "", "")),
            record["search"],
            *cells(record, TRAINING if fresh else ()),
            *([] if fresh else [""] * len(TRAINING)),
            *cells(record, PREDICTION),
        )
        if "failed" in record:
            table.add_row("", "", f"[red]failed: {_escape(record['failed'])}[/red]")
        previous = trained
    return table


def cells(record: Record, columns: tuple[tuple[str, str, Callable[[float], str]], ...]) -> list[str]:
    """Write the cells of some columns; what a system does not expose stays empty."""
    return ["" if record.get(key) is None else write(record[key]) for _, key, write in columns]


def _escape(text: str) -> str:
    return text.replace("[", r"\[")
