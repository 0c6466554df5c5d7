"""``longleaf calibrate``."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import typer

from longleaf._validation import DataError
from longleaf.cli import _console, _options
from longleaf.cli._data import check_features_match, check_labels_match, check_new_model, load_data
from longleaf.cli._tables import (
    DigestedRecords,
    check_form_matches,
    given,
    given_fields,
    label_model,
    open_table,
)
from longleaf.cli._training import origin
from longleaf.estimator import LabelEstimator
from longleaf.models import load
from longleaf.tagger import Tagger


def calibrate(
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
    """Fit a model's probabilities on DATA, rows that it was not trained on; its trees stay as they are."""
    start = time.perf_counter()
    loaded = load(model)
    if isinstance(loaded, Tagger) and loaded.fusion_ is not None:
        raise DataError(f"{model} must be a model without names: with them, it was calibrated in training.")
    fields = given_fields(text=text, tags=tags, separator=separator, id=id)
    check_form_matches(data, loaded, fields | given(strict=strict))
    check_new_model(out, force)
    trained = label_model(loaded)
    own = trained.n_jobs
    if threads is not None:
        trained.set_params(n_jobs=threads)
    if isinstance(loaded, Tagger):
        held_out = _calibrate_texts(loaded, data, fields, strict)
    else:
        held_out = _calibrate_features(loaded, data)
    trained.set_params(n_jobs=own)
    trained.origin_["calibrated"] = held_out
    loaded.save(out, force=force)
    typer.echo(f"{out}: calibrated in {time.perf_counter() - start:.1f} s")


def _calibrate_features(model: LabelEstimator, path: str) -> dict[str, Any]:
    with _console.waiting(f"reading {path}"):
        rows = load_data(path)
    check_features_match(rows, model)
    check_labels_match(rows, model)
    with _arguments_called(rows.name), _console.waiting("calibrating"):
        model.calibrate(rows.X, rows.Y)
    return origin(rows)


def _calibrate_texts(tagger: Tagger, path: str, fields: dict[str, Any], strict: bool) -> dict[str, Any]:
    with open_table(path, tagger.fields_ | fields, strict=strict) as reader:
        records = DigestedRecords(reader)
        with _arguments_called(path), _console.waiting("reading and calibrating"):
            tagger.calibrate_records(records)
    return records.origin()


@contextmanager
def _arguments_called(name: str) -> Iterator[None]:
    """Let error messages call the held-out rows by the name of their file."""
    try:
        yield
    except DataError:
        raise
    except ValueError as error:
        raise DataError(re.sub(r"\b[Xy]_held_out\b", lambda _: name, str(error))) from None
