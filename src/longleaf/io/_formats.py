"""Detecting the format of a table by its name or its first bytes."""

from __future__ import annotations

from pathlib import PurePath

from longleaf._validation import DataError
from longleaf.io.streams import MAGIC, Source, source_name

FORMATS = ("jsonl", "csv", "tsv", "parquet")
SUFFIXES = {
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".parquet": "parquet",
    ".pq": "parquet",
}
WORKBOOKS = {b"PK\x03\x04": (".xlsx", ".xlsm"), b"\xd0\xcf\x11\xe0": (".xls",)}
"""First bytes and suffixes of workbooks; other archives start with the same bytes."""


def table_format(source: Source) -> str | None:
    """Return the format of a table by its name, ignoring a compression suffix; None if unknown."""
    path = PurePath(source_name(source))
    if path.suffix.lower().removeprefix(".") in MAGIC.values():
        path = path.with_suffix("")
    return SUFFIXES.get(path.suffix.lower())


def guess_format(head: bytes) -> str:
    """Return the format of a table by its first bytes."""
    if head.startswith(b"PAR1"):
        return "parquet"
    start = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    return "jsonl" if start.startswith((b"{", b"[")) else "csv"


def refuse_workbook(head: bytes, name: str) -> None:
    """Reject an Excel workbook or another archive, which cannot be read as a table.

    Parameters
    ----------
    head : bytes
        The first bytes.
    name : str
        Name of the file in messages.

    Raises
    ------
    DataError
        If it is a workbook or an archive.
    """
    for mark, suffixes in WORKBOOKS.items():
        if head.startswith(mark):
            other = "" if name.lower().endswith(suffixes) else " or an archive"
            raise DataError(f"{name} is an Excel workbook{other}; save its sheet as CSV and use that file.")
