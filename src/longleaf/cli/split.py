"""``longleaf split``."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
import typer

from longleaf.cli import _console, _options
from longleaf.cli._data import STANDARD_INPUT, check_new_file, load_data
from longleaf.cli._tables import TABLE, data_form, given_fields, open_table, report, table_suffix
from longleaf.io._writing import writing_table
from longleaf.io.xmlc import save_xmlc
from longleaf.split import split_rows
from longleaf.text.tags import TagCollector

SPLITS = ("train", "dev", "test")

Assignment = npt.NDArray[np.int8]
Choose = Callable[[Any], Assignment]


def split(
    data: _options.DataPath,
    out: Annotated[
        str,
        typer.Option(
            "-o",
            "--out",
            metavar="FOLDER",
            help="Folder for the splits; created if needed.",
            callback=_options.not_empty,
        ),
    ],
    dev: Annotated[
        float, typer.Option("--dev", min=0.0, max=1.0, metavar="SHARE", help="Share of rows for validation.")
    ] = 0.1,
    test: Annotated[
        float, typer.Option("--test", min=0.0, max=1.0, metavar="SHARE", help="Share of rows for testing.")
    ] = 0.1,
    keep: Annotated[
        int, typer.Option("--keep", min=0, metavar="N", help="Minimum rows that each tag keeps in training.")
    ] = 1,
    seed: Annotated[
        int,
        typer.Option("--seed", min=0, max=2**32 - 1, help="Random seed; the same seed gives the same split."),
    ] = 1,
    text: _options.TextFields = None,
    tags: _options.TagsField = None,
    id: _options.IdField = None,
    separator: _options.Separator = None,
    strict: _options.Strict = False,
    force: Annotated[bool, typer.Option("--force", help="Replace existing files.")] = False,
) -> None:
    """Split DATA into train, dev and test, keeping rare tags in training.

    The files have the format and all fields of DATA, and are read with the same
    options.
    """
    if data == STANDARD_INPUT:
        raise typer.BadParameter("DATA must be a file to be split, as it is read twice; got standard input.")
    if dev + test >= 1:
        raise typer.BadParameter(f"--dev and --test must sum to less than 1; got {dev:g} and {test:g}.")
    fields = given_fields(text=text, tags=tags, separator=separator, id=id)
    is_table = bool(fields) or data_form(data) == TABLE
    suffix = table_suffix(data) if is_table else "txt"
    paths = [Path(out) / f"{name}.{suffix}" for name in SPLITS]
    for path in paths if Path(out).exists() else ():
        check_new_file(str(path), force)

    def choose(Y: Any) -> Assignment:
        Path(out).mkdir(parents=True, exist_ok=True)  # only now that the data could be read
        return split_rows(Y, dev, test, keep=keep, random_state=seed)

    with _console.waiting(f"splitting {data}"):
        Y, assignment = (
            _split_table(data, fields, strict, paths, choose)
            if is_table
            else _split_xmlc(data, paths, choose)
        )
    for number, path in enumerate(paths):
        own = Y[np.flatnonzero(assignment == number)]
        typer.echo(f"{path}: {own.shape[0]} rows, {len(np.unique(own.indices))} tags")


def _split_xmlc(data: str, paths: list[Path], choose: Choose) -> tuple[Any, Assignment]:
    rows = load_data(data)
    assignment = choose(rows.Y)
    for number, path in enumerate(paths):
        own = np.flatnonzero(assignment == number)
        save_xmlc(path, rows.X[own], rows.Y[own])
    return rows.Y, assignment


def _split_table(
    data: str, fields: dict[str, Any], strict: bool, paths: list[Path], choose: Choose
) -> tuple[Any, Assignment]:
    """Read the tags, choose the splits, and read again to copy each row unchanged to its split."""
    with open_table(data, fields, strict=strict) as reader:
        Y = TagCollector.of(record.tags for record in reader).indicator()
    report(reader)
    assignment = choose(Y)
    assert reader.layout is not None  # set by reading
    with ExitStack() as stack:
        writes = [stack.enter_context(writing_table(path, reader.layout)) for path in paths]
        second = stack.enter_context(open_table(data, fields, again=True))
        for number, (_, row) in zip(assignment.tolist(), second.rows(), strict=True):
            writes[number](row)
    return Y, assignment
