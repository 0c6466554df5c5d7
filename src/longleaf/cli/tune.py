"""``longleaf tune``."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

import typer

from longleaf._validation import DataError
from longleaf.cli import _console, _options
from longleaf.cli._data import STANDARD_INPUT, Data, check_new_model, load_data
from longleaf.cli._encoder import EncoderOptions, encoder_options
from longleaf.cli._groups import takes
from longleaf.cli._names import NameFile, name_file
from longleaf.cli._tables import DigestedRecords, given, open_table, read_labelled
from longleaf.cli._texts import TextOptions, text_options
from longleaf.cli._training import is_table, load_labelled, origin, trained_sentence
from longleaf.cli._tuning import listed_values, show
from longleaf.plt import PLT
from longleaf.reading import TaggedRows
from longleaf.tagger import Tagger
from longleaf.text.fields import Text
from longleaf.text.tags import known_indicator
from longleaf.tuning.halving import Trial, parse_metric
from longleaf.tuning.tune import tune as search


@takes(space=listed_values, names=name_file, texts=text_options, encoder=encoder_options)
def tune(
    data: _options.DataPath,
    out: Annotated[
        str | None,
        typer.Option(
            "-o",
            "--out",
            metavar="MODEL",
            help="Train on all of DATA with the chosen settings and write the model to this folder.",
            callback=_options.not_empty,
        ),
    ] = None,
    dev: Annotated[
        str | None,
        typer.Option(
            "--dev",
            metavar="FILE",
            help="Validation rows; default: held out of DATA.",
            callback=_options.not_empty,
        ),
    ] = None,
    hold_out: Annotated[
        float,
        typer.Option("--hold-out", min=0.0, max=0.9, metavar="SHARE", help="Share of DATA to hold out."),
    ] = 0.1,
    metric: Annotated[
        str, typer.Option("--metric", metavar="M", help="Metric to maximize: p@K, f1@K, ndcg@K or psp@K.")
    ] = "p@5",
    tail: Annotated[
        float | None,
        typer.Option(
            "--tail", min=0.0, metavar="T", help="Weight of rare labels; default: 1 for psp@K, otherwise 0."
        ),
    ] = None,
    candidates: Annotated[
        int, typer.Option("--candidates", min=1, max=10000, metavar="N", help="Number of settings to try.")
    ] = 18,
    min_rows: Annotated[
        int, typer.Option("--min-rows", min=1, metavar="N", help="Minimum rows of the first rung.")
    ] = 1000,
    *,
    space: dict[str, list[Any]],
    seed: _options.Seed = 1,
    threads: _options.Threads = None,
    names: NameFile | None,
    texts: TextOptions,
    encoder: EncoderOptions,
    force: _options.ForceModel = False,
    as_json: _options.Json = False,
) -> None:
    """Tune the most important settings by successive halving; report the choice and the reasons.

    Of texts with several fields, weights of the fields are tried, too, and
    with --encoder, weights of the encoder. Names of tags play no role in the
    choice; the model that is written is trained with them.
    """
    begin = time.perf_counter()
    parse_metric(metric)
    if data == dev == STANDARD_INPUT:
        raise typer.BadParameter("Only one of DATA and --dev can be standard input.")
    if out is not None:
        check_new_model(out, force)
    estimator = PLT(random_state=seed, n_jobs=-1 if threads is None else threads)
    if is_table(data, texts.given | encoder.given | given(names=names)):
        known = None if names is None else names.read()
        tagger = Tagger(estimator, names=known, **encoder.parameters(None))
        rows = _read_texts(tagger, estimator.n_jobs, data, dev, texts, encoder)
        if names is not None and known is not None and rows.texts is not None:
            names.note_unused(known, rows.texts.tagged.classes)
    else:
        rows = _read_features(data, dev)
    with _console.progress_bar(f"choosing by {metric}") as progress:
        found = search(
            rows.train.X,
            rows.train.Y,
            estimator,
            dev=None if rows.dev is None else (rows.dev.X, rows.dev.Y),
            dev_share=hold_out,
            metric=metric,
            tail=tail,
            space=space,
            candidates=candidates,
            min_rows=min_rows,
            random_state=seed,
            progress=progress,
            report=_rung_reporter(metric),
        )
    if as_json:
        _console.print_json(found.to_dict())
    else:
        show(found)
    if out is None:
        return
    with _console.progress_bar("training on everything") as progress:
        if rows.texts is None:
            model = found.estimator.fit(rows.train.X, rows.train.Y, progress=progress)
        else:
            model = rows.texts.train(found.estimator, found.settings, progress)
    model.origin_.update(rows.origin | {"tuning": found.to_dict()})
    model.save(out, force=force)
    _console.note(trained_sentence(out, begin))


@dataclass(frozen=True, eq=False)
class _Rows:
    """All rows of DATA, the validation rows if given, their provenance, and their texts if they have any."""

    train: Data
    dev: Data | None
    origin: dict[str, Any]
    texts: _Texts | None = None


@dataclass(frozen=True, eq=False)
class _Texts:
    """An unfitted tagger, what it read of DATA, the texts themselves, and the fields of the table."""

    tagger: Tagger
    tagged: TaggedRows
    texts: list[Text]
    fields: dict[str, Any]

    def train(
        self,
        estimator: PLT,
        settings: dict[str, Any],
        progress: Callable[[float], None] | None,
    ) -> Tagger:
        """Train a tagger with the chosen settings, and with its names."""
        rows = self.tagged.reweighted(self.texts, settings.get("fields"), settings.get("encoder_weight"))
        trained = self.tagger.set_params(estimator=estimator)._train(rows, {"progress": progress})
        trained.fields_ = self.fields
        return trained


def _read_features(path: str, dev: str | None) -> _Rows:
    rows = load_labelled(path)
    if dev is None:
        return _Rows(rows, None, origin(rows))
    with _console.waiting(f"reading {dev}"):
        dev_rows = load_data(dev)
    if (dev_rows.X.shape[1], dev_rows.Y.shape[1]) != (rows.X.shape[1], rows.Y.shape[1]):
        raise DataError(
            f"{dev_rows.name} must have {rows.X.shape[1]} features and {rows.Y.shape[1]} labels, "
            f"as {rows.name} has; got {dev_rows.X.shape[1]} and {dev_rows.Y.shape[1]}."
        )
    return _Rows(rows, dev_rows, origin(rows))


def _read_texts(
    tagger: Tagger,
    n_jobs: int | None,
    path: str,
    dev: str | None,
    texts: TextOptions,
    encoder: EncoderOptions,
) -> _Rows:
    """Read and vectorize everything once."""
    fields = texts.fields | encoder.fields
    with open_table(path, fields, strict=texts.strict) as reader, _console.waiting(f"reading {path}"):
        tagger.vectorizer = texts.vectorizer(n_jobs, reader)
        digested = DigestedRecords(reader)
        records = list(digested)
        rows = tagger._read_records(records)
        contents: list[Text] = [record.content() for record in records]
        X = rows.by_field(contents)
    about = digested.origin() | {"rows": rows.X.shape[0]}
    dev_rows = None if dev is None else _read_dev(rows, dev, reader.fields, texts.strict)
    return _Rows(
        Data(reader.report.source, X, rows.Y), dev_rows, about, _Texts(tagger, rows, contents, reader.fields)
    )


def _read_dev(rows: TaggedRows, path: str, fields: dict[str, Any], strict: bool) -> Data:
    """Read validation rows; tags that no row of DATA has get columns after the others."""
    names = list(rows.vectorizer.field_weights_)
    name, X, tags = read_labelled(path, fields, strict, rows.others_by_field, names)
    return Data(name, X, known_indicator(tags, rows.classes, "add"))


def _rung_reporter(metric: str) -> Callable[[Trial], None]:
    """Return a callback that reports the best value when a rung is finished."""
    rung: list[Trial] = []

    def report(trial: Trial) -> None:
        if rung and rung[-1].rung != trial.rung:
            best = max(one.value for one in rung)
            _console.note(f"{len(rung)} settings on {rung[-1].rows} rows: {metric} up to {best:.2f}")
            rung.clear()
        rung.append(trial)

    return report
