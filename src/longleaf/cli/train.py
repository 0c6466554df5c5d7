"""``longleaf train``."""

from __future__ import annotations

import time
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from longleaf._fitting.checkpoint import check_checkpoint
from longleaf._validation import DataError
from longleaf.br import BR
from longleaf.cli import _console, _vectorizer
from longleaf.cli._cluster import connected
from longleaf.cli._data import check_new_model
from longleaf.cli._options import (
    DataPath,
    MemoryLimit,
    ModelOut,
    Names,
    Propensity,
    Seed,
    Separator,
    Strict,
    TagsField,
    TextFields,
    Threads,
    not_empty,
    parse_propensity,
)
from longleaf.cli._tables import DigestedRecords, given, open_table
from longleaf.cli._training import (
    LARGEST,
    MOST_TREES,
    Loss,
    TreeKind,
    check_cost,
    check_threshold,
    is_table,
    load_labelled,
    origin,
    parse_positive_weight,
    trained_sentence,
)
from longleaf.io.names import read_names
from longleaf.plt import PLT
from longleaf.presets import PRESETS
from longleaf.presets import preset as preset_settings
from longleaf.store import is_store, load_store
from longleaf.tagger import Tagger
from longleaf.text import TextVectorizer

Preset = StrEnum("Preset", {name: name for name in PRESETS})  # type: ignore[misc]
FLAT_SETTINGS = {"loss", "C", "threshold", "positive_weight"}
OPTIONS = {"n_trees": "--trees", "max_leaf": "--max-leaf"}


class Kind(StrEnum):
    """What is trained."""

    plt = "plt"
    br = "br"


