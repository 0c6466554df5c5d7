"""``longleaf evaluate``."""

from __future__ import annotations

import time
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import numpy as np
import typer

from longleaf.cli import _console, _options
from longleaf.cli._data import STANDARD_INPUT, check_features_match, check_labels_match, load_data
from longleaf.cli._filters import Filters
from longleaf.cli._groups import takes
from longleaf.cli._search import search_settings
from longleaf.cli._tables import (
    check_form_matches,
    given,
    given_fields,
    label_model,
    load_labelled_texts,
)
from longleaf.cli._worth import Worth, worth_settings
from longleaf.metrics import FrequencyBin, frequency_table
from longleaf.metrics import evaluate as compute_metrics
from longleaf.models import load
from longleaf.propensity import inverse_propensity_from_counts
from longleaf.search.auto_k import DEFAULT_MOST
from longleaf.search.top_k import TopK
from longleaf.suggest import AUTO
from longleaf.tagger import Tagger, suggester_of
from longleaf.training.params import MOST_K

if TYPE_CHECKING:
    from rich.table import Table

NOTHING_TO_FIND = "–"
"""Shown in place of a metric of labels that no evaluated row has: a 0 would look like a failure."""
OF_SETS = ("precision", "recall", "f1")
"""The metrics of as many labels as are likely: they do not depend on a number of labels or an order."""
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
    "labels": "labels returned, mean over rows",
    "none": "rows for which none is returned",
}


class Places(NamedTuple):
    """What -k asks for: ranks in ascending order, and whether also as many labels as are likely."""

    ranks: tuple[int, ...]
    auto: bool

    @classmethod
    def parse(cls, text: str) -> Places:
        """Parse ``1,3,5,auto``."""
        items = [item.strip() for item in text.split(",")]
        ranks = [item for item in items if item != AUTO]
        try:
            return cls(_options.parse_places(",".join(ranks)) if ranks else (), AUTO in items)
        except typer.BadParameter:
            raise typer.BadParameter(
                f"-k must be whole numbers from 1 to {MOST_K}, or auto, as in 1,3,5,auto; got {text!r}."
            ) from None


class Ranked(NamedTuple):
    """Labels that were found, of which the first ``k`` are evaluated as ``@name``."""

    name: str
    top: TopK
    k: int


