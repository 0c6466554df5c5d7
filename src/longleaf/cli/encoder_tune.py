"""``longleaf encoder tune``."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from longleaf._validation import DataError, ModelExistsError
from longleaf.cli import _console, _options
from longleaf.cli._tables import given_fields, open_table, report
from longleaf.cli._training import check_outside
from longleaf.encoders.tuning.extras import check_extra
from longleaf.encoders.tuning.fine_tuned import Epoch
from longleaf.encoders.tuning.fine_tuning import fine_tune
from longleaf.text.fields import Text

LOGGER = "longleaf.encoders.tuning"
LARGEST_RATE = 1.0


class Negatives(StrEnum):
    """Which tags a step trains."""

    auto = "auto"
    all = "all"
    tree = "tree"


def tune(
    data: Annotated[
        str,
        typer.Argument(
            metavar="DATA",
            help="JSONL, CSV, TSV, Parquet or Excel (.xlsx) with texts and tags; may be compressed "
            "(.gz, .xz, .bz2); - reads standard input.",
            callback=_options.not_empty,
        ),
    ],
    out: Annotated[
        str,
        typer.Option("-o", "--out", metavar="FOLDER", help="Folder to write.", callback=_options.not_empty),
    ],
    encoder: Annotated[
        str,
        typer.Option(
            "--encoder",
            metavar="ENCODER",
            help="Where to start: minilm, the folder of a model, or a name on the Hugging Face hub "
            "(owner/name).",
            callback=_options.not_empty,
        ),
    ] = "minilm",
    epochs: Annotated[int, typer.Option("--epochs", min=1, metavar="N", help="Passes over the texts.")] = 12,
    max_tokens: Annotated[
        int, typer.Option("--max-tokens", min=1, metavar="N", help="Cut longer texts, here and in use.")
    ] = 256,
    batch_size: Annotated[
        int, typer.Option("--batch-size", min=1, metavar="N", help="Texts per step.")
    ] = 128,
    learning_rate: Annotated[
        float,
        typer.Option("--learning-rate", metavar="R", help="The largest learning rate of the encoder."),
    ] = 2e-4,
    validation: Annotated[
        str,
        typer.Option(
            "--validation",
            metavar="DATA|SHARE",
            help="Texts to judge epochs by: another table, or a share of DATA; 0 judges none.",
            callback=_options.not_empty,
        ),
    ] = "0.05",
    negatives: Annotated[
        Negatives,
        typer.Option(
            "--negatives",
            help="Tags that a step trains: all, or (tree) those of its texts and 60 likely ones for each; "
            "auto: tree with more than 50,000 tags.",
        ),
    ] = Negatives.auto,
    seed: _options.Seed = 1,
    device: Annotated[
        str,
        typer.Option(
            "--device", metavar="auto|cpu|cuda", help="Where to train; auto: a GPU, if there is one."
        ),
    ] = "auto",
    checkpoint: Annotated[
        str | None,
        typer.Option(
            "--checkpoint",
            metavar="DIR",
            help="Keep the state of training here; after a crash, the same command resumes.",
            callback=_options.not_empty,
        ),
    ] = None,
    text: _options.TextFields = None,
    tags: _options.TagsField = None,
    separator: _options.Separator = None,
    strict: _options.Strict = False,
    force: Annotated[
        bool, typer.Option("--force", help="Replace an encoder that this command wrote.")
    ] = False,
) -> None:
    """Fine-tune an encoder on the texts and tags of DATA, for longleaf train --encoder FOLDER."""
    check_extra("longleaf encoder tune")
    _check_out(out, force, checkpoint)
    if device != "auto":
        _check_device(device)
    fields = given_fields(text=text, tags=tags, separator=separator)
    share = _share(validation)
    texts, labels = _read(data, fields, strict)
    judged = share if share is not None else _read(validation, fields, strict)
    with _console.progress_bar("fine-tuning") as progress, _notes():
        found = fine_tune(
            texts,
            labels,
            out,
            encoder=encoder,
            epochs=epochs,
            max_tokens=max_tokens,
            batch_size=batch_size,
            learning_rate=learning_rate,
            validation=judged,
            negatives=negatives.value,
            seed=seed,
            device=None if device == "auto" else device,
            checkpoint=checkpoint,
            progress=progress,
            report=_show,
            force=force,
        )
    typer.echo(
        f"{out}: the encoder of epoch {found.best}, trained in {found.seconds:.0f} s on {found.device}"
    )


def _check_out(out: str, force: bool, checkpoint: str | None) -> None:
    from longleaf.encoders.tuning.output import check_output

    try:
        check_output(Path(out), force)
    except ModelExistsError as error:
        raise ModelExistsError(str(error).replace("with force", "with --force")) from None
    if checkpoint is not None:
        check_outside(checkpoint, out)


def _check_device(name: str) -> None:
    from longleaf.encoders.tuning.device import pick_device

    pick_device(name)


def _share(validation: str) -> float | None:
    """Return the share of the data to hold out; None for another table."""
    try:
        share = float(validation)
    except ValueError:
        return None
    if not 0 <= share < 1:
        raise DataError(f"--validation must be a table, or a share from 0 to below 1; got {validation}.")
    return share


def _read(path: str, fields: dict[str, Any], strict: bool) -> tuple[list[Text], list[list[str]]]:
    texts: list[Text] = []
    tags = []
    with open_table(path, fields, strict=strict) as reader:
        for record in reader:
            texts.append(record.content())
            tags.append(record.tags)
    report(reader)
    return texts, tags


def _show(epoch: Epoch) -> None:
    """Print an epoch, below a heading before the first."""
    names = list(epoch.measures)
    if epoch.number == 1:
        typer.echo("".join(f"{name:>9}" for name in ("epoch", "loss", *names, "seconds")))
    figures = "".join(f"{epoch.measures[name]:9.2f}" for name in names)
    typer.echo(f"{epoch.number:9d}{epoch.loss:9.3f}{figures}{epoch.seconds:9.1f}")


@contextmanager
def _notes() -> Iterator[None]:
    """Show what fine-tuning says about its size and time."""
    logger = logging.getLogger(LOGGER)
    level = logger.level
    logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        logger.setLevel(level)
