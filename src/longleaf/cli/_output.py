"""What ``longleaf predict`` writes: the format by the name of the file, and the rows of tables."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import PurePath
from typing import Self

import typer

from longleaf._validation import DataError
from longleaf.cli._lines import Form, Lines
from longleaf.cli._suggestion_table import SuggestionTable
from longleaf.io._formats import table_format, without_compression
from longleaf.io.tables import TableReader
from longleaf.suggest import Query, Suggester

STANDARD_OUTPUT = "-"
UNDECIDED = ("", ".txt")
"""Suffixes of files that may hold anything: lines of JSON, unless another format is given."""
DELIMITERS = (",", ";")


class OutputFormat(StrEnum):
    """The formats of predictions."""

    jsonl = "jsonl"
    csv = "csv"
    tsv = "tsv"


class RowKind(StrEnum):
    """What a row of a table is."""

    record = "record"
    suggestion = "suggestion"


@dataclass(frozen=True)
class OutputShape:
    """The format of the output; of tables, what a row is, and the delimiter if it was given."""

    format: OutputFormat
    rows: RowKind = RowKind.record
    delimiter: str | None = None

    @classmethod
    def parse(
        cls, out: str, format: OutputFormat | None, rows: RowKind | None, delimiter: str | None
    ) -> Self:
        """Choose the format, and reject options that do not go with it."""
        chosen = output_format(out, format)
        if chosen == OutputFormat.jsonl and rows is not None:
            raise typer.BadParameter("--rows needs a table (.csv or .tsv); lines of JSON are records.")
        if delimiter is not None and (chosen != OutputFormat.csv or delimiter not in DELIMITERS):
            raise typer.BadParameter(
                f"--delimiter must be ',' or ';' and needs CSV; got {delimiter!r} for {chosen}."
            )
        return cls(chosen, rows or RowKind.record, "\t" if chosen == OutputFormat.tsv else delimiter)

    @property
    def is_table(self) -> bool:
        """Whether the output is a table."""
        return self.format != OutputFormat.jsonl

    def form(self, reader: TableReader | None, suggester: Suggester, query: Query, *, scores: bool) -> Form:
        """Return what turns predictions into output; `scores` is whether they differ from probabilities."""
        if not self.is_table:
            return Lines(suggester, query)
        by_suggestion = self.rows == RowKind.suggestion
        return SuggestionTable(
            reader, suggester, query, by_suggestion=by_suggestion, delimiter=self.delimiter, scores=scores
        )


def output_format(out: str, format: OutputFormat | None) -> OutputFormat:
    """Return the format of a file by its suffix, or as given; reject a name that says something else."""
    suffix = PurePath(without_compression(out)).suffix.lower()
    if out == STANDARD_OUTPUT or suffix in UNDECIDED:
        return format or OutputFormat.jsonl
    named = table_format(out)
    if named in tuple(OutputFormat):
        if format not in (None, named):
            raise DataError(f"{out} must have the suffix of its format; --format is {format}.")
        return OutputFormat(named)
    if named is not None or format is None:
        raise DataError(
            f"{out} must end in .jsonl, .csv or .tsv, as other formats are not written; got {suffix}."
        )
    return format
