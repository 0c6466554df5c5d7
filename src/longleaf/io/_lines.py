"""Reading lines of text from a stream of bytes, in bounded memory."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import NamedTuple

LONGEST_LINE = 1 << 23
"""Maximum bytes of a line; a longer one is a file without line ends rather than text."""

FALLBACK = "cp1252"
"""Encoding of lines that are not UTF-8, which nearly always come from old Western programs."""

WIDE = (
    (codecs.BOM_UTF32_LE, "utf-32"),  # starts like the mark of UTF-16, so it comes first
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)

FIRST_END = re.compile(rb"\r[^\n]|\n")
"""The end of the first line: a single CR, as on old Macs, or an LF with or without a CR."""


class Line(NamedTuple):
    """A line: its number from 1, its text with the line end (None if too long), whether it is UTF-8."""

    number: int
    text: str | None
    is_utf8: bool


def peek(chunks: Iterator[bytes], size: int = 4096) -> tuple[bytes, Iterator[bytes]]:
    """Return about the first ``size`` bytes, and an iterator over all chunks including them."""
    head: list[bytes] = []
    while sum(map(len, head)) < size and (piece := next(chunks, None)) is not None:
        head.append(piece)
    return b"".join(head), chain(head, chunks)


def read_lines(chunks: Iterator[bytes], longest: int = LONGEST_LINE) -> Iterator[Line]:
    """Split a stream into lines and decode them; a byte order mark selects UTF-8, UTF-16 or UTF-32.

    Lines end with LF, or with CR if the first one does; such a CR is replaced by LF.

    Parameters
    ----------
    chunks : iterator of bytes
        Chunks may be split anywhere.
    longest : int
        Maximum bytes of a line; longer lines are skipped without keeping them in memory.

    Yields
    ------
    Line
    """
    head, chunks = peek(chunks, 4)
    wide = next((encoding for mark, encoding in WIDE if head.startswith(mark)), None)
    if wide is not None:
        decoded = codecs.iterdecode(chunks, wide, "replace")
        chunks = (piece.encode("utf-8", "surrogatepass") for piece in decoded)
    for number, raw in enumerate(_split(_with_line_feeds(chunks), longest), start=1):
        if raw is None:
            yield Line(number, None, True)
            continue
        if number == 1:
            raw = raw.removeprefix(codecs.BOM_UTF8)
        try:
            yield Line(number, raw.decode("utf-8"), True)
        except UnicodeDecodeError:
            yield Line(number, raw.decode(FALLBACK, "replace"), False)


def _with_line_feeds(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """Replace each CR by LF if the first line ends with a single CR."""
    head, chunks = peek(chunks)
    end = FIRST_END.search(head)
    if end is None or end[0] == b"\n":
        return chunks
    return (chunk.replace(b"\r", b"\n") for chunk in chunks)


def _split(chunks: Iterable[bytes], longest: int) -> Iterator[bytes | None]:
    """Yield lines with their ends; None for one that is too long."""
    kept: list[bytes] = []
    size = 0
    for chunk in chunks:
        begin = 0
        while begin < len(chunk):
            end = chunk.find(b"\n", begin) + 1 or len(chunk)
            size += end - begin
            if size <= longest:
                kept.append(chunk[begin:end])
            else:
                kept.clear()
            if chunk[end - 1] == 0x0A:
                yield b"".join(kept) if size <= longest else None
                kept, size = [], 0
            begin = end
    if size:
        yield b"".join(kept) if size <= longest else None
