"""Reading tables of texts: detecting the format, and reporting faulty rows."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import Any

from longleaf._validation import DataError
from longleaf.cli import _console
from longleaf.cli._data import GAIN_LIMITS, STANDARD_INPUT, Data, load_gain, open_source, parse_gain
from longleaf.estimator import LabelEstimator
from longleaf.io._fields import in_words
from longleaf.io._formats import ARCHIVE, guess_format, refuse_workbook
from longleaf.io.pairs import read_pairs
from longleaf.io.streams import read_chunks
from longleaf.io.tables import Record, TableReader, read_table, table_format
from longleaf.suggest import Gain, Suggester
from longleaf.tagger import Tagger, suggester_of
from longleaf.text.fields import Text
from longleaf.text.tags import TagIndex, quoted

TABLE, XMLC, STORE = "table", "xmlc", "store"
XMLC_HEADER = re.compile(rb"\d+[ \t]+\d+[ \t]+\d+[ \t]*\r?(\n|$)")
HEAD_BYTES = 200
BATCH_TEXTS = 4096
BATCH_CHARACTERS = 1 << 24


def data_form(path: str) -> str | None:
    """Return whether a path is a table, an XMLC file or a store; None if unknown.

    The name decides, or else the first bytes. Nothing is read from a source that can be read only once, such
    as standard input.
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
    if head.startswith((b"{", b"PAR1", ARCHIVE, b"\xef\xbb\xbf{")):
        return TABLE
    return XMLC if XMLC_HEADER.match(head) else None


def table_suffix(path: str) -> str:
    """Return the suffix of files with rows of a table; those of a workbook are written as CSV."""
    found = table_format(path) or guess_format(_head(path))
    return "csv" if found == "xlsx" else found


def refuse_nameless_table(path: str) -> None:
    """Reject a file that starts with a word, as a CSV header does, but is not declared a table."""
    if path == STANDARD_INPUT or not Path(path).is_file():
        return
    start = _head(path).removeprefix(b"\xef\xbb\xbf").lstrip()
    if start and not start[:1].isdigit():
        raise DataError(
            f"{path} must begin with rows, features and labels, as an XMLC file does, or be a table of texts:"
            " then name its fields with --text and --tags, or give it a name that ends in .csv."
        )


def _head(path: str) -> bytes:
    with closing(read_chunks(path)) as chunks:
        return b"".join(islice(chunks, 2))[:HEAD_BYTES]  # the first chunk has only a few bytes


def check_form_matches(path: str, model: LabelEstimator | Tagger, options: dict[str, Any]) -> None:
    """Reject texts for a model of features, and features for a model of texts."""
    form = data_form(path)
    if isinstance(model, Tagger):
        if form == XMLC:
            raise DataError(
                f"{path} must hold texts (JSONL, CSV, TSV, Parquet or Excel), as the model was trained on "
                "texts; got an XMLC file."
            )
        return
    if form == TABLE:
        raise DataError(
            f"{path} must be an XMLC file, as the model was trained on features and not on texts; "
            "got a table."
        )
    if options:
        named = next(iter(options))
        raise DataError(f"--{named} needs a model that was trained on texts; this one was not.")


def check_both_match(path: str, models: dict[str, LabelEstimator | Tagger], options: dict[str, Any]) -> None:
    """Reject a model of texts together with one of features, and data that do not fit both."""
    if len({isinstance(model, Tagger) for model in models.values()}) > 1:
        names = " and ".join(models)
        raise DataError(f"{names} must both be trained on texts, or both on features.")
    for model in models.values():
        check_form_matches(path, model, options)


def label_model(model: LabelEstimator | Tagger) -> LabelEstimator:
    """Return the estimator inside a tagger, or the model itself."""
    return model.estimator_ if isinstance(model, Tagger) else model


def given(**options: Any) -> dict[str, Any]:
    """Return the options that were given."""
    return {name: value for name, value in options.items() if value not in (None, [], False)}


def given_fields(**options: Any) -> dict[str, Any]:
    """Return the given options by which a table is read; the field of an id that is given must be there."""
    return given(**options, needs_id=options.get("id") is not None)


def open_table(path: str, fields: dict[str, Any], *, again: bool = False, **options: Any) -> TableReader:
    """Open a table (or standard input) for reading; at its end, unless `again`, report what looks wrong."""
    reader = read_table(open_source(path), **fields, **options)
    reader.at_end = None if again else _report_suspicions
    return reader


