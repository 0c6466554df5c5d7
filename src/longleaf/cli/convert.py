"""``longleaf convert``."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Iterator
from typing import Annotated, Any

import typer

from longleaf._validation import DataError
from longleaf.cli import _console, _options
from longleaf.cli._data import STANDARD_INPUT, check_new_model, open_source
from longleaf.cli._groups import takes
from longleaf.cli._tables import DigestedRecords, given, open_table
from longleaf.cli._texts import TextOptions, text_options
from longleaf.cli._training import is_table
from longleaf.io.storage import DATA, folder_bytes, read_manifest
from longleaf.io.store import convert_xmlc
from longleaf.io.tables import Record
from longleaf.store import convert_texts
from longleaf.text.vectorizer import TextVectorizer


@takes(texts=text_options)
def convert(
    data: Annotated[
        list[str],
        typer.Argument(
            metavar="DATA...",
            help="Files as for `longleaf train`, all XMLC or all tables of texts; their rows are joined.",
        ),
    ],
    out: Annotated[
        str,
        typer.Option("-o", "--out", metavar="STORE", help="Folder to write.", callback=_options.not_empty),
    ],
    *,
    texts: TextOptions,
    threads: _options.Threads = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing store.")] = False,
) -> None:
    """Convert DATA to a memory-mapped store, for training on data larger than memory."""
    start = time.perf_counter()
    check_new_model(out, force, DATA)
    if _all_tables(data, texts.given):
        with open_table(data[0], texts.fields, again=True) as reader:
            vectorizer = texts.vectorizer(-1 if threads is None else threads, reader)
        _convert_tables(_Tables(data, texts.fields, texts.strict), vectorizer, out, force)
    else:
        with _console.waiting("converting"):
            convert_xmlc([open_source(path) for path in data], out, force=force)
    found = read_manifest(out).meta
    sizes = f"{found['rows']} rows, {found['features']} features, {found['labels']} labels"
    seconds, memory = time.perf_counter() - start, _console.in_words(_console.peak_memory())
    size = _console.in_words(folder_bytes(out))
    typer.echo(f"{out}: {sizes}, {size}, converted in {seconds:.1f} s, peak memory {memory}")


def _all_tables(paths: list[str], about_texts: dict[str, Any]) -> bool:
    kinds = {is_table(path, about_texts) for path in paths}
    if len(kinds) > 1:
        raise DataError(f"DATA must be XMLC files only or tables only; {', '.join(paths)} are both.")
    if kinds == {True} and STANDARD_INPUT in paths:
        raise DataError("DATA must be files if they hold texts, as they are read twice; got standard input.")
    return kinds == {True}


class _Tables:
    """The records of several tables, read twice; the first pass computes the digest and reports faults."""

    def __init__(self, paths: list[str], fields: dict[str, Any], strict: bool) -> None:
        self._paths, self._options = paths, fields
        self._strict = strict
        self._origins: list[dict[str, Any]] = []
        self._fields: dict[str, Any] = {}

    def records(self) -> Iterator[Record]:
        first = not self._origins
        for path in self._paths:
            # all tables are read like the first: a model has the same text fields for every table
            fields = given(text=self._fields.get("text")) | self._options
            with open_table(path, fields, again=not first, strict=self._strict) as reader:
                if not first:
                    yield from reader
                    continue
                digested = DigestedRecords(reader)
                yield from digested
                self._origins.append(digested.origin())
                self._fields = self._fields or reader.fields

    def meta(self) -> dict[str, Any]:
        """Return the provenance of the rows, for the models trained on them."""
        if len(self._origins) == 1:
            return {"fields": self._fields, "origin": self._origins[0]}
        faults: dict[str, int] = {}
        for origin in self._origins:
            for kind, count in origin["faults"].items():
                faults[kind] = faults.get(kind, 0) + count
        digests = "".join(origin["data_digest"] for origin in self._origins)
        origin = {
            "data": ", ".join(origin["data"] for origin in self._origins),
            "data_digest": f"sha256:{hashlib.sha256(digests.encode()).hexdigest()}",
            "faults": faults,
        }
        return {"fields": self._fields, "origin": origin}


def _convert_tables(
    tables: _Tables, vectorizer: TextVectorizer, out: str | os.PathLike[str], force: bool
) -> None:
    with _console.waiting("converting"):
        convert_texts(tables.records, out, vectorizer, tables.meta, force=force)
