"""``longleaf evaluate``."""

from __future__ import annotations

import time
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np
import typer

from longleaf.cli import _console, _options
from longleaf.cli._data import STANDARD_INPUT, check_features_match, check_labels_match, load_data
from longleaf.cli._filters import Filters
from longleaf.cli._tables import (
    check_form_matches,
    given,
    given_fields,
    label_model,
    load_gains,
    load_labelled_texts,
)
from longleaf.metrics import FrequencyBin, frequency_table
from longleaf.metrics import evaluate as compute_metrics
from longleaf.models import load
from longleaf.propensity import inverse_propensity_from_counts
from longleaf.tagger import Tagger, suggester_of

if TYPE_CHECKING:
    from rich.table import Table

NOTHING_TO_FIND = "–"
"""Shown in place of a metric of labels that no evaluated row has: a 0 would look like a failure."""
NAMES = {
    "p": "precision, hits over k",
    "precision": "precision, hits over suggestions",
    "recall": "recall",
    "f1": "F1",
    "ndcg": "nDCG",
    "psp": "precision, propensity-scored",
    "psrecall": "recall, propensity-scored",
    "psndcg": "nDCG, propensity-scored",
    "coverage": "coverage of labels",
    "macro_precision": "precision, mean over labels",
    "macro_recall": "recall, mean over labels",
    "macro_f1": "F1, mean over labels",
    "ece": "calibration error (ECE)",
    "brier": "Brier score",
}


def evaluate(
    model: _options.ModelPath,
    data: _options.DataPath,
    k: _options.Places = "1,3,5",
    tail: _options.Tail = None,
    gain: _options.Gain = None,
    propensity: _options.Propensity = None,
    search: _options.SearchOption = _options.Search.exact,
    beam: _options.Beam = 10,
    threads: _options.Threads = None,
    text: _options.TextFields = None,
    tags: _options.TagsField = None,
    id: _options.IdField = None,
    separator: _options.Separator = None,
    only: _options.Only = None,
    never: _options.Never = None,
    groups: _options.Groups = None,
    strict: _options.Strict = False,
    as_json: _options.Json = False,
) -> None:
    """Evaluate a model's predictions on DATA against the true labels."""
    places = _options.parse_places(k)
    _options.check_one_dial(tail, gain)
    if [data, gain, only, never, groups].count(STANDARD_INPUT) > 1:
        raise typer.BadParameter("Only one of DATA, --gain, --only, --never and --groups can be -.")
    loaded = load(model)
    trained = label_model(loaded)
    constants = _options.parse_propensity(propensity, trained)
    fields = given_fields(text=text, tags=tags, separator=separator, id=id)
    check_form_matches(data, loaded, fields | given(strict=strict))
    suggester = suggester_of(loaded)
    filters = Filters.read(suggester.tags, only=only, never=never, groups=groups, strict=strict)
    query = suggester.query(
        max(places),
        tail=tail,
        gain=None if gain is None else load_gains(gain, suggester),
        propensity=constants,
        **vars(filters),
        search=search.value,
        beam=beam,
        n_jobs=threads,
    )
    with _console.waiting(f"reading {data}"):
        rows = (
            load_labelled_texts(loaded, data, fields, strict)
            if isinstance(loaded, Tagger)
            else load_data(data)
        )
    if not isinstance(loaded, Tagger):
        check_features_match(rows, trained)
        check_labels_match(rows, trained)
    # Tags that training never saw have a count of 0, and still count in the denominators.
    counts = np.pad(trained.label_counts_, (0, rows.Y.shape[1] - trained.n_labels_))
    with _console.progress_bar("predicting") as progress:
        start = time.perf_counter()
        top = suggester.top_k(rows.X, query, progress)
        seconds = time.perf_counter() - start
    inverse_propensity, bins = None, []
    if trained.n_rows_:
        inverse_propensity = inverse_propensity_from_counts(counts, trained.n_rows_, *constants)
        bins = frequency_table(rows.Y, top, counts, k=places[-1])
    else:
        _console.note("No metrics by propensity or frequency: the model was imported without label counts.")
    metrics = compute_metrics(rows.Y, top, inverse_propensity=inverse_propensity, k=places)
    n_rows = rows.X.shape[0]
    speed = 1000 * seconds / n_rows
    if as_json:
        about = {"rows": n_rows, "ms_per_row": speed}
        unseen = _unseen(rows.Y, top, counts, places) if bins else None
        by_frequency = {"frequency": [asdict(b) for b in bins], "unseen": unseen}
        _console.print_json({**metrics, **about, **by_frequency})
        return
    console = _console.output()
    console.print(_metric_table(metrics, places))
    if bins:
        console.print(_bin_table(bins, places[-1]))
    console.print(f"{n_rows} rows, {speed:.3g} ms each; all shares in percent")


def _unseen(truth: Any, top: Any, counts: Any, places: tuple[int, ...]) -> dict[str, float]:
    """Return the figures of labels that training never saw."""
    bins = {at: frequency_table(truth, top, counts, k=at)[-1] for at in places}
    last = bins[places[-1]]
    recall = {f"recall@{at}": one.recall for at, one in bins.items()}
    return {"labels": last.labels, "assignments": last.assignments, **recall}


def _metric_table(metrics: dict[str, float], places: tuple[int, ...]) -> Table:
    from rich import box
    from rich.table import Table

    table = Table("", "metric", box=box.SIMPLE_HEAD)
    for at in places:
        table.add_column(f"@{at}", justify="right")
    shown = ((short, name) for short, name in NAMES.items() if f"{short}@{places[0]}" in metrics)
    for short, name in shown:
        table.add_row(short, name, *(f"{metrics[f'{short}@{at}']:.2f}" for at in places))
    return table


def _bin_table(bins: list[FrequencyBin], k: int) -> Table:
    from rich import box
    from rich.table import Table

    table = Table("labels", box=box.SIMPLE_HEAD)
    found_at_k = (f"{name}@{k}" for name in ("recall", "precision", "coverage"))
    for name in ("number", "rows in training", "true", "share", *found_at_k):
        table.add_column(name, justify="right")
    for one in bins:
        counts = f"{one.min_count} to {one.max_count}" if one.max_count else "none"
        found = (one.recall, one.precision, one.coverage)
        shares = [f"{share:.1f}" if one.is_judged else NOTHING_TO_FIND for share in found]
        table.add_row(one.name, str(one.labels), counts, str(one.assignments), f"{one.share:.1f}", *shares)
    return table
