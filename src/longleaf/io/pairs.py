"""Files with two columns, or a JSON object: tags and their groups, or their gains."""

from __future__ import annotations

import csv
import json
import re
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from itertools import islice
from typing import Any

from longleaf._validation import DataError
from longleaf.io._lines import read_lines
from longleaf.io.streams import Source, read_chunks, source_name

HEADERS = ("tag", "id", "label")
"""What the first column of a header is called."""


def read_pairs(source: Source, value: str) -> dict[str, str]:
    """Read a mapping of tags to strings.

    Parameters
    ----------
    source : str, path-like or binary file object
        One JSON object, or lines of a tag and its value, separated by a tab, semicolon or comma; a first line
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
    lines = whole_lines(source)
    if first_line(lines).lstrip().startswith(("{", "[")):
        return _from_json("".join(lines), name)
    pairs: dict[str, str] = {}
    for number, values in rows_of(lines, name):
        if len(values) != 2:
            raise DataError(f"{name}, line {number} must be a tag and {value}; got {counted(values)}.")
        if not (not pairs and values[0].strip().lower() in HEADERS):
            pairs.setdefault(values[0].strip(), values[1].strip())
    if not pairs:
        raise DataError(f"{name} must name at least one tag; got none.")
    return pairs


def whole_lines(source: Source) -> list[str]:
    """Return all lines of a file, however long."""
    with closing(read_chunks(source)) as chunks:
        return [line.text or "" for line in read_lines(chunks, sys.maxsize)]


def first_line(lines: list[str]) -> str:
    """Return the first line that is not blank, or an empty string."""
    return next((line for line in lines if line.strip()), "")


def rows_of(lines: list[str], name: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the line number and the fields of each row that is not blank."""
    first = first_line(lines)
    delimiter = next((mark for mark in "\t;," if mark in first), "\t")
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


def counted(values: list[str]) -> str:
    """Return how many fields a row has, in words."""
    return "1 field" if len(values) == 1 else f"{len(values)} fields"


def json_object(text: str, name: str, values: str = "names") -> dict[str, Any]:
    """Parse one JSON object, whose values messages call `values`."""

    def distinct(items: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(items)
        if len(found) < len(items):
            tag = Counter(tag for tag, _ in items).most_common(1)[0][0]
            raise DataError(f"{name}{_line_of(tag, text)} must name each tag once; got {tag!r:.80} twice.")
        return found

    try:
        found: Any = json.loads(text, object_pairs_hook=distinct)
    except DataError:
        raise
    except (ValueError, RecursionError) as error:
        raise DataError(f"{name} must be a JSON object of {values} by tag; {error}.") from None
    if not isinstance(found, dict):
        raise DataError(f"{name} must be a JSON object of {values} by tag; got {type(found).__name__}.")
    return found


def _line_of(tag: str, text: str) -> str:
    """Return where a tag comes for the second time; nothing if it is written in different ways."""
    places = re.finditer(re.escape(json.dumps(tag, ensure_ascii=False)) + r"\s*:", text)
    second = next(islice(places, 1, None), None)
    return "" if second is None else f", line {text.count(chr(10), 0, second.start()) + 1}"


def _from_json(text: str, name: str) -> dict[str, str]:
    found = json_object(text, name)
    for tag, value in found.items():
        if not isinstance(value, str):
            raise DataError(f"{name} must hold a string for every tag; {tag!r} has {type(value).__name__}.")
    return found
