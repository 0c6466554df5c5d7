"""Input of ``longleaf report``: one model or two, and rows of features or texts."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from longleaf._validation import DataError
from longleaf.cli._data import check_features_match, check_labels_match, load_data
from longleaf.cli._tables import label_model, open_table
from longleaf.cli._tables import report as say_what_was_wrong
from longleaf.io.tables import Record
from longleaf.propensity import Constants
from longleaf.report import Problem, Side
from longleaf.tagger import Tagger
from longleaf.text.tags import TagCollector


def read_features(
    models: list[Any],
    titles: list[str],
    path: str,
    names: Mapping[str, str],
    constants: Constants,
    places: tuple[int, ...],
) -> Problem:
    """Read an XMLC file for models of features; labels are called by number unless `names` has a name."""
    data = load_data(path)
    for model in models:
        check_features_match(data, model)
        check_labels_match(data, model)
    number = np.arange(models[0].n_labels_)
    sides = [Side(title, model, data.X, number) for title, model in zip(titles, models, strict=True)]
    labels = [names.get(str(label), f"label {label}") for label in number]
    return Problem(
        Path(data.name).name, tuple(sides), data.Y, labels, [None] * data.Y.shape[0], constants, places
    )


def read_texts(
    taggers: list[Tagger],
    titles: list[str],
    path: str,
    fields: dict[str, Any],
    strict: bool,
    constants: Constants,
    places: tuple[int, ...],
) -> Problem:
    """Read a table as each tagger does; number the tags of all taggers and of the table consistently."""
    tables = [_records(tagger, path, fields, strict, quiet=bool(n)) for n, tagger in enumerate(taggers)]
    if any([row.tags for row in one] != [row.tags for row in tables[0]] for one in tables[1:]):
        raise DataError(
            f"{path} must give both models the same rows; they read different fields and skipped "
            "different rows: name the fields with --text and --tags."
        )
    known = (tag for tagger in taggers for tag in tagger.classes_)
    true = (tag for row in tables[0] for tag in row.tags)
    place = {tag: number for number, tag in enumerate(dict.fromkeys([*known, *true]))}
    truth = TagCollector.of((row.tags for row in tables[0]), place).indicator()
    sides = []
    for title, tagger, rows in zip(titles, taggers, tables, strict=True):
        names = tagger._suggester.fields
        texts = [row.content(names) for row in rows]
        number = np.array([place[tag] for tag in tagger.classes_], np.int64)
        X = tagger._rows(texts)
        sides.append(Side(title, label_model(tagger), X, number, tagger, texts))
    named: dict[str, str] = {}
    for tagger in reversed(taggers):  # if both name a tag, the first model's name is used
        named |= tagger.names or {}
    labels = [named.get(tag, tag) for tag in place]
    ids = [row.id for row in tables[0]]
    return Problem(Path(path).name, tuple(sides), truth, labels, ids, constants, places)


def _records(tagger: Tagger, path: str, fields: dict[str, Any], strict: bool, quiet: bool) -> list[Record]:
    with open_table(path, tagger.fields_ | fields, strict=strict) as reader:
        rows = list(reader)
    if not quiet:
        say_what_was_wrong(reader)
    return rows
