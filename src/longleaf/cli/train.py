"""``longleaf train``."""

from __future__ import annotations

import math
import time
from enum import StrEnum
from typing import Annotated, Any

import typer

from longleaf._validation import DataError, ModelExistsError
from longleaf.br import BR
from longleaf.cli import _console
from longleaf.cli._data import Data, load_data
from longleaf.cli._options import DataPath, Names, Separator, Strict, TagsField, TextFields, Threads
from longleaf.cli._tables import TABLE, XMLC, DigestedRecords, data_form, given, open_table
from longleaf.io import storage
from longleaf.io.names import read_names
from longleaf.plt import PLT
from longleaf.presets import PRESETS
from longleaf.presets import preset as preset_settings
from longleaf.tagger import Tagger

Preset = StrEnum("Preset", {name: name for name in PRESETS})  # type: ignore[misc]
LARGEST_SEED = 2**32 - 1


class Kind(StrEnum):
    """What is trained."""

    plt = "plt"
    br = "br"


class Loss(StrEnum):
    """The loss of the classifiers."""

    log = "log"
    squared_hinge = "squared-hinge"


def train(
    data: DataPath,
    out: Annotated[
        str, typer.Option("-o", "--out", metavar="MODEL", help="The folder to write the model to.")
    ],
    preset: Annotated[
        Preset | None,
        typer.Option("--preset", help="A published system's settings; options given beside it win."),
    ] = None,
    trees: Annotated[
        int | None, typer.Option("--trees", min=1, metavar="N", help="Trees to average.")
    ] = None,
    loss: Annotated[Loss | None, typer.Option("--loss", help="The loss of the node classifiers.")] = None,
    cost: Annotated[
        float | None,
        typer.Option(
            "-C", metavar="C", help="The cost of an error: a larger one fits the data more closely."
        ),
    ] = None,
    arity: Annotated[
        int | None, typer.Option("--arity", min=2, metavar="N", help="Children of an inner node.")
    ] = None,
    max_leaf: Annotated[
        int | None,
        typer.Option("--max-leaf", min=1, metavar="N", help="Most labels of a cluster that is not split."),
    ] = None,
    seed: Annotated[
        int, typer.Option("--seed", min=0, max=LARGEST_SEED, help="The same seed gives the same model.")
    ] = 1,
    threads: Threads = None,
    model: Annotated[
        Kind, typer.Option("--model", help="Label trees, or one classifier per label (binary relevance).")
    ] = Kind.plt,
    text: TextFields = None,
    tags: TagsField = None,
    separator: Separator = None,
    names: Names = None,
    strict: Strict = False,
    force: Annotated[bool, typer.Option("--force", help="Replace the model that is there.")] = False,
) -> None:
    """Train a model on DATA and save it: on features, or on texts and tags."""
    start = time.perf_counter()
    chosen = {"n_trees": trees, "loss": loss, "C": cost, "arity": arity, "max_leaf": max_leaf}
    settings = {name: value for name, value in chosen.items() if value is not None}
    estimator = _make_estimator(model, preset, settings, seed, threads)
    try:
        storage.check_target(out, force)
    except ModelExistsError as error:
        raise ModelExistsError(str(error).replace("with force", "with --force")) from None
    fields = given(text=text, tags=tags, separator=separator)
    about_texts = fields | given(names=names, strict=strict)
    form = data_form(data)
    if about_texts and form == XMLC:
        raise DataError(f"--{next(iter(about_texts))} is for tables of texts; {data} is an XMLC file.")
    trained: PLT | BR | Tagger
    if about_texts or form == TABLE:
        trained = _train_on_texts(estimator, data, fields, names, strict)
    else:
        trained = _train_on_features(estimator, data)
    trained.save(out, force=force)
    seconds = time.perf_counter() - start
    memory, size = (_console.in_words(n) for n in (_console.peak_memory(), storage.folder_bytes(out)))
    typer.echo(f"{out}: trained in {seconds:.1f} s, peak memory {memory}, model size {size}")


def _make_estimator(
    kind: Kind, preset: Preset | None, settings: dict[str, Any], seed: int, threads: int | None
) -> PLT | BR:
    """Give the estimator that the options ask for; what is not asked for stays at its default."""
    common: dict[str, Any] = {"random_state": seed, "n_jobs": -1 if threads is None else threads}
    settings = {name: str(v) if isinstance(v, StrEnum) else v for name, v in settings.items()}
    if not 0 < settings.get("C", 1.0) < math.inf:
        raise typer.BadParameter(f"-C must be a finite number above 0; got {settings['C']:g}.")
    if kind is Kind.br:
        foreign = sorted(set(settings) - {"loss", "C"}) + ["preset"] * (preset is not None)
        if foreign:
            option = {"n_trees": "--trees", "max_leaf": "--max-leaf"}.get(foreign[0], f"--{foreign[0]}")
            raise typer.BadParameter(f"{option} is about trees; it cannot be given with --model br.")
        return BR(**settings, **common)
    named = preset_settings(preset.value) if preset is not None else {}
    if settings.get("loss", named.get("loss")) != named.get("loss"):
        named.pop("C", None)  # it was chosen for the preset's own loss
    return PLT(**(named | settings), **common)


def _train_on_features(estimator: PLT | BR, path: str) -> PLT | BR:
    with _console.waiting(f"reading {path}"):
        rows = load_data(path)
    if rows.Y.nnz == 0:
        raise DataError(f"{rows.name} must have at least one label to train on; got {rows.sizes}.")
    _console.note(f"{rows.name}: {rows.sizes}")
    with _console.progress_bar("training") as progress:
        estimator.fit(rows.X, rows.Y, progress=progress)
    estimator.origin_ |= _origin(rows)
    return estimator


def _train_on_texts(
    estimator: PLT | BR, path: str, fields: dict[str, Any], names: str | None, strict: bool
) -> Tagger:
    tagger = Tagger(estimator, names=None if names is None else read_names(names))
    with open_table(path, fields, strict=strict) as reader:
        records = DigestedRecords(reader)
        with _console.progress_bar("reading and training") as progress:
            tagger.fit_records(records, progress=progress)
    tagger.fields_ = reader.fields
    fitted = tagger.estimator_
    _console.note(f"{fitted.n_features_in_} terms, {fitted.n_labels_} tags")
    origin = {"data": reader.report.source, "data_digest": records.digest(), "rows": fitted.n_rows_}
    fitted.origin_ |= origin | {"faults": dict(reader.report.counts)}
    return tagger


def _origin(data: Data) -> dict[str, Any]:
    return {"data": data.name, "data_digest": data.digest(), "rows": data.X.shape[0]}
