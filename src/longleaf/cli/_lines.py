"""Predictions, written and counted batch by batch in any form; and the form of one JSON line per row."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import IO, Any, Protocol

from longleaf.cli._tables import record_batches
from longleaf.io.tables import TableReader
from longleaf.suggest import Query, Suggester, Suggestion, Suggestions, short
from longleaf.text.fields import Text

BATCH_ROWS = 2048
BATCH_SUGGESTIONS = 1 << 19
"""Some hundred megabytes; one row may have more."""

Found = list[Suggestions]
"""The suggestions of each row."""


@dataclass(frozen=True, eq=False)
class Batch:
    """Some rows: features, row numbers and ids; ``share`` of all is done after them, None if unknown.

    ``X`` and ``texts`` have only the rows of the places in ``usable``, as the others have no text; all rows
    if that is None. ``fields`` are all fields of each row of a table.
    """

    X: Any
    rows: Sequence[int]
    ids: Sequence[str | None]
    share: float | None = None
    texts: Sequence[Text] = ()
    fields: Sequence[Mapping[str, Any]] = ()
    usable: Sequence[int] | None = None

    def found(self, suggester: Suggester, query: Query) -> Found:
        """Return the suggestions of each row; none for rows without text."""
        found = suggester.suggest(self.X, query, self.texts)
        if self.usable is None:
            return found
        every: Found = [Suggestions() for _ in self.rows]
        for place, suggestions in zip(self.usable, found, strict=True):
            every[place] = suggestions
        return every


@dataclass
class Written:
    """What was written: rows read, suggestions, rows without any, exact rows, and rows of the output."""

    records: int = 0
    suggestions: int = 0
    empty: int = 0
    exact: int = 0
    rows: int = 0


class Form(Protocol):
    """A form of output."""

    def text(self, batch: Batch, found: Found) -> tuple[str, int]:
        """Return what is written for a batch, and how many rows of the output that is."""

    def end(self) -> str:
        """Return what is written after the last batch."""


def most_rows(suggester: Suggester, query: Query) -> int:
    """Return how many rows a batch may have, so that it does not get too many suggestions."""
    return max(1, BATCH_SUGGESTIONS // suggester.n_searched(query))


def matrix_batches(X: Any, most: int) -> Iterator[Batch]:
    """Split a matrix into batches of at most so many rows, which have no ids."""
    n_rows, step = X.shape[0], min(BATCH_ROWS, most)
    for begin in range(0, n_rows, step):
        end = min(begin + step, n_rows)
        yield Batch(X[begin:end], range(begin, end), [None] * (end - begin), end / n_rows)


def text_batches(reader: TableReader, suggester: Suggester, most: int) -> Iterator[Batch]:
    """Vectorize a table as it is read, at most so many rows at once."""
    for pairs in record_batches(reader, most):
        records, fields = [record for record, _ in pairs], [row for _, row in pairs]
        usable = [place for place, record in enumerate(records) if record.text.strip()]
        texts = [records[place].content(suggester.fields) for place in usable]
        yield Batch(
            suggester.rows(texts),
            [record.row for record in records],
            [record.id for record in records],
            texts=texts,
            fields=fields,
            usable=usable,
        )


def write_batches(
    file: IO[bytes],
    form: Form,
    suggester: Suggester,
    batches: Iterable[Batch],
    query: Query,
    progress: Callable[[float], None] | None = None,
) -> Written:
    """Predict and write one batch of rows at a time, so that a reader need not wait for the last."""
    written = Written()
    for batch in batches:
        found = batch.found(suggester, query)
        text, rows = form.text(batch, found)
        file.write(encoded(text))
        file.flush()
        written.records += len(found)
        written.suggestions += sum(map(len, found))
        written.empty += sum(not suggestions for suggestions in found)
        written.exact += sum(suggestions.exact for suggestions in found)
        written.rows += rows
        if progress is not None and batch.share is not None:
            progress(batch.share)
    file.write(encoded(form.end()))
    return written


def encoded(text: str) -> bytes:
    """Encode text as UTF-8; halves of surrogate pairs, which JSON may hold, become question marks."""
    return text.encode("utf-8", "replace")


class Lines:
    """One JSON object per line, one line per row."""

    def __init__(self, suggester: Suggester, query: Query) -> None:
        self._suggester = suggester
        self._query = query

    def text(self, batch: Batch, found: Found) -> tuple[str, int]:
        """Return the lines of a batch, and their number."""
        lines = []
        for row, number, suggestions in zip(batch.rows, batch.ids, found, strict=True):
            labels = [_described(one, self._suggester, self._query) for one in suggestions]
            certificate = suggestions.certificate() if self._query.may_end_early else {}
            lines.append(_json({"row": row, "id": number, "labels": labels} | certificate) + "\n")
        return "".join(lines), len(lines)

    def end(self) -> str:
        """Return nothing: lines need no end."""
        return ""


def _json(value: dict[str, Any]) -> str:
    line = json.dumps(value, allow_nan=False, ensure_ascii=False)
    # Halves of surrogate pairs are no UTF-8; escaped, they are kept.
    return line if line.isprintable() or _is_encodable(line) else json.dumps(value, allow_nan=False)


def _is_encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _described(one: Suggestion, suggester: Suggester, query: Query) -> dict[str, Any]:
    """Return a suggestion as a JSON object; labels without names are described by their number."""
    fields: dict[str, Any] = {"label": int(one.tag)} if suggester.vectorizer is None else {"tag": one.tag}
    if suggester.tags.names is not None:
        fields["name"] = one.name
    fields |= one.numbers()
    if query.explain:
        fields["words"] = [{"word": word, "value": short(value)} for word, value in one.words]
    return fields
