"""Predictions as a table for spreadsheet programs: a row per record, or a row per suggestion."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import count

from longleaf.cli._lines import Batch, Found
from longleaf.io.cells import cell, neutral
from longleaf.io.tables import TableReader
from longleaf.suggest import Query, Suggester, Suggestion, short

BYTE_ORDER_MARK = "\ufeff"
"""Without it, Excel takes UTF-8 for the encoding of old Windows programs."""

GERMAN = ";"
"""The delimiter of Excel where numbers have a decimal comma, as for write.csv2 of R."""


class SuggestionTable:
    """A table of predictions as CSV or TSV.

    With a row per record, the columns of the input are followed by one group of columns for each suggestion;
    with a row per suggestion, the row number and the id are followed by the rank and one group of columns. A
    record without suggestions has one row in either form.

    Parameters
    ----------
    reader : TableReader or None
        The table of records; None for rows of features, which have no columns.
    suggester : Suggester
    query : Query
    by_suggestion : bool
        Whether each suggestion has a row of its own.
    delimiter : str, optional
        By default that of the input if it is CSV, otherwise a comma.
    scores : bool
        Whether scores differ from probabilities.

    Attributes
    ----------
    unwritten : Counter of str
        Fields of JSONL that the table has no columns for, as none of the first rows has them; in how many
        rows they were not empty.
    """

    def __init__(
        self,
        reader: TableReader | None,
        suggester: Suggester,
        query: Query,
        *,
        by_suggestion: bool,
        delimiter: str | None,
        scores: bool,
    ) -> None:
        self._reader = reader
        self._by_suggestion = by_suggestion
        self._delimiter = delimiter
        self._groups = min(query.k, suggester.model.n_labels_)
        tag = "label" if suggester.vectorizer is None else "tag"
        named = ["name"] if suggester.tags.names is not None else []
        score = ["score"] if scores or by_suggestion else []
        self._group = [tag, *named, *score, "probability", *(["words"] if query.explain else [])]
        self._columns: list[str] | None = None
        self._known: set[str] = set()
        self._has_id = False
        self.unwritten: Counter[str] = Counter()

    def text(self, batch: Batch, found: Found) -> tuple[str, int]:
        """Return the rows of a batch, after the header if it is the first, and their number."""
        head = self._head(batch) if self._columns is None else ""
        rows = [row for place, one in enumerate(found) for row in self._rows(batch, place, one)]
        return head + self._csv(rows), len(rows)

    def end(self) -> str:
        """Return the header if there was no batch."""
        return self._head(None) if self._columns is None else ""

    def _head(self, batch: Batch | None) -> str:
        """Choose the columns, and return the header."""
        layout = None if self._reader is None else self._reader.layout
        if layout is None:
            columns = ["row"]
        elif layout.format == "jsonl":  # its rows may have any fields; the first batch has nearly all
            columns = list(dict.fromkeys(name for fields in batch.fields for name in fields)) if batch else []
        else:
            columns = layout.columns
        if self._delimiter is None:
            self._delimiter = layout.delimiter if layout is not None and layout.delimiter in ",;" else ","
        self._columns, self._known = columns, set(columns)
        if self._by_suggestion:
            id_field = None if self._reader is None else self._reader.id_field
            self._has_id = id_field in columns
            kept = [id_field] if self._has_id and id_field is not None else []
            head = without_clash(["row"], kept) + kept + without_clash(["rank", *self._group], ["row", *kept])
        else:
            places = range(1, self._groups + 1)
            new = [f"{name}_{place}" for place in places for name in self._group]
            head = columns + without_clash(new, columns)
        return BYTE_ORDER_MARK + self._csv([[neutral(name) for name in head]])

    def _rows(self, batch: Batch, place: int, found: Sequence[Suggestion]) -> Iterator[list[str]]:
        groups = [self._cells(one) for one in found]
        empty = [""] * len(self._group)
        if self._by_suggestion:
            about = [str(batch.rows[place])] + ([cell(batch.ids[place])] if self._has_id else [])
            for rank, group in enumerate(groups, start=1):
                yield [*about, str(rank), *group]
            if not groups:
                yield [*about, "", *empty]
            return
        groups += [empty] * (self._groups - len(groups))
        yield self._originals(batch, place) + [value for group in groups for value in group]

    def _originals(self, batch: Batch, place: int) -> list[str]:
        """Return the cells of the input."""
        if self._reader is None:
            return [str(batch.rows[place])]
        assert self._columns is not None
        fields = batch.fields[place]
        if not fields.keys() <= self._known:
            more = (name for name in fields if name not in self._known)
            self.unwritten.update(name for name in more if cell(fields[name]))
        return [cell(fields.get(name)) for name in self._columns]

    def _cells(self, one: Suggestion) -> list[str]:
        values = {name: self._number(number) for name, number in one.numbers().items()}
        words = "; ".join(f"{word} {self._number(short(value))}" for word, value in one.words)
        texts = {"tag": one.tag, "label": one.tag, "name": one.name, "words": words}
        values |= {name: neutral(text) for name, text in texts.items()}
        return [values[name] for name in self._group]

    def _number(self, number: float) -> str:
        return str(number).replace(".", ",") if self._delimiter == GERMAN else str(number)

    def _csv(self, rows: list[list[str]]) -> str:
        assert self._delimiter is not None
        file = io.StringIO(newline="")
        csv.writer(file, delimiter=self._delimiter).writerows(rows)
        return file.getvalue()


def without_clash(names: list[str], taken: Sequence[str]) -> list[str]:
    """Return names of new columns; all of them get a prefix if one of them is taken.

    Examples
    --------
    >>> without_clash(["tag_1", "probability_1"], ["id", "tag_1"])
    ['suggested_tag_1', 'suggested_probability_1']
    """
    prefixes = ("" if n == 0 else "suggested_" if n == 1 else f"suggested{n}_" for n in count())
    ways = ([prefix + name for name in names] for prefix in prefixes)
    return next(way for way in ways if not set(way) & set(taken))
