"""Tables of texts as commands read them: told from XMLC files, and what was wrong with them said."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import Any

from longleaf._validation import DataError
from longleaf.cli import _console
from longleaf.cli._data import GAIN_LIMITS, STANDARD_INPUT, Data, open_source, parse_gain
from longleaf.estimator import LabelEstimator
from longleaf.io._fields import in_words
from longleaf.io._formats import guess_format, refuse_workbook
from longleaf.io.names import read_names
from longleaf.io.streams import read_chunks
from longleaf.io.tables import Record, TableReader, read_table, table_format
from longleaf.tagger import Tagger
from longleaf.text.tags import TagIndex, quoted

TABLE, XMLC, STORE = "table", "xmlc", "store"
XMLC_HEADER = re.compile(rb"\d+[ \t]+\d+[ \t]+\d+[ \t]*\r?(\n|$)")
HEAD_BYTES = 200
BATCH_TEXTS = 4096
BATCH_CHARACTERS = 1 << 24


def data_form(path: str) -> str | None:
    """Tell a table from an XMLC file or a store by name, or else by its first bytes; None if nothing says.

    Nothing is read of what can be read only once, such as standard input.
    """
    if path == STANDARD_INPUT:
        return None
    if Path(path).is_dir():
        return STORE
    if table_format(path) is not None:
        return TABLE
    if not Path(path).is_file():
        return None
    head = _head(path)
    refuse_workbook(head, path)
    if head.startswith((b"{", b"PAR1", b"\xef\xbb\xbf{")):
        return TABLE
    return XMLC if XMLC_HEADER.match(head) else None


def table_suffix(path: str) -> str:
    """Give the suffix for tables of the same format as this one."""
    return table_format(path) or guess_format(_head(path))


def refuse_nameless_table(path: str) -> None:
    """Refuse a file that begins with a word, as a CSV header does: nothing says that it holds texts."""
    if path == STANDARD_INPUT or not Path(path).is_file():
        return
    start = _head(path).removeprefix(b"\xef\xbb\xbf").lstrip()
    if start and not start[:1].isdigit():
        raise DataError(
            f"{path} must begin with rows features labels, as an XMLC file does, or be a table of texts: "
            "then name its fields by --text and --tags, or let its name end in .csv."
        )


def _head(path: str) -> bytes:
    with closing(read_chunks(path)) as chunks:
        return b"".join(islice(chunks, 2))[:HEAD_BYTES]  # the first piece is of a few bytes


def check_form_matches(path: str, model: LabelEstimator | Tagger, options: dict[str, Any]) -> None:
    """Refuse texts for a model of numbers, and the other way round."""
    form = data_form(path)
    if isinstance(model, Tagger):
        if form == XMLC:
            raise DataError(
                f"{path} must hold texts (JSONL, CSV, TSV or Parquet), as the model was trained on texts; "
                "it is an XMLC file."
            )
        return
    if form == TABLE:
        raise DataError(
            f"{path} must be an XMLC file, as the model was trained on features and not on texts; "
            "it is a table."
        )
    if options:
        named = next(iter(options))
        raise DataError(f"--{named} needs a model that was trained on texts; this one was not.")


def check_both_match(path: str, models: dict[str, LabelEstimator | Tagger], options: dict[str, Any]) -> None:
    """Refuse a model of texts beside one of features, and data that are not for them."""
    if len({isinstance(model, Tagger) for model in models.values()}) > 1:
        names = " and ".join(models)
        raise DataError(f"{names} must both be trained on texts, or both on features.")
    for model in models.values():
        check_form_matches(path, model, options)


def label_model(model: LabelEstimator | Tagger) -> LabelEstimator:
    """Give the model of labels that is behind a tagger, or the model itself."""
    return model.estimator_ if isinstance(model, Tagger) else model


def given(**options: Any) -> dict[str, Any]:
    """Leave out what was not given."""
    return {name: value for name, value in options.items() if value not in (None, [], False)}


def open_table(path: str, fields: dict[str, Any], *, again: bool = False, **options: Any) -> TableReader:
    """Begin to read a table, standard input included; say at its end, unless `again`, what looks wrong."""
    reader = read_table(open_source(path), **fields, **options)
    reader.at_end = None if again else _say_what_looks_wrong
    return reader


def _say_what_looks_wrong(reader: TableReader) -> None:
    name, read = reader.report.source, in_words(reader.text_fields or ())
    if reader.unread:
        unread = in_words(sorted(reader.unread))
        _console.note(
            f"{name}: the text is read from {read} and not from {unread}; --text FIELD says from where."
        )
    separator = reader.better_separator()
    if separator is not None:
        used = "they are not split" if reader.separator is None else f"they are split at {reader.separator!r}"
        _console.note(
            f"{name}: {separator.share:.0%} of the rows have {separator.text!r} in their tags, and {used}; "
            f"if it separates tags, give --separator '{separator.text}'."
        )


def report(reader: TableReader) -> None:
    """Say on standard error how much was read and what was wrong with it, the first offenders named."""
    found = reader.report
    used = "all used" if found.records == found.rows else f"{found.records} used"
    _console.note(f"{found.source}: {found.rows} rows, {used}")
    if found.problems:
        _console.note(found.summary())


class DigestedRecords:
    """The records of a reader, digested on their way; what was wrong is said when the last has gone by."""

    def __init__(self, reader: TableReader) -> None:
        self._reader = reader
        self._sha = hashlib.sha256()

    def __iter__(self) -> Iterator[Record]:
        for record in self._reader:
            for part in (record.text, *record.tags):  # a length before each: no two tables look the same
                data = part.encode("utf-8", "surrogatepass")
                self._sha.update(len(data).to_bytes(8, "little") + data)
            self._sha.update(len(record.tags).to_bytes(8, "little"))
            yield record
        report(self._reader)

    def digest(self) -> str:
        """Give a SHA-256 over texts and tags; the same for a table in any format or compression."""
        return f"sha256:{self._sha.hexdigest()}"

    def origin(self) -> dict[str, Any]:
        """Say where a model of these records came from."""
        found = self._reader.report
        return {"data": found.source, "data_digest": self.digest(), "faults": dict(found.counts)}


def record_batches(reader: TableReader) -> Iterator[list[Record]]:
    """Give records some thousands, or some megabytes of text, at a time."""
    batch: list[Record] = []
    characters = 0
    for record in reader:
        batch.append(record)
        characters += len(record.text)
        if len(batch) == BATCH_TEXTS or characters >= BATCH_CHARACTERS:
            yield batch
            batch, characters = [], 0
    if batch:
        yield batch


def load_judged(tagger: Tagger, path: str, fields: dict[str, Any], strict: bool) -> Data:
    """Read texts and true tags; tags that training never saw are the columns after those of the model."""
    name, X, tags = read_judged(tagger, path, fields, strict)
    return Data(name, X, tagger.transform_tags(tags, unseen="add"))


def read_judged(
    tagger: Tagger, path: str, fields: dict[str, Any], strict: bool
) -> tuple[str, Any, list[list[str]]]:
    """Read a table as a tagger does: what messages call it, the features, and the true tags."""
    tags: list[list[str]] = []
    with open_table(path, tagger.fields_ | fields, strict=strict) as reader:
        X = tagger.vectorizer_.transform(_texts(reader, tags))
    report(reader)
    return reader.report.source, X, tags


def _texts(reader: TableReader, tags: list[list[str]]) -> Iterator[str]:
    for record in reader:
        tags.append(record.tags)
        yield record.text


def load_tag_gain(path: str, tags: TagIndex) -> dict[str, float]:
    """Read what tags are worth from a file of a tag and a number per line."""
    gains = {}
    for word, text in read_names(open_source(path), "a number").items():
        gain = parse_gain(text)
        if gain is None:
            raise DataError(f"{path}: a gain {GAIN_LIMITS}; {quoted(word)} has {quoted(text)}.")
        if word not in tags:
            raise DataError(
                f"{path} must name tags that occur in training; {quoted(word)} {tags.unusable(word)}."
            )
        gains[word] = gain
    return gains
