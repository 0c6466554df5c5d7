"""``longleaf train``."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Any

import typer

from longleaf._validation import DataError
from longleaf.br import BR
from longleaf.cli import _console
from longleaf.cli._cluster import connected
from longleaf.cli._data import check_new_model
from longleaf.cli._encoder import EncoderOptions, encoder_options
from longleaf.cli._estimator import Kind, KindOption, PresetOption, make_estimator, tree_settings
from longleaf.cli._groups import takes
from longleaf.cli._names import NameFile, name_file
from longleaf.cli._options import (
    DataPath,
    ForceModel,
    MemoryLimit,
    ModelOut,
    Propensity,
    Seed,
    Threads,
    not_empty,
    parse_propensity,
)
from longleaf.cli._tables import DigestedRecords, given, open_table
from longleaf.cli._texts import TextOptions, text_options
from longleaf.cli._training import (
    check_outside,
    is_table,
    load_labelled,
    origin,
    parse_positive_weight,
    trained_sentence,
)
from longleaf.io.streams import naming_what_is_full
from longleaf.plt import PLT
from longleaf.store import is_store, load_store
from longleaf.tagger import Tagger
from longleaf.training.checkpoint import check_checkpoint


@takes(settings=tree_settings, names=name_file, texts=text_options, encoder=encoder_options)
def train(
    data: DataPath,
    out: ModelOut,
    preset: PresetOption = None,
    *,
    settings: dict[str, Any],
    positive_weight: Annotated[
        str | None,
        typer.Option(
            "--positive-weight",
            metavar="W",
            help="Weight of errors on positive rows: a number, propensity (for missing labels) or "
            "inverse-prior. Do not combine with --tail at prediction.",
        ),
    ] = None,
    propensity: Propensity = None,
    seed: Seed = 1,
    threads: Threads = None,
    model: KindOption = Kind.plt,
    names: NameFile | None,
    texts: TextOptions,
    encoder: EncoderOptions,
    keep_records: Annotated[
        bool,
        typer.Option(
            "--keep-records",
            help="Keep id, beginning and strongest words of each training record in the model, as evidence "
            "for explanations. Whoever has the model or its service can read them.",
        ),
    ] = False,
    checkpoint: Annotated[
        str | None,
        typer.Option(
            "--checkpoint",
            metavar="DIR",
            help="Keep finished units of training here; after a crash, the same command resumes.",
            callback=not_empty,
        ),
    ] = None,
    memory: MemoryLimit = None,
    dask: Annotated[
        str | None,
        typer.Option(
            "--dask",
            metavar="ADDRESS",
            help="Train on the Dask cluster of this scheduler, such as tcp://host:8786.",
            callback=not_empty,
        ),
    ] = None,
    force: ForceModel = False,
) -> None:
    """Train a model on DATA (features, or texts and tags) and save it.

    The defaults are those of ll.PLT(): --trees 3, --loss squared-hinge,
    -C 1 (16 with --loss log), --arity 32, --max-leaf 200, --tree kmeans,
    --threshold 0.1.
    """
    start = time.perf_counter()
    if positive_weight is not None:
        known = (BR if model is Kind.br else PLT).named_positive_weights
        settings["positive_weight"] = parse_positive_weight(positive_weight, known)
    estimator = make_estimator(model, preset, settings, seed, threads)
    estimator.propensity = parse_propensity(propensity, estimator)
    check_new_model(out, force)
    if checkpoint is not None:
        check_outside(checkpoint, out)
        check_checkpoint(checkpoint)
    store = load_store(data) if is_store(data) else None
    named = {} if store is not None and store.tags is not None else given(names=names)
    about_texts = texts.given | encoder.given | named | ({"keep-records": True} if keep_records else {})
    trained: PLT | BR | Tagger
    of_texts = is_table(data, about_texts)
    vocabulary = None if names is None else names.read()
    with connected(dask) as client:
        options = {"checkpoint": checkpoint, "client": client}
        if of_texts:
            if memory is not None:
                raise DataError("--memory needs a store or an XMLC file; use longleaf convert for texts.")
            tagger = Tagger(estimator, names=vocabulary, keep_records=keep_records)
            trained = _train_on_texts(tagger, estimator.n_jobs, data, texts, encoder, options)
        else:
            options |= {"memory": memory, "scratch": Path(out).parent}
            trained = _train_on_features(estimator, data, options)
            if store is not None and store.tags is not None:
                estimator.origin_ |= store.meta["origin"]
                trained = store.tagger(estimator, vocabulary)
                if vocabulary is not None:
                    _console.note(f"{data}: names are only displayed; a store has no texts to find them in")
    if names is not None and vocabulary is not None and isinstance(trained, Tagger):
        names.note_unused(vocabulary, trained.classes_[trained.estimator_.label_counts_ > 0])
    with naming_what_is_full(out):
        trained.save(out, force=force)
    typer.echo(trained_sentence(out, start))


def _train_on_features(estimator: PLT | BR, path: str, options: dict[str, Any]) -> PLT | BR:
    rows = load_labelled(path)
    with _console.progress_bar("training") as progress:
        estimator.fit(rows.X, rows.Y, progress=progress, **options)
    estimator.origin_ |= origin(rows)
    return estimator


def _train_on_texts(
    tagger: Tagger,
    n_jobs: int | None,
    path: str,
    texts: TextOptions,
    encoder: EncoderOptions,
    where: dict[str, Any],
) -> Tagger:
    with open_table(path, texts.fields | encoder.fields, strict=texts.strict) as reader:
        tagger.vectorizer = texts.vectorizer(n_jobs, reader)
        records = DigestedRecords(reader)
        with _console.progress_bar("reading and training") as progress:
            tagger.set_params(**encoder.parameters(progress))
            tagger.fit_records(records, progress=progress, **where)
    tagger.fields_ = reader.fields
    fitted = tagger.estimator_
    n_terms = len(tagger.vectorizer_.idf_)
    meaning = "" if tagger.meaning_ is None else f", {tagger.meaning_.n_columns} columns of meaning"
    _console.note(f"{n_terms} terms{meaning}, {fitted.n_labels_} tags")
    fitted.origin_ |= records.origin() | {"rows": fitted.n_rows_}
    return tagger
