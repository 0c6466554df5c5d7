"""Reading rows of fields from the first sheet of an Excel workbook, one at a time."""

from __future__ import annotations

import datetime
import warnings
import zipfile
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import chain, islice
from typing import Any, BinaryIO

from longleaf._validation import DataError
from longleaf.io._report import ReadReport
from longleaf.io._rows import Layout, Row, distinct_names, seekable
from longleaf.io.streams import Source

MOST_UNPACKED = 1 << 31
"""Bytes that a workbook may unpack to: a small archive can hold a huge file, and its strings need memory."""

MOST_ROWS = 1 << 20
"""Rows of a sheet, in Excel; a damaged file may number its rows higher."""

BATCH_ROWS = 1024
CARRIAGE_RETURN = "_x000D_"
"""How Excel stores the first character of a line end that was pasted from another program."""

Cells = list[Any]


def workbook_rows(
    source: Source, chunks: Iterator[bytes], report: ReadReport, files: ExitStack
) -> tuple[Layout, Iterator[Row]]:
    """Read the header and the rows of the first sheet; `files` will close the file.

    The first row that is not empty is the header; empty rows are ignored. Numbers and dates become text, and
    formulas the values that were saved with them. Entities in XML cannot grow out of hand, because Python's
    parser limits them.
    """
    try:
        import openpyxl
    except ImportError:
        raise DataError(
            f"{report.source} is an Excel workbook, which needs openpyxl; "
            "install longleaf with the extra 'excel'."
        ) from None
    file = files.enter_context(seekable(source, chunks))
    _check_archive(file, report.source)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of styles and extensions, which are not read
            book = openpyxl.load_workbook(file, read_only=True, data_only=True, keep_links=False)
        files.callback(book.close)
        if not book.worksheets:
            raise DataError(f"{report.source} must have a sheet of cells; got none.")
        sheet = book.worksheets[0]
        sheet.reset_dimensions()  # those that programs write are often wrong
    except DataError:
        raise
    except Exception as error:  # openpyxl raises whatever the part of it that stumbles raises
        raise _damaged(report.source, error) from None
    rows = _numbered_rows(sheet, report.source)
    _, names = next(rows, (0, []))
    if not names:
        raise DataError(f"{report.source} must begin with a row that names its columns; got none.")
    header = distinct_names(map(cell_text, names))
    return Layout("xlsx", header), _body(header, rows, report)


def _check_archive(file: BinaryIO, name: str) -> None:
    """Reject what is not a workbook, and what would unpack to more than memory should take."""
    try:
        with zipfile.ZipFile(file) as archive:
            entries = archive.infolist()
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError) as error:
        raise _damaged(name, error) from None
    if not any(entry.filename.startswith("xl/") for entry in entries):
        raise DataError(f"{name} must be a table or an Excel workbook; got another archive.")
    size = sum(entry.file_size for entry in entries)  # reading an entry stops at its size
    if size > MOST_UNPACKED:
        raise DataError(
            f"{name} must unpack to at most {MOST_UNPACKED} bytes; got {size}: save its sheet as CSV."
        )


def _damaged(name: str, error: Exception) -> DataError:
    reason = " ".join(str(error).split()) or type(error).__name__
    return DataError(f"{name} cannot be read as an Excel workbook: {reason.removesuffix('.')}.")


def _numbered_rows(sheet: Any, name: str) -> Iterator[tuple[int, Cells]]:
    """Yield the rows that are not empty, without the empty cells at their ends, numbered as in Excel."""
    rows = enumerate(sheet.iter_rows(values_only=True), start=1)
    batch: list[tuple[int, tuple[Any, ...]]] = []
    while True:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                batch = list(islice(rows, BATCH_ROWS))
        except Exception as error:
            raise _damaged(name, error) from None
        for number, cells in batch:
            if number > MOST_ROWS:
                raise DataError(f"{name} must have at most {MOST_ROWS} rows; got more.")
            width = max((place for place, cell in enumerate(cells, 1) if cell not in (None, "")), default=0)
            if width:
                yield number, list(cells[:width])
        if len(batch) < BATCH_ROWS:
            return


def _body(header: list[str], rows: Iterator[tuple[int, Cells]], report: ReadReport) -> Iterator[Row]:
    for number, cells in rows:
        place = f"row {number}"
        if len(cells) > len(header):
            found = f"must have at most {len(header)} cells, as the header has; got {len(cells)}."
            report.add("broken", place, found)
            yield Row(place, None)
            continue
        padded = chain(map(cell_text, cells), [""] * (len(header) - len(cells)))
        yield Row(place, dict(zip(header, padded, strict=True)))


def cell_text(value: Any) -> str:
    """Return the content of a cell as text.

    Examples
    --------
    >>> cell_text(12.0), cell_text(0.5), cell_text(True), cell_text(None)
    ('12', '0.5', 'TRUE', '')
    >>> cell_text(datetime.datetime(2026, 3, 1)), cell_text(datetime.datetime(2026, 3, 1, 9, 30))
    ('2026-03-01', '2026-03-01 09:30:00')
    """
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    if isinstance(value, datetime.datetime):
        midnight = value.time() == datetime.time()
        return value.date().isoformat() if midnight else value.isoformat(" ")
    return str(value).replace(CARRIAGE_RETURN, "")
