"""``longleaf fit-sets``."""

from __future__ import annotations

from typing import Annotated

import typer

from longleaf.cli import _console, _options
from longleaf.cli._data import check_features_match, check_labels_match, check_new_model, load_data
from longleaf.cli._tables import (
    check_form_matches,
    given,
    given_fields,
    label_model,
    load_labelled_texts,
)
from longleaf.conformal import MAX_SIZE
from longleaf.models import load
from longleaf.tagger import Tagger
from longleaf.training.params import MOST_K


def fit_sets(
    model: _options.ModelPath,
    data: _options.DataPath,
    out: _options.ModelOut,
    max_size: Annotated[
        int, typer.Option("--max-size", min=1, max=MOST_K, metavar="N", help="Maximum labels of a set.")
    ] = MAX_SIZE,
    threads: _options.Threads = None,
    text: _options.TextFields = None,
    tags: _options.TagsField = None,
    id: _options.IdField = None,
    separator: _options.Separator = None,
    strict: _options.Strict = False,
    force: _options.ForceModel = False,
) -> None:
    """Fit how large the sets of `predict --coverage` must be, on DATA that the model was not trained on."""
    loaded = load(model)
    trained = label_model(loaded)
    fields = given_fields(text=text, tags=tags, separator=separator, id=id)
    check_form_matches(data, loaded, fields | given(strict=strict))
    check_new_model(out, force)
    own = trained.n_jobs
    if threads is not None:
        trained.set_params(n_jobs=threads)
    with _console.waiting(f"reading {data}"):
        if isinstance(loaded, Tagger):
            rows = load_labelled_texts(loaded, data, fields, strict)
        else:
            rows = load_data(data)
            check_features_match(rows, trained)
            check_labels_match(rows, trained)
    with _console.waiting("searching"):
        trained.fit_sets(rows.X, rows.Y, max_size=max_size)
    trained.set_params(n_jobs=own)
    loaded.save(out, force=force)
    found = trained.risk_control_
    assert found is not None
    typer.echo(
        f"{out}: coverage of up to {found.largest:g}, by {found.n_rows} rows with labels and sets of at most "
        f"{max_size}"
    )
