"""Files that say what tags are worth: tables, lines of JSON, or JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from longleaf._validation import DataError
from longleaf.io.pairs import HEADERS, counted, first_line, json_object, rows_of, whole_lines
from longleaf.io.streams import Source, source_name

TAG = "tag"
FIELDS = ("a", "b", "allowed", "group", "quota")
COLUMNS = f"{TAG}, {', '.join(FIELDS[:-1])} and {FIELDS[-1]}"
FLAGS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}

Row = tuple[str, Mapping[str, Any]]
"""Where a row is, for error messages, and its fields."""


def utility_rows(source: Source) -> Iterator[Row]:
    """Yield the rows of a file; cells that are empty are omitted.

    Parameters
    ----------
    source : str, path-like or binary file object
        A table whose first line names its columns; one JSON object per line; or a JSON array of such objects;
        or a JSON object of them by tag. The file may be compressed.
    """
    name = source_name(source)
    lines = whole_lines(source)
    first = first_line(lines).lstrip()
    if first.startswith("PK\x03\x04"):
        raise DataError(f"{name} must be CSV, TSV or JSON; it is a workbook or an archive: save it as CSV.")
    if first.startswith("["):
        return _of_array("".join(lines), name)
    if not first.startswith("{"):
        return _of_table(lines, name)
    if _is_row(first):
        return _of_lines(lines, name)
    return rows_by_tag(json_object("".join(lines), name, "rows"), name)


def rows_by_tag(rows: Mapping[str, Any], name: str) -> Iterator[Row]:
    """Yield the rows of a mapping by tag."""
    for tag, row in rows.items():
        if not isinstance(row, Mapping):
            raise DataError(f"{name} must have {COLUMNS} by name for every tag; {tag!r:.80} has {row!r:.80}.")
        yield name, {**row, TAG: tag}


def _is_row(line: str) -> bool:
    """Return whether a line is a row by itself, and not the beginning of an object of rows by tag."""
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        return False
    return isinstance(row, dict) and not isinstance(row.get(TAG, {}), dict)


def _of_lines(lines: list[str], name: str) -> Iterator[Row]:
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        where = f"{name}, line {number}"
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise DataError(f"{where} must be a JSON object; {error}.") from None
        yield where, row


def _of_array(text: str, name: str) -> Iterator[Row]:
    try:
        rows = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{name} must be a JSON array of rows; {error}.") from None
    for number, row in enumerate(rows, start=1):
        yield f"{name}, row {number}", row


def _of_table(lines: list[str], name: str) -> Iterator[Row]:
    columns: list[str] | None = None
    decimal_comma = ";" in first_line(lines)  # as spreadsheet programs write tables where 1,5 is a number
    for number, values in rows_of(lines, name):
        where = f"{name}, line {number}"
        if columns is None:
            header = number
            columns = [TAG if word in HEADERS else word for word in (one.strip().lower() for one in values)]
            unknown = [word for word in columns if word not in (TAG, *FIELDS)]
            if unknown or TAG not in columns or len(set(columns)) < len(columns):
                found = ", ".join(value.strip() for value in values)
                raise DataError(f"{where} must name columns among {COLUMNS}, each once; got {found:.80}.")
            continue
        if len(values) != len(columns):
            raise DataError(
                f"{where} must have {len(columns)} fields, as line {header} has; got {counted(values)}."
            )
        cells = zip(columns, (value.strip() for value in values), strict=True)
        yield (
            where,
            {column: _parsed(column, cell, decimal_comma) for column, cell in cells if cell or column == TAG},
        )


def _parsed(column: str, cell: str, decimal_comma: bool) -> Any:
    """Return what a cell says; the cell itself if that is none of what its column holds."""
    if column == "allowed":
        return FLAGS.get(cell.lower(), cell)
    number = cell.replace(",", ".") if decimal_comma else cell
    try:
        return int(cell) if column == "quota" else float(number) if column in ("a", "b") else cell
    except ValueError:
        return cell
