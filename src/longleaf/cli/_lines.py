"""Predictions as JSON, one line per row, written in batches."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import IO, Any

from longleaf.cli._tables import record_batches
from longleaf.io.tables import TableReader
from longleaf.suggest import Query, Suggester, Suggestion, short

BATCH_ROWS = 2048


@dataclass(frozen=True, eq=False)
class Batch:
    """Some rows: features, row numbers and ids; ``share`` of all is done after them, None if unknown."""

    X: Any
    rows: Sequence[int]
    ids: Sequence[str | None]
    share: float | None = None
    texts: Sequence[str] = ()


def matrix_batches(X: Any) -> Iterator[Batch]:
    """Split a matrix into batches; its rows have no ids."""
    n_rows = X.shape[0]
    for begin in range(0, n_rows, BATCH_ROWS):
        end = min(begin + BATCH_ROWS, n_rows)
        yield Batch(X[begin:end], range(begin, end), [None] * (end - begin), end / n_rows)


def text_batches(reader: TableReader, suggester: Suggester) -> Iterator[Batch]:
    """Vectorize a table as it is read."""
    for records in record_batches(reader):
        texts = [record.text for record in records]
        X = suggester.matrix(texts)
        yield Batch(X, [record.row for record in records], [record.id for record in records], texts=texts)


def write_lines(
    file: IO[bytes],
    suggester: Suggester,
    batches: Iterable[Batch],
    query: Query,
    progress: Callable[[float], None] | None = None,
) -> None:
    """Predict and write one batch of rows at a time, so that a reader need not wait for the last."""
    for batch in batches:
        found = suggester.suggest(batch.X, query, batch.texts)
        file.write("".join(_lines(batch, found, suggester, query)).encode())
        file.flush()
        if progress is not None and batch.share is not None:
            progress(batch.share)


def _lines(batch: Batch, found: list[list[Suggestion]], suggester: Suggester, query: Query) -> Iterator[str]:
    for row, number, suggestions in zip(batch.rows, batch.ids, found, strict=True):
        labels = [_described(one, suggester, query) for one in suggestions]
        yield json.dumps({"row": row, "id": number, "labels": labels}, allow_nan=False) + "\n"


def _described(one: Suggestion, suggester: Suggester, query: Query) -> dict[str, Any]:
    """Return a suggestion as a JSON object; labels without names are described by their number."""
    fields: dict[str, Any] = {"label": int(one.tag)} if suggester.vectorizer is None else {"tag": one.tag}
    if suggester.tags.names is not None:
        fields["name"] = one.name
    fields |= one.numbers()
    if query.explain:
        fields["words"] = [{"word": word, "value": short(value)} for word, value in one.words]
    return fields
