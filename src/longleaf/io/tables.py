"""Reading texts and tags from JSONL, CSV, TSV, Parquet and Excel, one record at a time."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import ExitStack, closing
from typing import Any, NamedTuple, Self

from longleaf._validation import DataError, check_choice, check_count
from longleaf.io._csv import csv_rows
from longleaf.io._embedding import parsed_embedding
from longleaf.io._fields import (
    DEFAULT_TEXT,
    as_tags,
    as_text,
    default_text,
    found_instead,
    in_words,
    wrong_type,
)
from longleaf.io._formats import ARCHIVE, FORMATS, guess_format, refuse_workbook, table_format
from longleaf.io._lines import LONGEST_LINE, peek
from longleaf.io._report import ReadReport
from longleaf.io._rows import Layout, Row, json_rows, parquet_rows
from longleaf.io._separators import Separator, SeparatorWatch
from longleaf.io._workbook import workbook_rows
from longleaf.io.streams import Source, read_chunks, source_name

__all__ = ["Record", "TableReader", "read_table", "table_format"]

CSV_SEPARATOR = ";"
"""The default separator of tags in CSV, TSV and Excel, which have no lists."""
LANGUAGE = "lang"
"""The field of a record that says its language."""


class Record(NamedTuple):
    """Fields of text, with their tags.

    Attributes
    ----------
    id : str or None
    fields : dict of str to str
        The text of each field; an empty field is an empty string.
    tags : list of str
    row : int
        Counts all rows of the table from 0, including skipped ones.
    lang : str or None
        The language, as the field ``lang`` says.
    embedding : (str, object) or None
        The field of an embedding, and what stands in it.
    """

    id: str | None
    fields: dict[str, str]
    tags: list[str]
    row: int
    lang: str | None = None
    embedding: tuple[str, Any] | None = None

    @property
    def text(self) -> str:
        """The text of all fields, joined by a space."""
        return " ".join(text for text in self.fields.values() if text)

    def content(self, names: Sequence[str] | None = None) -> str | dict[str, Any]:
        """Return what a model reads: the fields with language and embedding, or else the text.

        Parameters
        ----------
        names : sequence of str, optional
            What the model calls the fields; a model without fields reads the text. Fields with other names
            are taken in the order of the model's own.
        """
        beside: dict[str, Any] = {LANGUAGE: self.lang} if self.lang else {}
        beside |= [] if self.embedding is None else [self.embedding]
        if names is None:
            read = self.fields if len(self.fields) > 1 or beside else None
        elif not names:
            read = {"text": self.text} if beside else None
        elif set(self.fields) <= set(names):
            read = self.fields
        elif len(self.fields) == 1:
            read = {names[-1]: self.text}
        elif len(names) == len(self.fields):
            read = dict(zip(names, self.fields.values(), strict=True))
        else:
            raise DataError(
                f"--text must name one field, or {len(names)} in the order of the model's own "
                f"({', '.join(names)}); got {', '.join(self.fields)}."
            )
        return self.text if read is None else read | beside


def read_table(
    source: Source,
    text: str | Sequence[str] | None = None,
    tags: str | None = "tags",
    id: str | None = "id",
    separator: str | None = None,
    strict: bool = False,
    format: str | None = None,
    *,
    keep_untagged: bool = False,
    keep_textless: bool = False,
    needs_id: bool = False,
    longest_line: int = LONGEST_LINE,
    embedding: str | None = None,
) -> TableReader:
    """Read texts and tags, in memory that does not grow with them.

    A row is skipped if it cannot be read, is longer than ``longest_line``, has no text, has no tags, or has
    objects, nested lists or booleans as text or tags (numbers become strings). It is kept if it is not UTF-8
    (and then read as Windows-1252), lacks some of several text fields, or repeats an id. Both are counted in
    the reader's ``report``.

    Parameters
    ----------
    source : str, path-like or binary file object
        The file; gzip, xz and bzip2 data are recognised by their first bytes.
    text : str or list of str, optional
        The fields of text. By default those of title, abstract and
        text that the first row has; the reader's ``unread`` lists others of these that later rows have.
    tags : str or None
        The field of the tags: a list, or one string. None to read no tags.
    id : str or None
        The field of the id; rows need not have one.
    separator : str, optional
        The separator of tags in a string. By default, a string is one tag, except in CSV, TSV and
        Excel, which have no lists: there it is split at semicolons.
    strict : bool
        Whether the first problem is a DataError.
    format : {"jsonl", "csv", "tsv", "parquet", "xlsx"}, optional
        By default detected from the suffix of the name, or else from the content.
    keep_untagged : bool
        Whether rows without tags are neither skipped nor counted.
    keep_textless : bool
        Whether rows without text are kept, with an empty text; they are counted as well.
    needs_id : bool
        Whether a table must have the column of the id; rows without an id are then counted.
    longest_line : int
        Maximum bytes of a line.
    embedding : str, optional
        The field of an embedding, which records keep beside their texts.

    Returns
    -------
    TableReader
        An iterator of `Record`.

    Raises
    ------
    DataError
        If the file cannot be read or lacks a column, or at its end if no row could be used.
    """
    return TableReader(
        source,
        [text] if isinstance(text, str) else None if text is None else list(text),
        tags,
        id,
        separator,
        ReadReport(source_name(source), strict=strict),
        format if format is None else check_choice(format, "format", FORMATS),
        keep_untagged,
        check_count(longest_line, "longest_line"),
        keep_textless=keep_textless,
        needs_id=needs_id,
        embedding=embedding,
    )


Rows = Generator[tuple[Record, dict[str, Any]], None, None]
"""Records, each with all the fields of its row."""


class TableReader:
    """The records of a table, read lazily.

    Attributes
    ----------
    report : ReadReport
        The problems found so far.
    text_fields : list of str or None
        The fields of the text; if not given, None until the first record is read.
    tags_field, id_field, separator : str or None
        As given.
    layout : Layout or None
        The layout of the table; None until the first record is read.
    unread : set of str
        Those of title, abstract and text that were not empty so far, but are not read.
    at_end : callable or None
        Called with the reader when all rows have been read.
    """

    def __init__(
        self,
        source: Source,
        text_fields: list[str] | None,
        tags_field: str | None,
        id_field: str | None,
        separator: str | None,
        report: ReadReport,
        format: str | None,
        keep_untagged: bool,
        longest_line: int,
        *,
        keep_textless: bool,
        needs_id: bool,
        embedding: str | None,
    ) -> None:
        self.report = report
        self.text_fields = text_fields
        self.tags_field = tags_field
        self.id_field = id_field
        self.separator = separator
        self.layout: Layout | None = None
        self.unread: set[str] = set()
        self.at_end: Callable[[TableReader], None] | None = None
        self._separators = SeparatorWatch()
        self._keep_untagged = keep_untagged
        self._keep_textless = keep_textless
        self._needs_id = needs_id
        self._embedding, self._width = embedding, 0
        # 64-bit hashes instead of ids: a false alarm is unlikely below a billion rows
        self._ids: set[int] = set()
        self._files = ExitStack()
        self._chunks = self._files.enter_context(closing(read_chunks(source)))
        self._records = self._read(source, format, longest_line)

    @property
    def fields(self) -> dict[str, Any]:
        """The fields as arguments of `read_table`, to be stored in a model."""
        return {
            "text": self.text_fields,
            "tags": self.tags_field,
            "id": self.id_field,
            "separator": self.separator,
        } | ({} if self._embedding is None else {"embedding": self._embedding})

    def better_separator(self) -> Separator | None:
        """Return a separator that explains the tags so far better than the one in use, or None."""
        return self._separators.better_than(self.separator)

    def settle_text(self) -> list[str]:
        """Return the fields of the text; if they were not given, read the first record, which decides."""
        if self.text_fields is None:
            self._records = self._after(next(self._records), self._records)
        assert self.text_fields is not None
        return self.text_fields

    def rows(self) -> Iterator[tuple[Record, dict[str, Any]]]:
        """Yield the records with all fields of their rows, unchanged."""
        return self._records

    def close(self) -> None:
        """Close the file if it was opened here; reading to the end also closes it."""
        self._records.close()
        self._files.close()

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Record:
        return next(self._records)[0]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _read(self, source: Source, format: str | None, longest: int) -> Rows:
        try:
            for row in self._open(source, format, longest):
                number = self.report.rows
                self.report.rows += 1
                if row.fields is None:
                    continue
                record = self._record(row.place, row.fields, number)
                if record is not None:
                    self.report.records += bool(record.text.strip())
                    yield record, row.fields
        finally:
            self._files.close()
        if not self.report.records:
            self._raise_unusable()
        if self.at_end is not None:
            self.at_end(self)

    @staticmethod
    def _after(first: tuple[Record, dict[str, Any]], rest: Rows) -> Rows:
        yield first
        yield from rest

    def _open(self, source: Source, format: str | None, longest: int) -> Iterator[Row]:
        head, chunks = peek(self._chunks)
        refuse_workbook(head, self.report.source)
        format = format or table_format(source) or guess_format(head)
        if head.startswith(ARCHIVE) != (format == "xlsx"):
            if format == "xlsx":
                raise DataError(f"{self.report.source} must be an Excel workbook; got other content.")
            format = "xlsx"  # whatever it is called, it is no text
        if format == "jsonl":
            if head.lstrip().startswith(b"["):
                name = self.report.source
                raise DataError(f"{name} must hold one JSON object per line; got an array.")
            self.layout = Layout("jsonl", [])
            return json_rows(chunks, longest, self.report)
        if format == "parquet":
            self.layout, rows = parquet_rows(source, chunks, self.report, self._files)
        elif format == "xlsx":
            self.layout, rows = workbook_rows(source, chunks, self.report, self._files)
            self.separator = self.separator or CSV_SEPARATOR
        else:
            self.layout, rows = csv_rows(chunks, "\t" if format == "tsv" else None, longest, self.report)
            self.separator = self.separator or CSV_SEPARATOR
        self._check_columns(self.layout.columns)
        return rows

    def _check_columns(self, columns: list[str]) -> None:
        twice = next((name for name in columns if columns.count(name) > 1), None)
        if twice is not None:
            raise DataError(f"{self.report.source} must name each column once; got {twice!r} twice.")
        self.text_fields = self.text_fields or default_text(columns, self.report.source)
        needed = (self.tags_field, self.id_field if self._needs_id else None, self._embedding)
        for name in (*self.text_fields, *needed):
            if name is not None and name not in columns:
                raise DataError(
                    f"{self.report.source} must have a column {name!r}; got {', '.join(columns)}."
                )

    def _record(self, place: str, fields: dict[str, Any], number: int) -> Record | None:
        if self.text_fields is None:
            self.text_fields = default_text(list(fields), self.report.source)
        for name in (*self.text_fields, self.tags_field):
            wrong = None if name is None else wrong_type(fields.get(name))
            if wrong is not None:
                what = f"must have a string, or a list of strings, in {name!r}; got {wrong}."
                self.report.add("wrong type", place, what)
                return None
        texts = {name: as_text(fields.get(name)) or "" for name in self.text_fields}
        missing = [name for name in self.text_fields if fields.get(name) is None]
        if not any(text.strip() for text in texts.values()):
            found = found_instead(fields, self.text_fields)
            kind = "textless" if self._keep_textless else "no text"
            self.report.add(kind, place, f"must have text in {in_words(self.text_fields)}; {found}.")
            if not self._keep_textless:
                return None
        elif missing:
            self.report.add("missing field", place, f"must have the field {missing[0]!r}; got none.")
        self._note_unread(fields)
        identity = as_text(fields.get(self.id_field)) if self.id_field is not None else None
        if identity is not None:
            self._note_id(identity, place)
        elif self._needs_id and self.id_field is not None:
            found = found_instead(fields, [self.id_field])
            self.report.add("no id", place, f"must have an id in {self.id_field!r}; {found}.")
        tags: list[str] = []
        if self.tags_field is not None:
            self._separators.see(fields.get(self.tags_field))
            tags = as_tags(fields.get(self.tags_field), self.separator)
            if not tags and not self._keep_untagged:
                found = found_instead(fields, [self.tags_field])
                self.report.add("no tags", place, f"must have tags in {self.tags_field!r}; {found}.")
                return None
        lang = None if LANGUAGE in texts else as_text(fields.get(LANGUAGE))
        embedding: tuple[str, Any] | None = None
        if self._embedding is not None:
            vector, fault = parsed_embedding(fields.get(self._embedding), self._width)
            embedding, self._width = (self._embedding, vector), self._width or len(vector or ())
            if fault:
                what = f"must have {fault[0]} in {self._embedding!r}; got {fault[1]}."
                self.report.add("no embedding", place, what)
        return Record(identity, texts, tags, number, lang, embedding)

    def _note_unread(self, fields: dict[str, Any]) -> None:
        read = (*(self.text_fields or ()), self.tags_field, self.id_field)
        self.unread.update(name for name in DEFAULT_TEXT if name not in read and fields.get(name))

    def _note_id(self, identity: str, place: str) -> None:
        digest = hash(identity)
        if digest in self._ids:
            self.report.add("duplicate id", place, f"must have a unique id; got {identity!r} again.")
        self._ids.add(digest)

    def _raise_unusable(self) -> None:
        if not self.report.rows:
            raise DataError(f"{self.report.source} must have at least one row; got none.")
        offenders = [sentence for named in self.report.first.values() for sentence in named]
        raise DataError(f"None of the {self.report.rows} rows could be used. {offenders[0]}")
