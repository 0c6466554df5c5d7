"""``longleaf import``."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

import numpy as np
import typer

from longleaf.cli import _console, _options
from longleaf.cli._data import check_new_model, load_data, load_gain
from longleaf.importing import import_model
from longleaf.io import storage


class Kind(StrEnum):
    """The system that trained a model."""

    omikuji = "omikuji"
    pecos = "pecos"
    napkinxc = "napkinxc"


class Bits(StrEnum):
    """The number of bits of a stored weight."""

    eight = "8"
    thirty_two = "32"


def import_(
    model: Annotated[
        str,
        typer.Argument(
            metavar="MODEL", help="Folder that the other system saved.", callback=_options.not_empty
        ),
    ],
    out: _options.ModelOut,
    kind: Annotated[
        Kind | None,
        typer.Option("--from", help="The other system; default: detected from the folder's files."),
    ] = None,
    data: Annotated[
        str | None,
        typer.Option(
            "--data",
            metavar="TRAIN",
            help="XMLC file that the model was trained on; --tail needs its label counts.",
            callback=_options.not_empty,
        ),
    ] = None,
    counts: Annotated[
        str | None,
        typer.Option(
            "--counts",
            metavar="FILE",
            help="Instead of --data: training count of each label, one number per line.",
            callback=_options.not_empty,
        ),
    ] = None,
    rows: Annotated[
        int | None,
        typer.Option("--rows", min=1, metavar="N", help="With --counts: number of training rows."),
    ] = None,
    features: Annotated[
        int | None,
        typer.Option(
            "--features", min=1, metavar="N", help="Number of features, if the folder records fewer."
        ),
    ] = None,
    weight_bits: Annotated[
        Bits, typer.Option("--weight-bits", help="32 keeps weights unchanged; 8 makes the model smaller.")
    ] = Bits.thirty_two,
    force: _options.ForceModel = False,
) -> None:
    """Convert a model trained by omikuji, PECOS XR-Linear or napkinXC, without retraining."""
    if (counts is None) != (rows is None):
        raise typer.BadParameter("--counts and --rows must be given together.")
    if counts is not None and data is not None:
        raise typer.BadParameter("--counts and --data cannot be given together.")
    check_new_model(out, force)
    known = _known(data, counts, rows)
    if features is not None:
        known["n_features"] = features
    with _console.waiting(f"reading {model}"):
        imported = import_model(
            model, kind=None if kind is None else kind.value, weight_bits=int(weight_bits.value), **known
        )
    imported.save(out, force=force)
    if "label_counts" not in known:
        _console.note(
            "Label counts are unknown, so --tail cannot be used; provide them with --data or --counts."
        )
    size = _console.in_words(storage.folder_bytes(out))
    typer.echo(
        f"{out}: imported from {imported.origin_['imported_from']}, trees {len(imported.trees_)}, "
        f"features {imported.n_features_in_}, labels {imported.n_labels_}, model size {size}"
    )


def _known(data: str | None, counts: str | None, rows: int | None) -> dict[str, Any]:
    """Return what the options say about the training data, as arguments of `import_model`."""
    if counts is not None:
        return {"label_counts": load_gain(counts, None, "count"), "n_rows": rows}
    if data is None:
        return {}
    with _console.waiting(f"reading {data}"):
        read = load_data(data)
    return {
        "label_counts": np.bincount(read.Y.indices, minlength=read.Y.shape[1]),
        "n_rows": read.Y.shape[0],
        "n_features": read.X.shape[1],
    }
