"""``longleaf compare``."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import numpy.typing as npt
import typer

from longleaf._validation import DataError
from longleaf.cli import _console, _options
from longleaf.cli._data import STANDARD_INPUT, check_features_match, check_labels_match, load_data
from longleaf.cli._tables import check_both_match, given, given_fields, label_model, read_labelled_texts
from longleaf.cli.evaluate import NOTHING_TO_FIND
from longleaf.estimator import LabelEstimator
from longleaf.metrics import Difference, FrequencyBin, frequency_table
from longleaf.metrics import compare as compare_rankings
from longleaf.models import load
from longleaf.propensity import inverse_propensity_from_counts
from longleaf.tagger import Tagger
from longleaf.text.tags import TagCollector

if TYPE_CHECKING:
    from rich.table import Table

Model = LabelEstimator | Tagger


def compare(
    a: Annotated[
        str, typer.Argument(metavar="A", help="Folder of the first model.", callback=_options.not_empty)
    ],
    b: Annotated[
        str,
        typer.Argument(
            metavar="B",
            help="Folder of the second model; may be A again, with another --tail or --search.",
            callback=_options.not_empty,
        ),
    ],
    data: _options.DataPath,
    k: _options.Places = "1,3,5",
    tail: Annotated[
        list[float] | None,
        typer.Option(
            "--tail",
            min=0.0,
            metavar="T",
            help="As in predict; may be given twice, first for A, then for B.",
        ),
    ] = None,
    search: Annotated[
        list[_options.Search] | None,
        typer.Option("--search", help="As in predict; may be given twice, first for A, then for B."),
    ] = None,
    beam: _options.Beam = 10,
    propensity: _options.Propensity = None,
    samples: _options.Samples = 1000,
    confidence: Annotated[
        float, typer.Option("--confidence", metavar="P", help="Confidence level of the intervals.")
    ] = 0.95,
    seed: _options.Seed = 1,
    threads: _options.Threads = None,
    text: _options.TextFields = None,
    tags: _options.TagsField = None,
    id: _options.IdField = None,
    separator: _options.Separator = None,
    strict: _options.Strict = False,
    as_json: _options.Json = False,
) -> None:
    """Compare two models, or two settings of one, on the same rows, with confidence intervals."""
    places = _options.parse_places(k)
    tails, searches = _both("--tail", tail), _both("--search", search)
    if not 0 < confidence < 1:
        raise typer.BadParameter(f"--confidence must be above 0 and below 1; got {confidence:g}.")
    if data == STANDARD_INPUT and a != b:
        raise typer.BadParameter("DATA must be a file, as two models read it; got standard input.")
    models = [load(a)] * 2 if a == b else [load(a), load(b)]
    constants = _options.parse_propensity(propensity, label_model(models[0]))
    fields = given_fields(text=text, tags=tags, separator=separator, id=id)
    check_both_match(data, dict(zip((a, b), models, strict=True)), fields | given(strict=strict))
    with _console.waiting(f"reading {data}"):
        problem = _read(models, data, fields, strict)
    tops = []
    for side, model in enumerate(map(label_model, models)):
        how = (searches[side] or _options.Search.exact).value
        dial = {"tail": tails[side], "propensity": constants, "search": how, "beam": beam, "n_jobs": threads}
        with _console.progress_bar("predicting") as progress:
            top = model.top_k(problem.X[side], min(places[-1], model.n_labels_), **dial, progress=progress)
        tops.append(np.append(problem.number[side], -1)[top.labels])
    inverse_propensity = inverse_propensity_from_counts(problem.counts, problem.n_rows, *constants)
    with _console.waiting("resampling"):
        metrics = compare_rankings(
            problem.truth,
            tops[0],
            tops[1],
            inverse_propensity=inverse_propensity,
            counts=problem.counts,
            k=places,
            n_samples=samples,
            confidence=confidence,
            random_state=seed,
        )
    sides = [_side(path, *dial) for path, *dial in zip((a, b), tails, searches, strict=True)]
    bins = [frequency_table(problem.truth, top, problem.counts, k=places[-1]) for top in tops]
    if as_json:
        frequency = {side: [asdict(one) for one in own] for side, own in zip("ab", bins, strict=True)}
        report = {name: asdict(one) for name, one in metrics.items()}
        about = {"a": sides[0], "b": sides[1], "rows": problem.truth.shape[0], "confidence": confidence}
        _console.print_json(about | {"metrics": report, "frequency": frequency})
        return
    console = _console.output()
    console.print(f"A  {sides[0]}\nB  {sides[1]}", soft_wrap=True)
    console.print(_table(metrics, bins[0], places[-1], confidence))
    console.print(
        f"{problem.truth.shape[0]} rows, {samples} resamples of them; all shares in percent.\n"
        "Where an interval excludes 0, the difference is unlikely to change sign on other rows."
    )


@dataclass(frozen=True, eq=False)
class _Problem:
    """The rows both models are evaluated on; labels are numbered consistently, those of A first.

    ``X`` and ``number`` have one entry per model: the features as it reads them, and the common numbers of
    its labels. Counts and the number of rows are from A's training.
    """

    X: list[Any]
    number: list[npt.NDArray[np.int64]]
    truth: Any
    counts: npt.NDArray[np.int64]
    n_rows: int


def _read(models: list[Model], path: str, fields: dict[str, Any], strict: bool) -> _Problem:
    first = label_model(models[0])
    if isinstance(models[0], Tagger):
        X, number, truth = _read_texts(models, path, fields, strict)
    else:
        data = load_data(path)
        for model in map(label_model, models):
            check_features_match(data, model)
            check_labels_match(data, model)
        X, truth = [data.X] * 2, data.Y
        number = [np.arange(first.n_labels_)] * 2
    counts = np.pad(first.label_counts_, (0, truth.shape[1] - first.n_labels_))
    return _Problem(X, number, truth, counts, first.n_rows_)


def _read_texts(
    models: list[Any], path: str, fields: dict[str, Any], strict: bool
) -> tuple[list[Any], list[npt.NDArray[np.int64]], Any]:
    """Read the table as each of two taggers does; number the tags of both and of the table consistently."""
    a, b = models
    read = [read_labelled_texts(a, path, fields, strict)]
    read.append(read[0] if a is b else read_labelled_texts(b, path, fields, strict))
    (name, X_a, tags), (_, X_b, tags_b) = read
    if tags != tags_b:
        raise DataError(
            f"{name} must give both models the same rows; they read different fields and skipped "
            "different rows: name the fields with --text and --tags."
        )
    place = dict.fromkeys([*a.classes_, *b.classes_])
    truth = TagCollector.of(tags, place).indicator()
    index = {tag: number for number, tag in enumerate(place)}
    number = [np.array([index[tag] for tag in model.classes_], np.int64) for model in models]
    return [X_a, X_b], number, truth


def _both(option: str, values: list[Any] | None) -> list[Any]:
    """Return the values for A and B; a single value counts for both."""
    found = values or [None]
    if len(found) > 2:
        raise typer.BadParameter(
            f"{option} can be given once, or twice for A and B; got {len(found)} values."
        )
    return [found[0], found[-1]]


def _side(path: str, tail: float | None, search: _options.Search | None) -> str:
    """Describe a model and its settings."""
    dial = [] if tail is None else [f"tail {tail:g}"]
    dial += [] if search is None else [f"search {search.value}"]
    return f"{path} ({', '.join(dial)})" if dial else path


def _table(metrics: dict[str, Difference], bins: list[FrequencyBin], k: int, confidence: float) -> Table:
    from rich import box
    from rich.table import Table

    table = Table("", box=box.SIMPLE_HEAD)
    for heading in ("A", "B", "B - A", f"{100 * confidence:g} % of resamples"):
        table.add_column(heading, justify="right")
    about = {
        f"{one.name}_recall@{k}": f"recall@{k}, {one.name}: {one.labels} labels"
        + (f" of {one.min_count} to {one.max_count} rows" if one.max_count else "")
        for one in bins
    }
    empty = {f"{one.name}_recall@{k}" for one in bins if not one.is_judged}
    for name, one in metrics.items():
        if name not in about or (one.a or one.b or not name.startswith("unseen")):
            colour = "" if not one.is_clear else "green" if one.difference > 0 else "red"
            numbers = [NOTHING_TO_FIND] * 4 if name in empty else _numbers(one)
            table.add_row(about.get(name, name), *numbers, style=colour)
    return table


def _numbers(one: Difference) -> list[str]:
    interval = f"{one.low:+.2f} to {one.high:+.2f}"
    return [f"{one.a:.2f}", f"{one.b:.2f}", f"{one.difference:+.2f}", interval]