@takes(worth=worth_settings, search=search_settings)
def evaluate(
    model: _options.ModelPath,
    data: _options.DataPath,
    k: Annotated[
        str,
        typer.Option(
            "-k",
            metavar="K,…",
            help="Ranks at which to evaluate; auto: as many labels as are likely, for each row.",
        ),
    ] = "1,3,5",
    max_k: Annotated[
        int | None,
        typer.Option(
            "--max-k",
            min=1,
            max=MOST_K,
            metavar="N",
            help=f"Maximum labels per row with auto in -k; default: {DEFAULT_MOST}.",
        ),
    ] = None,
    *,
    worth: Worth,
    propensity: _options.Propensity = None,
    search: dict[str, Any],
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
    places = Places.parse(k)
    if max_k is not None and not places.auto:
        raise typer.BadParameter("--max-k needs auto in -k, as in -k 5,auto.")
    if [data, *worth.files, only, never, groups].count(STANDARD_INPUT) > 1:
        raise typer.BadParameter(
            "Only one of DATA, --gain, --utility, --only, --never and --groups can be -."
        )
    loaded = load(model)
    trained = label_model(loaded)
    constants = _options.parse_propensity(propensity, trained)
    fields = given_fields(text=text, tags=tags, separator=separator, id=id)
    check_form_matches(data, loaded, fields | given(strict=strict))
    suggester = suggester_of(loaded)
    filters = Filters.read(suggester.tags, only=only, never=never, groups=groups, strict=strict)
    options = {
        **worth.arguments(suggester),
        "propensity": constants,
        **vars(filters),
        **search,
        "n_jobs": threads,
    }
    queries = [suggester.query(max(places.ranks), **options)] if places.ranks else []
    if places.auto:
        queries.append(suggester.query(AUTO, max_k=max_k, **options))
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
        tops = [suggester.top_k(rows.X, queries[0], progress)]
        seconds = time.perf_counter() - start
    tops += [suggester.top_k(rows.X, query) for query in queries[1:]]
    ranked = [Ranked(str(at), tops[0], at) for at in places.ranks]
    if places.auto:
        ranked.append(Ranked(AUTO, tops[-1], queries[-1].k))
    inverse_propensity, bins = None, []
    if trained.n_rows_:
        inverse_propensity = inverse_propensity_from_counts(counts, trained.n_rows_, *constants)
        shown = [one for one in ranked if one.name != AUTO] or ranked
        bins = frequency_table(rows.Y, shown[-1].top, counts, k=shown[-1].k)
    else:
        _console.note("No metrics by propensity or frequency: the model was imported without label counts.")
    metrics: dict[str, float] = {}
    if places.ranks:
        metrics = compute_metrics(rows.Y, tops[0], inverse_propensity=inverse_propensity, k=places.ranks)
    if places.auto:
        metrics |= _of_sets(rows.Y, ranked[-1]) | _sizes(ranked)
    n_rows = rows.X.shape[0]
    speed = 1000 * seconds / n_rows
    exact = None
    if any(query.may_end_early for query in queries):
        exact = 100.0 * float(np.logical_and.reduce([top.exact for top in tops]).mean())
    if as_json:
        about = {"rows": n_rows, "ms_per_row": speed} | ({} if exact is None else {"exact": exact})
        unseen = _unseen(rows.Y, ranked, counts) if bins else None
        by_frequency = {"frequency": [asdict(b) for b in bins], "unseen": unseen}
        _console.print_json({**metrics, **about, **by_frequency})
        return
    console = _console.output()
    console.print(_metric_table(metrics, [one.name for one in ranked]))
    if bins:
        console.print(_bin_table(bins, shown[-1].name))
    all_rows = "1 row" if n_rows == 1 else f"{n_rows} rows"
    console.print(f"{all_rows}, {speed:.3g} ms{' each' if n_rows > 1 else ''}; all shares in percent")
    if exact is not None:
        console.print(f"The labels of {exact:.2f} % of the rows are provably the best.")


def _of_sets(truth: Any, one: Ranked) -> dict[str, float]:
    """Return the metrics of sets of labels, whatever their size."""
    found = compute_metrics(truth, one.top, k=one.k)
    return {f"{name}@{one.name}": found[f"{name}@{one.k}"] for name in OF_SETS}


def _sizes(ranked: list[Ranked]) -> dict[str, float]:
    """Return how many labels a row gets on average, and the share of the rows that get none, in percent."""
    returned = {one.name: (one.top.labels[:, : one.k] >= 0).sum(axis=1) for one in ranked}
    labels = {f"labels@{name}": float(number.mean()) for name, number in returned.items()}
    return labels | {f"none@{name}": 100.0 * float((number == 0).mean()) for name, number in returned.items()}


def _unseen(truth: Any, ranked: list[Ranked], counts: Any) -> dict[str, float]:
    """Return the figures of labels that training never saw."""
    bins = {one.name: frequency_table(truth, one.top, counts, k=one.k)[-1] for one in ranked}
    recall = {f"recall@{name}": one.recall for name, one in bins.items()}
    last = bins[ranked[-1].name]
    return {"labels": last.labels, "assignments": last.assignments, **recall}


def _metric_table(metrics: dict[str, float], columns: list[str]) -> Table:
    from rich import box
    from rich.table import Table

    table = Table("", "metric", box=box.SIMPLE_HEAD)
    for at in columns:
        table.add_column(f"@{at}", justify="right")
    for short, name in NAMES.items():
        values = [metrics.get(f"{short}@{at}") for at in columns]
        if values.count(None) < len(values):
            table.add_row(short, name, *("" if value is None else f"{value:.2f}" for value in values))
    return table


def _bin_table(bins: list[FrequencyBin], k: str) -> Table:
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
