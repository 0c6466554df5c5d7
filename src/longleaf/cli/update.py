"""``longleaf update``."""

from __future__ import annotations

import time
from typing import Any

import typer

from longleaf._validation import DataError
from longleaf.cli import _console, _options
from longleaf.cli._data import check_features_match, check_new_model
from longleaf.cli._tables import (
    DigestedRecords,
    check_form_matches,
    given,
    given_fields,
    label_model,
    open_table,
)
from longleaf.cli._training import load_labelled, origin, trained_sentence
from longleaf.models import load
from longleaf.plt import PLT
from longleaf.tagger import Tagger


def update(
    model: _options.ModelPath,
    data: _options.DataPath,
    out: _options.ModelOut,
    threads: _options.Threads = None,
    text: _options.TextFields = None,
    tags: _options.TagsField = None,
    id: _options.IdField = None,
    separator: _options.Separator = None,
    strict: _options.Strict = False,
    force: _options.ForceModel = False,
) -> None:
    """Train a model further on DATA, new labels included, without its original training data."""
    start = time.perf_counter()
    loaded = load(model)
    learner = label_model(loaded)
    if not isinstance(learner, PLT):
        raise DataError(f"{model} must be a model of label trees to be updated; got a {learner.kind}.")
    fields = given_fields(text=text, tags=tags, separator=separator, id=id)
    check_form_matches(data, loaded, fields | given(strict=strict))
    check_new_model(out, force)
    if threads is not None:
        learner.set_params(n_jobs=threads)
    before = learner.n_labels_
    if isinstance(loaded, Tagger):
        update_origin = _learn_texts(loaded, data, fields, strict)
    else:
        update_origin = _learn_features(learner, data)
    learner.origin_["updates"] = [*learner.origin_.get("updates", []), update_origin]
    loaded.save(out, force=force)
    _console.note(f"{learner.n_labels_ - before} new labels, {learner.n_rows_} rows in total")
    typer.echo(trained_sentence(out, start))


def _learn_features(model: PLT, path: str) -> dict[str, Any]:
    rows = load_labelled(path)
    check_features_match(rows, model)
    if rows.Y.shape[1] < model.n_labels_:
        found, least = rows.Y.shape[1], model.n_labels_
        raise DataError(f"{rows.name} must have at least {least} labels, as the model has; got {found}.")
    with _console.progress_bar("learning") as progress:
        model.partial_fit(rows.X, rows.Y, progress=progress)
    return origin(rows)


def _learn_texts(tagger: Tagger, path: str, fields: dict[str, Any], strict: bool) -> dict[str, Any]:
    before = tagger.estimator_.n_rows_
    with open_table(path, tagger.fields_ | fields, strict=strict) as reader:
        records = DigestedRecords(reader)
        with _console.progress_bar("reading and learning") as progress:
            tagger.partial_fit_records(records, progress=progress)
    return records.origin() | {"rows": tagger.estimator_.n_rows_ - before}
