"""What training records are called: their ids and titles, noted while they are read once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from longleaf.explain.records import RecordIndex
from longleaf.io.tables import Record

TITLE_CHARACTERS = 200
"""Longest title, where a record has fields; the first is its title."""
BEGINNING_CHARACTERS = 100
"""How much of a text without fields is its title."""


class RecordNotes:
    """Notes ids and titles of the records that pass through it.

    Parameters
    ----------
    keep : bool
        Whether to note anything.
    start : int
        The number of the first row that has no id.
    """

    def __init__(self, keep: bool, start: int = 0) -> None:
        self.keep = keep
        self.ids: list[str] = []
        self.titles: list[str] = []
        self._start = start
        self._of_records = False

    def records(self, records: Iterable[Record]) -> Iterable[Record]:
        """Return the records, noted as they are read; a record without id goes by its row in its table."""
        self._of_records = True
        return self._records(records) if self.keep else records

    def _records(self, records: Iterable[Record]) -> Iterator[Record]:
        for record in records:
            self.ids.append(str(record.row) if record.id is None else record.id)
            self.titles.append(title_of(record.content()))
            yield record

    def texts(self, texts: Iterable[Any]) -> Iterable[Any]:
        """Return the texts, noted as they are read, unless they are those of records; a list stays one."""
        if not self.keep or self._of_records:
            return texts
        return list(self._texts(texts)) if isinstance(texts, list) else self._texts(texts)

    def _texts(self, texts: Iterable[Any]) -> Iterator[Any]:
        for text in texts:
            self.ids.append(str(self._start + len(self.ids)))
            self.titles.append(title_of(text))
            yield text

    def index(self, X: Any, Y: Any) -> RecordIndex | None:
        """Return the index of the rows that were noted, or None."""
        return RecordIndex.build(X, Y, self.ids, self.titles) if self.keep else None


def title_of(text: Any) -> str:
    """Return the title of a text: of fields, the first that is not empty.

    Parameters
    ----------
    text : str, or mapping of fields to str
        Anything else has no title; the vectorizer rejects it.
    """
    if isinstance(text, Mapping):
        filled = (value for value in text.values() if isinstance(value, str) and value.strip())
        return shortened(next(filled, ""), TITLE_CHARACTERS)
    return shortened(text, BEGINNING_CHARACTERS) if isinstance(text, str) else ""


def shortened(text: str, characters: int) -> str:
    """Return the beginning of a text on one line."""
    line = " ".join(text[: 4 * characters].split())
    return line if len(line) <= characters else line[: characters - 1].rstrip() + "…"
