"""Detecting the format of a table by its name or its first bytes."""

from __future__ import annotations

from pathlib import PurePath

from longleaf._validation import DataError
from longleaf.io.streams import MAGIC, Source, source_name

FORMATS = ("jsonl", "csv", "tsv", "parquet", "xlsx")
SUFFIXES = {
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".xlsx": "xlsx",
    ".xlsm": "xlsx",
}
ARCHIVE = b"PK\x03\x04"
"""First bytes of an Excel workbook, and of other archives."""
OLD_EXCEL = b"\xd0\xcf\x11\xe0"
"""First bytes of a workbook of the old format, and of an encrypted one."""
OPEN_DOCUMENT = b"mimetypeapplication/vnd.oasis.opendocument"


def table_format(source: Source) -> str | None:
    """Return the format of a table by its name, ignoring a compression suffix; None if unknown."""
    return SUFFIXES.get(PurePath(without_compression(source_name(source))).suffix.lower())


def without_compression(name: str) -> str:
    """Return the name of a file without the suffix of its compression."""
    path = PurePath(name)
    return str(path.with_suffix("")) if path.suffix.lower().removeprefix(".") in MAGIC.values() else name


def guess_format(head: bytes) -> str:
    """Return the format of a table by its first bytes."""
    if head.startswith(b"PAR1"):
        return "parquet"
    if head.startswith(ARCHIVE):
        return "xlsx"
    start = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    return "jsonl" if start.startswith((b"{", b"[")) else "csv"


def refuse_workbook(head: bytes, name: str) -> None:
    """Reject workbooks of formats that cannot be read.

    Parameters
    ----------
    head : bytes
        The first bytes.
    name : str
        Name of the file in messages.

    Raises
    ------
    DataError
        If it is a workbook of an old or protected Excel, or an OpenDocument spreadsheet.
    """
    if head.startswith(OLD_EXCEL):
        kind = "an Excel workbook of the old format (.xls), or a protected one"
    elif head.startswith(ARCHIVE) and OPEN_DOCUMENT in head[:200]:
        kind = "an OpenDocument spreadsheet (.ods)"
    else:
        return
    raise DataError(f"{name} is {kind}; save its sheet as .xlsx or CSV and use that file.")
