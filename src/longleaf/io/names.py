"""Files that map tags to readable names, or to groups."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from contextlib import closing
from typing import Any

from longleaf._validation import DataError
from longleaf.io._lines import read_lines
from longleaf.io.streams import Source, read_chunks, source_name

HEADERS = ("tag", "id", "label")


def read_names(source: Source, value: str = "its name") -> dict[str, str]:
    """Read a mapping of tags to names (or to groups).

    Parameters
    ----------
    source : str, path-like or binary file object
        One JSON object, or lines of a tag and its name, separated by a tab, semicolon or comma; a first line
        whose first column is named tag, id or label is a header. The file may be compressed.
    value : str
        What error messages call the value of a tag.

    Returns
    -------
    dict of str to str
        If a tag has several lines, the first one counts.

    Raises
    ------
    DataError
        If the file has neither form; the message names the line.
    """
    name = source_name(source)
    with closing(read_chunks(source)) as chunks:
        lines = [line.text or "" for line in read_lines(chunks)]
    text = "".join(lines)
    if text.lstrip().startswith(("{", "[")):
        return _from_json(text, name)
    first = next((line for line in lines if line.strip()), "")
    delimiter = next((mark for mark in "\t;," if mark in first), "\t")
    names: dict[str, str] = {}
    for number, values in _rows(lines, delimiter, name):
        if len(values) != 2:
            raise DataError(f"{name}, line {number} must be a tag and {value}; got {_counted(values)}.")
        if not (not names and values[0].strip().lower() in HEADERS):
            names.setdefault(values[0].strip(), values[1].strip())
    if not names:
        raise DataError(f"{name} must name at least one tag; got none.")
    return names


def _rows(lines: list[str], delimiter: str, name: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the line number and the fields of each row that is not blank."""
    reader = csv.reader(lines, delimiter=delimiter)
    number = 1
    try:
        for values in reader:
            if reader.line_num > number:  # names have no line breaks, so a quote is open
                raise DataError(f"{name}, line {number} must close its quotes; got an open quote at its end.")
            if values:
                yield number, values
            number += 1
    except csv.Error as error:
        raise DataError(f"{name}, line {number} cannot be read: {error}.") from None


def _counted(values: list[str]) -> str:
    return "1 field" if len(values) == 1 else f"{len(values)} fields"


def _from_json(text: str, name: str) -> dict[str, str]:
    try:
        value: Any = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{name} must be a JSON object of names by tag; {error}.") from None
    if not isinstance(value, dict):
        raise DataError(f"{name} must be a JSON object of names by tag; got {type(value).__name__}.")
    for tag, named in value.items():
        if not isinstance(named, str):
            raise DataError(f"{name} must hold a string for every tag; {tag!r} has {type(named).__name__}.")
    return value
