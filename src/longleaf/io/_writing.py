"""Writing a table with the format and columns of another."""

from __future__ import annotations

import codecs
import csv
import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import IO, Any

from longleaf.io._csv import DELIMITERS
from longleaf.io._rows import PARQUET_BATCH, Layout
from longleaf.io.streams import open_replacing

Write = Callable[[dict[str, Any]], None]


@contextmanager
def writing_table(path: str | os.PathLike[str], layout: Layout) -> Iterator[Write]:
    """Open a table that appears once it is complete; yield the function that writes a row of fields.

    Parameters
    ----------
    path : str or path-like
    layout : Layout
        The layout of the table that the rows come from. JSONL keeps the fields of each row, other formats
        those of the layout.
    """
    ways = {"jsonl": _json_writer, "parquet": _parquet_writer}
    with open_replacing(path) as file, ways.get(layout.format, _csv_writer)(file, layout) as write:
        yield write


@contextmanager
def _json_writer(file: IO[bytes], layout: Layout) -> Iterator[Write]:
    yield lambda fields: _write(file, json.dumps(fields) + "\n")


@contextmanager
def _csv_writer(file: IO[bytes], layout: Layout) -> Iterator[Write]:
    if layout.format == "xlsx":
        file.write(codecs.BOM_UTF8)  # for the program that the workbook came from
    if layout.delimiter not in DELIMITERS:
        _write(file, f"sep={layout.delimiter}\r\n")
    writer = csv.writer(_Lines(file), delimiter=layout.delimiter)
    columns = layout.columns
    writer.writerow(columns)
    yield lambda fields: writer.writerow([fields[name] for name in columns])


@contextmanager
def _parquet_writer(file: IO[bytes], layout: Layout) -> Iterator[Write]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows: list[dict[str, Any]] = []
    with pq.ParquetWriter(file, layout.schema) as writer:

        def flush() -> None:
            writer.write_table(pa.Table.from_pylist(rows, schema=layout.schema))
            rows.clear()

        def write(fields: dict[str, Any]) -> None:
            rows.append(fields)
            if len(rows) == PARQUET_BATCH:
                flush()

        yield write
        flush()


class _Lines:
    """A stream for a CSV writer that encodes text as UTF-8."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file

    def write(self, text: str) -> None:
        _write(self._file, text)


def _write(file: IO[bytes], text: str) -> None:
    file.write(text.encode())