def _report_suspicions(reader: TableReader) -> None:
    name, read = reader.report.source, in_words(reader.text_fields or ())
    if reader.unread:
        unread = in_words(sorted(reader.unread))
        _console.note(
            f"{name}: the text is read from {read} and not from {unread}; choose the field with --text FIELD."
        )
    separator = reader.better_separator()
    if separator is not None:
        used = "they are not split" if reader.separator is None else f"they are split at {reader.separator!r}"
        _console.note(
            f"{name}: {separator.share:.0%} of the rows have {separator.text!r} in their tags, and {used}; "
            f"if it separates tags, use --separator '{separator.text}'."
        )


def report(reader: TableReader) -> None:
    """Report on standard error how much was read, and the first examples of each fault."""
    found = reader.report
    used = "all used" if found.records == found.rows else f"{found.records} used"
    _console.note(f"{found.source}: {found.rows} rows, {used}")
    if found.problems:
        _console.note(found.summary())


class DigestedRecords:
    """Iterate over the records of a reader and digest them; faults are reported after the last one."""

    def __init__(self, reader: TableReader) -> None:
        self._reader = reader
        self._sha = hashlib.sha256()

    def __iter__(self) -> Iterator[Record]:
        for record in self._reader:
            for field in (*record.fields.values(), *record.tags):  # lengths make the digest unambiguous
                data = field.encode("utf-8", "surrogatepass")
                self._sha.update(len(data).to_bytes(8, "little") + data)
            self._sha.update(len(record.tags).to_bytes(8, "little"))
            yield record
        report(self._reader)

    def digest(self) -> str:
        """Return the SHA-256 of texts and tags; it does not depend on format or compression."""
        return f"sha256:{self._sha.hexdigest()}"

    def origin(self) -> dict[str, Any]:
        """Return the provenance of a model trained on these records."""
        found = self._reader.report
        return {"data": found.source, "data_digest": self.digest(), "faults": dict(found.counts)}


def record_batches(
    reader: TableReader, most: int | None = None
) -> Iterator[list[tuple[Record, dict[str, Any]]]]:
    """Yield batches of some thousand records (or ``most``) or megabytes of text, with all their fields."""
    full = BATCH_TEXTS if most is None else min(BATCH_TEXTS, most)
    batch: list[tuple[Record, dict[str, Any]]] = []
    characters = 0
    for record, fields in reader.rows():
        batch.append((record, fields))
        characters += len(record.text)
        if len(batch) == full or characters >= BATCH_CHARACTERS:
            yield batch
            batch, characters = [], 0
    if batch:
        yield batch


def load_labelled_texts(tagger: Tagger, path: str, fields: dict[str, Any], strict: bool) -> Data:
    """Read texts and true tags; tags that training never saw get columns after those of the model."""
    name, X, tags = read_labelled_texts(tagger, path, fields, strict)
    return Data(name, X, tagger.transform_tags(tags, unseen="add"))


def read_labelled_texts(
    tagger: Tagger, path: str, fields: dict[str, Any], strict: bool
) -> tuple[str, Any, list[list[str]]]:
    """Read a table as a tagger does; return its name in messages, the features and the true tags."""
    suggester = suggester_of(tagger)
    return read_labelled(path, tagger.fields_ | fields, strict, suggester.rows, suggester.fields)


def read_labelled(
    path: str,
    fields: dict[str, Any],
    strict: bool,
    convert: Callable[[Iterable[Text]], Any],
    names: list[str],
) -> tuple[str, Any, list[list[str]]]:
    """Read a table for a model; return its name in messages, the features and the true tags.

    Parameters
    ----------
    path : str
    fields, strict
        How to read the table.
    convert : callable
        Turns texts into features.
    names : list of str
        The fields of the model; none for plain texts.
    """
    tags: list[list[str]] = []
    with open_table(path, fields, strict=strict) as reader:
        X = convert(_texts(reader, tags, names))
    report(reader)
    return reader.report.source, X, tags


def _texts(reader: TableReader, tags: list[list[str]], fields: list[str]) -> Iterator[Text]:
    for record in reader:
        tags.append(record.tags)
        yield record.content(fields)


def load_gains(path: str, suggester: Suggester) -> Gain:
    """Read the gains of a model's labels: one number per line, or tags and numbers for a model of texts."""
    if suggester.vectorizer is None:
        return load_gain(path, suggester.model.n_labels_)
    return load_tag_gain(path, suggester.tags)


def load_tag_gain(path: str, tags: TagIndex) -> dict[str, float]:
    """Read the gains of tags from a file with a tag and a number per line."""
    gains = {}
    for word, text in read_pairs(open_source(path), "a number").items():
        gain = parse_gain(text)
        if gain is None:
            raise DataError(f"{path}: a gain {GAIN_LIMITS}; {quoted(word)} has {quoted(text)}.")
        if word not in tags:
            raise DataError(f"{path} must name tags of the model; {quoted(word)} {tags.unusable(word)}.")
        gains[word] = gain
    return gains
