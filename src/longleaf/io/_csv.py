"""Reading rows of fields from CSV and TSV, one at a time."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator

from longleaf._validation import DataError
from longleaf.io._lines import Line, read_lines
from longleaf.io._report import ReadReport, add_line_problem
from longleaf.io._rows import Layout, Row, distinct_names

DELIMITERS = ",;\t"
"""Possible delimiters, unless a line before the header names another."""

SEPARATOR_LINE = re.compile(r'"?sep=(.)"?[\r\n]*', re.IGNORECASE)
"""The line that Excel writes before the header to name the delimiter."""

MOST_LINES = 20
"""Cells with more lines are checked: they may be long texts, or rows swallowed by a stray quote."""

ALIKE = 0.9
"""If at least this share of a cell's lines have as many fields as the header, the lines are rows."""


def csv_rows(
    chunks: Iterator[bytes], delimiter: str | None, longest: int, report: ReadReport
) -> tuple[Layout, Iterator[Row]]:
    """Read a header and rows with the same number of fields; quoted fields may contain line breaks.

    Parameters
    ----------
    chunks : iterator of bytes
    delimiter : str or None
        None for the most frequent of comma, semicolon and tab in the header. A first line such as ``sep=;``
        overrides both.
    longest : int
        Bytes of the longest line, and characters of the longest field.
    report : ReadReport

    Returns
    -------
    layout : Layout
    rows : iterator of Row

    Raises
    ------
    DataError
        If there is no header, or if a quote is still open at the end of the file.
    """
    # The limit of the csv module is global and far below the length of real texts; it is only ever raised.
    csv.field_size_limit(max(csv.field_size_limit(), longest))
    lines = read_lines(chunks, longest)
    first = _first_line(lines)
    if first is not None and (match := SEPARATOR_LINE.fullmatch(first.text or "")):
        delimiter, first = match[1], _first_line(lines)
    if first is None or first.text is None:
        raise DataError(f"{report.source} must begin with a line that names its columns; got none.")
    if delimiter is None:
        delimiter = max(DELIMITERS, key=first.text.count)
    table = _Table(_LineFeed(first, lines, longest, report), delimiter, report)
    return Layout("csv", table.header, delimiter), table.rows()


def _first_line(lines: Iterator[Line]) -> Line | None:
    return next((line for line in lines if line.text is None or line.text.strip()), None)


class _LineFeed:
    """Lines for a CSV reader; tracks the line number, and reports the lines that it skips."""

    def __init__(self, first: Line, rest: Iterator[Line], longest: int, report: ReadReport) -> None:
        self._first: Line | None = first
        self._rest = rest
        self._longest = longest
        self._report = report
        self.number = 0
        self.left_out = 0
        self.is_at_end = False

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        while True:
            line = self._first or next(self._rest, None)
            if line is None:
                self.is_at_end = True
                raise StopIteration
            self._first, self.number = None, line.number
            if line.text is None or not line.is_utf8:
                add_line_problem(line, self._longest, self._report)
            if line.text is not None:
                return line.text
            self.left_out += 1


class _Table:
    """The header and rows in the lines of a feed."""

    def __init__(self, feed: _LineFeed, delimiter: str, report: ReadReport) -> None:
        self._feed = feed
        self._delimiter = delimiter
        self._report = report
        self._reader = csv.reader(feed, delimiter=delimiter)
        try:
            self.header = distinct_names(self._next() or [])
        except csv.Error as error:
            raise DataError(f"{report.source}, line {feed.number}: must name the columns; {error}.") from None

    def rows(self) -> Iterator[Row]:
        """Yield the rows after the header."""
        while True:
            place = f"line {self._feed.number + 1}"
            before = self._feed.left_out
            try:
                values = self._next()
            except csv.Error as error:
                yield self._broken(place, f"must be a row of {len(self.header)} fields; {error}.")
                continue
            for _ in range(self._feed.left_out - before):
                yield Row(place, None)
            if values is None:
                return
            if values:  # otherwise a blank line
                yield self._row(place, values)

    def _next(self) -> list[str] | None:
        """Return the values of the next row; None after the last."""
        values = next(self._reader, None)
        # The reader asks for another line only inside a quote or after a complete row.
        if values is not None and self._feed.is_at_end:
            opened = self._feed.number - _lines_after_the_first(values[-1])
            raise DataError(
                f"{self._report.source}, line {opened}: a cell starts with a quote that is never closed; "
                'close it, or write "" for a quote that is part of the text.'
            )
        return values

    def _row(self, place: str, values: list[str]) -> Row:
        swallowed = next((lines for lines in map(self._swallowed_rows, values) if lines), 0)
        if swallowed:
            return self._broken(
                place, f"must close its quotes; a cell contains {swallowed} lines that look like rows."
            )
        if len(values) != len(self.header):
            found = f"must have {len(self.header)} fields, as the header has; got {len(values)}."
            return self._broken(place, found)
        return Row(place, dict(zip(self.header, values, strict=True)))

    def _swallowed_rows(self, cell: str) -> int:
        """Count the lines of a cell if they look like rows, which two stray quotes join into one cell."""
        # A table with one column is not checked, because every line of a text looks like one of its rows.
        if len(self.header) == 1 or cell.count("\n") <= MOST_LINES:
            return 0
        inner = cell.split("\n")[1:-1]  # the first and last line are incomplete rows
        alike = sum(line.count(self._delimiter) == len(self.header) - 1 for line in inner)
        return len(inner) if alike >= ALIKE * len(inner) else 0

    def _broken(self, place: str, what: str) -> Row:
        self._report.add("broken", place, what)
        return Row(place, None)


def _lines_after_the_first(cell: str) -> int:
    return cell.removesuffix("\n").count("\n")
