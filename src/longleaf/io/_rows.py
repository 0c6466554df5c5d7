"""Reading rows of fields from JSONL and Parquet, one at a time."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from itertools import count
from typing import Any, BinaryIO, NamedTuple

from longleaf._validation import DataError
from longleaf.io._lines import read_lines
from longleaf.io._report import ReadReport, add_line_problem
from longleaf.io.streams import MAGIC, Source

PARQUET_BATCH = 1024


class Layout(NamedTuple):
    """The layout of a table: its format, its columns, the delimiter of CSV, the schema of Parquet."""

    format: str
    columns: list[str]
    delimiter: str = ","
    schema: Any = None


class Row(NamedTuple):
    """One row: its place (``line 7``) and its fields by name, or None if it could not be read."""

    place: str
    fields: dict[str, Any] | None


def distinct_names(header: Iterable[str]) -> list[str]:
    """Return the names of columns without the spaces around them.

    Columns without a name, as spreadsheets leave them, get blanks of different lengths: then no cell is lost,
    and they are still without a name where they are written.

    Examples
    --------
    >>> distinct_names([" title", "", "text", ""])
    ['title', '', 'text', ' ']
    """
    blanks = (" " * number for number in count())
    return [name.strip() or next(blanks) for name in header]


def json_rows(chunks: Iterator[bytes], longest: int, report: ReadReport) -> Iterator[Row]:
    """Read one JSON object per line; blank lines are ignored."""
    for line in read_lines(chunks, longest):
        place = f"line {line.number}"
        if line.text is None or not line.is_utf8:
            add_line_problem(line, longest, report)
        if line.text is None:
            yield Row(place, None)
        elif line.text.strip():
            yield Row(place, _parse_object(line.text, place, report))


def _parse_object(text: str, place: str, report: ReadReport) -> dict[str, Any] | None:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        report.add("broken", place, f"must be a JSON object; {error}.")
        return None
    if not isinstance(value, dict):
        report.add("broken", place, f"must be a JSON object; got {type(value).__name__}.")
        return None
    return value


def parquet_rows(
    source: Source, chunks: Iterator[bytes], report: ReadReport, files: ExitStack
) -> tuple[Layout, Iterator[Row]]:
    """Read the rows of a Parquet file in batches; `files` will close it.

    Its metadata is at the end, so a source that is not seekable (standard input, a compressed file) is
    copied to a temporary file.
    """
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise DataError(
            f"{report.source} is Parquet, which needs pyarrow; install longleaf with the extra 'tables'."
        ) from None
    try:
        file = pq.ParquetFile(files.enter_context(seekable(source, chunks)))
    except (pa.ArrowException, OSError) as error:
        raise DataError(f"{report.source} cannot be read as Parquet: {error}.") from None
    schema = file.schema_arrow
    layout = Layout("parquet", list(schema.names), schema=schema)
    return layout, _parquet_body(file, pa.ArrowException, report)


def _parquet_body(file: Any, arrow_error: type[Exception], report: ReadReport) -> Iterator[Row]:
    number = 0
    try:
        for batch in file.iter_batches(PARQUET_BATCH):
            for fields in batch.to_pylist():
                number += 1
                yield Row(f"row {number}", fields)
    except (arrow_error, OSError) as error:
        raise DataError(f"{report.source}, row {number + 1}: cannot be read as Parquet: {error}.") from None


def seekable(source: Source, chunks: Iterator[bytes]) -> BinaryIO:
    """Open a file that is not compressed, or a temporary copy of any other source."""
    if isinstance(source, (str, os.PathLike)):
        with open(source, "rb") as file:
            is_compressed = file.read(6).startswith(tuple(MAGIC))
        if not is_compressed:
            return open(source, "rb")
    copy = tempfile.TemporaryFile()  # noqa: SIM115 - the caller closes it
    for chunk in chunks:
        copy.write(chunk)
    copy.seek(0)
    return copy
