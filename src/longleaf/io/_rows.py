"""Rows of fields out of JSONL, CSV and Parquet, one at a time."""

from __future__ import annotations

import csv
import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any, BinaryIO, NamedTuple

from longleaf._validation import DataError
from longleaf.io._lines import Line, read_lines
from longleaf.io._report import ReadReport
from longleaf.io.streams import MAGIC, Source

PARQUET_BATCH = 1024


class Row(NamedTuple):
    """One row: where it stands (``line 7``) and its fields by name; no fields if it could not be read."""

    place: str
    fields: dict[str, Any] | None


def json_rows(chunks: Iterator[bytes], longest: int, report: ReadReport) -> Iterator[Row]:
    """Read one JSON object a line; blank lines are no rows."""
    for line in read_lines(chunks, longest):
        place = f"line {line.number}"
        if line.text is None or not line.is_utf8:
            _add_line_problem(line, longest, report)
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


def csv_rows(
    chunks: Iterator[bytes], delimiter: str | None, longest: int, report: ReadReport
) -> tuple[list[str], Iterator[Row]]:
    """Read a header and rows of as many fields; quoted fields may hold line ends.

    Parameters
    ----------
    chunks : iterator of bytes
    delimiter : str or None
        None for whichever of comma, semicolon and tab is most frequent in the header.
    longest : int
        Bytes of the longest line, and characters of the longest field.
    report : ReadReport

    Returns
    -------
    header : list of str
    rows : iterator of Row
    """
    # The standard library's limit is global and far below the length of real texts; it is only ever raised.
    csv.field_size_limit(max(csv.field_size_limit(), longest))
    lines = read_lines(chunks, longest)
    first = next((line for line in lines if line.text is None or line.text.strip()), None)
    if first is None or first.text is None:
        raise DataError(f"{report.source} must begin with a line that names its columns; got none.")
    if delimiter is None:
        delimiter = max(",;\t", key=first.text.count)
    feed = _LineFeed(first, lines, longest, report)
    reader = csv.reader(feed, delimiter=delimiter)
    header = [name.strip() for name in next(reader)]
    return header, _csv_body(reader, feed, header, report)


class _LineFeed:
    """The lines for a CSV reader; knows where it stands, and reports lines that it leaves out."""

    def __init__(self, first: Line, rest: Iterator[Line], longest: int, report: ReadReport) -> None:
        self._first: Line | None = first
        self._rest = rest
        self._longest = longest
        self._report = report
        self.number = 0
        self.left_out = 0

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        while True:
            line = self._first or next(self._rest)
            self._first, self.number = None, line.number
            if line.text is None or not line.is_utf8:
                _add_line_problem(line, self._longest, self._report)
            if line.text is not None:
                return line.text
            self.left_out += 1


def _csv_body(reader: Any, feed: _LineFeed, header: list[str], report: ReadReport) -> Iterator[Row]:
    while True:
        place = f"line {feed.number + 1}"
        before = feed.left_out
        try:
            values = next(reader)
        except StopIteration:
            values = None
        except csv.Error as error:
            report.add("broken", place, f"must be a row of {len(header)} fields; {error}.")
            yield Row(place, None)
            continue
        for _ in range(feed.left_out - before):
            yield Row(place, None)
        if values is None:
            return
        if not values:  # a blank line
            continue
        if len(values) != len(header):
            found = f"must have {len(header)} fields, as the header has; got {len(values)}."
            report.add("broken", place, found)
            yield Row(place, None)
        else:
            yield Row(place, dict(zip(header, values, strict=True)))


def _add_line_problem(line: Line, longest: int, report: ReadReport) -> None:
    place = f"line {line.number}"
    if line.text is None:
        report.add("too long", place, f"must have at most {longest} bytes; it has more.")
    else:
        report.add("encoding", place, "must be UTF-8; it holds other bytes.")


def parquet_rows(
    source: Source, chunks: Iterator[bytes], report: ReadReport, files: ExitStack
) -> tuple[list[str], Iterator[Row]]:
    """Read the rows of a Parquet file, a batch at a time; `files` will close it.

    Its table of contents stands at its end, so that what cannot be sought (standard input, a compressed
    file) goes through a temporary file.
    """
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise DataError(
            f"{report.source} is Parquet, which needs pyarrow; install longleaf with the extra 'tables'."
        ) from None
    try:
        file = pq.ParquetFile(files.enter_context(_seekable(source, chunks)))
    except (pa.ArrowException, OSError) as error:
        raise DataError(f"{report.source} cannot be read as Parquet: {error}.") from None
    return list(file.schema_arrow.names), _parquet_body(file, pa.ArrowException, report)


def _parquet_body(file: Any, arrow_error: type[Exception], report: ReadReport) -> Iterator[Row]:
    number = 0
    try:
        for batch in file.iter_batches(PARQUET_BATCH):
            for fields in batch.to_pylist():
                number += 1
                yield Row(f"row {number}", fields)
    except (arrow_error, OSError) as error:
        raise DataError(f"{report.source}, row {number + 1}: cannot be read as Parquet: {error}.") from None


def _seekable(source: Source, chunks: Iterator[bytes]) -> BinaryIO:
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