def train(
    data: DataPath,
    out: ModelOut,
    preset: Annotated[
        Preset | None,
        typer.Option("--preset", help="A published system's settings; options given beside it win."),
    ] = None,
    trees: Annotated[
        int | None, typer.Option("--trees", min=1, max=MOST_TREES, metavar="N", help="Trees to average.")
    ] = None,
    loss: Annotated[Loss | None, typer.Option("--loss", help="The loss of the node classifiers.")] = None,
    cost: Annotated[
        float | None,
        typer.Option(
            "-C",
            metavar="C",
            help="The cost of an error: a larger one fits the data more closely.",
            callback=check_cost,
        ),
    ] = None,
    arity: Annotated[
        int | None,
        typer.Option("--arity", min=2, max=LARGEST, metavar="N", help="Children of an inner node."),
    ] = None,
    max_leaf: Annotated[
        int | None,
        typer.Option(
            "--max-leaf",
            min=1,
            max=LARGEST,
            metavar="N",
            help="Most labels of a cluster that is not split.",
        ),
    ] = None,
    tree: Annotated[TreeKind | None, typer.Option("--tree", help="How the trees are built.")] = None,
    threshold: Annotated[
        float | None,
        typer.Option(
            "--threshold", metavar="W", help="Drop weights of smaller magnitude.", callback=check_threshold
        ),
    ] = None,
    positive_weight: Annotated[
        str | None,
        typer.Option(
            "--positive-weight",
            metavar="W",
            help="What errors on positive rows cost: a number, propensity (for labels that were never "
            "noted) or inverse-prior. Then do not also ask with --tail.",
        ),
    ] = None,
    propensity: Propensity = None,
    seed: Seed = 1,
    threads: Threads = None,
    model: Annotated[
        Kind, typer.Option("--model", help="Label trees, or one classifier per label (binary relevance).")
    ] = Kind.plt,
    text: TextFields = None,
    tags: TagsField = None,
    separator: Separator = None,
    names: Names = None,
    strict: Strict = False,
    analyzer: _vectorizer.AnalyzerOption = None,
    ngrams: _vectorizer.Ngrams = None,
    chars: _vectorizer.Chars = None,
    min_df: _vectorizer.MinDf = None,
    max_df: _vectorizer.MaxDf = None,
    max_features: _vectorizer.MaxFeatures = None,
    hashing: _vectorizer.Hash = None,
    keep_case: _vectorizer.KeepCase = False,
    checkpoint: Annotated[
        str | None,
        typer.Option(
            "--checkpoint",
            metavar="DIR",
            help="Keep finished parts in this folder; if killed, the same command goes on from there.",
            callback=not_empty,
        ),
    ] = None,
    memory: MemoryLimit = None,
    dask: Annotated[
        str | None,
        typer.Option(
            "--dask",
            metavar="ADDRESS",
            help="Train on a Dask cluster whose scheduler listens here, tcp://host:8786.",
            callback=not_empty,
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace the model that is there.")] = False,
) -> None:
    """Train a model on DATA and save it: on features, or on texts and tags."""
    start = time.perf_counter()
    chosen = given(n_trees=trees, loss=loss, C=cost, arity=arity, max_leaf=max_leaf, tree=tree)
    if threshold is not None:
        chosen["threshold"] = threshold
    if positive_weight is not None:
        known = (BR if model is Kind.br else PLT).named_positive_weights
        chosen["positive_weight"] = parse_positive_weight(positive_weight, known)
    estimator = _make_estimator(model, preset, chosen, seed, threads)
    estimator.propensity = parse_propensity(propensity, estimator)
    words = _vectorizer.vectorizer_settings(
        analyzer=analyzer,
        ngrams=ngrams,
        chars=chars,
        min_df=min_df,
        max_df=max_df,
        max_features=max_features,
        hashing=hashing,
        keep_case=keep_case,
    )
    check_new_model(out, force)
    if checkpoint is not None:
        check_checkpoint(checkpoint)
    fields = given(text=text, tags=tags, separator=separator)
    store = load_store(data) if is_store(data) else None
    named = {} if store is not None and store.tags is not None else given(names=names)
    about_texts = fields | named | given(strict=strict) | _vectorizer.named_option(words)
    trained: PLT | BR | Tagger
    with connected(dask) as client:
        options = {"checkpoint": checkpoint, "client": client}
        if is_table(data, about_texts):
            if memory is not None:
                raise DataError(
                    "--memory needs a store or an XMLC file: bring texts there by longleaf convert."
                )
            vectorizer = TextVectorizer(**words, n_jobs=estimator.n_jobs)
            tagger = Tagger(estimator, vectorizer, None if names is None else read_names(names))
            trained = _train_on_texts(tagger, data, fields, strict, options)
        else:
            options |= {"memory": memory, "scratch": Path(out).parent}
            trained = _train_on_features(estimator, data, options)
            if store is not None and store.tags is not None:
                estimator.origin_ |= store.meta["origin"]
                trained = store.tagger(estimator, None if names is None else read_names(names))
    trained.save(out, force=force)
    typer.echo(trained_sentence(out, start))


def _make_estimator(
    kind: Kind, preset: Preset | None, settings: dict[str, Any], seed: int, threads: int | None
) -> PLT | BR:
    """Give the estimator that the options ask for; what is not asked for stays at its default."""
    common: dict[str, Any] = {"random_state": seed, "n_jobs": -1 if threads is None else threads}
    settings = {name: str(v) if isinstance(v, StrEnum) else v for name, v in settings.items()}
    if kind is Kind.br:
        foreign = sorted(set(settings) - FLAT_SETTINGS) + ["preset"] * (preset is not None)
        if foreign:
            option = OPTIONS.get(foreign[0], f"--{foreign[0]}")
            raise typer.BadParameter(f"{option} is about trees; it cannot be given with --model br.")
        return BR(**settings, **common)
    named = preset_settings(preset.value) if preset is not None else {}
    if settings.get("loss", named.get("loss")) != named.get("loss"):
        named.pop("C", None)  # it was chosen for the preset's own loss
    estimator = PLT(**(named | settings), **common)
    if estimator.tree == "merged" and estimator.arity & (estimator.arity - 1):
        raise typer.BadParameter(f"--arity must be a power of two with --tree merged; got {estimator.arity}.")
    return estimator


def _train_on_features(estimator: PLT | BR, path: str, options: dict[str, Any]) -> PLT | BR:
    rows = load_labelled(path)
    with _console.progress_bar("training") as progress:
        estimator.fit(rows.X, rows.Y, progress=progress, **options)
    estimator.origin_ |= origin(rows)
    return estimator


def _train_on_texts(
    tagger: Tagger, path: str, fields: dict[str, Any], strict: bool, where: dict[str, Any]
) -> Tagger:
    with open_table(path, fields, strict=strict) as reader:
        records = DigestedRecords(reader)
        with _console.progress_bar("reading and training") as progress:
            tagger.fit_records(records, progress=progress, **where)
    tagger.fields_ = reader.fields
    fitted = tagger.estimator_
    _console.note(f"{fitted.n_features_in_} terms, {fitted.n_labels_} tags")
    fitted.origin_ |= records.origin() | {"rows": fitted.n_rows_}
    return tagger
