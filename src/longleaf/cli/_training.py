"""What `train` and `tune` share: checks of options, reading of labelled data, and a model's provenance."""

from __future__ import annotations

import os
import time
from enum import StrEnum
from pathlib import Path
from typing import Any

import typer

from longleaf._validation import DataError
from longleaf.cli import _console
from longleaf.cli._data import Data, load_data
from longleaf.cli._tables import STORE, TABLE, XMLC, data_form, refuse_nameless_table
from longleaf.io import storage
from longleaf.plt import TREES
from longleaf.training.params import MOST_TREES as MOST_TREES
from longleaf.training.positive_weight import MOST_WEIGHT, check_positive_weight
from longleaf.training.solver import MOST_THRESHOLD

LARGEST = 2**31 - 1  # native code uses int32


class Loss(StrEnum):
    """The loss of the node classifiers."""

    log = "log"
    squared_hinge = "squared-hinge"


TreeKind = StrEnum("TreeKind", {name: name for name in TREES})  # type: ignore[misc]


def check_cost(cost: float | None) -> float | None:
    """Reject a C that no estimator accepts."""
    if cost is not None and not 0 < cost <= MOST_WEIGHT:
        raise typer.BadParameter(f"-C must be above 0 and at most {MOST_WEIGHT:g}; got {cost:g}.")
    return cost


def check_threshold(threshold: float | None) -> float | None:
    """Reject a threshold that no estimator accepts."""
    if threshold is not None and not 0 <= threshold <= MOST_THRESHOLD:
        raise typer.BadParameter(
            f"--threshold must be at least 0 and at most {MOST_THRESHOLD:g}; got {threshold:g}."
        )
    return threshold


def check_outside(checkpoint: str, out: str) -> None:
    """Reject, before any work, a checkpoint folder that is, or lies inside, the output folder."""
    if Path(os.path.realpath(checkpoint)).is_relative_to(os.path.realpath(out)):
        raise DataError(f"--checkpoint must be outside the folder of -o; got {checkpoint} and {out}.")


def parse_positive_weight(text: str, names: tuple[str, ...]) -> float | str:
    """Parse a number above 0 or one of the names."""
    try:
        weight: float | str = float(text)
    except ValueError:
        weight = text
    try:
        check_positive_weight(weight, names)
    except ValueError as error:
        raise typer.BadParameter(str(error).replace("positive_weight", "--positive-weight")) from None
    return weight


def is_table(path: str, about_texts: dict[str, Any]) -> bool:
    """Return whether a file holds texts, according to options and format; reject a contradiction."""
    form = data_form(path)
    if about_texts and form in (XMLC, STORE):
        found = "an XMLC file" if form == XMLC else "a folder"
        raise DataError(f"--{next(iter(about_texts))} needs a table of texts; {path} is {found}.")
    if form is None and not about_texts:
        refuse_nameless_table(path)
    return bool(about_texts) or form == TABLE


def load_labelled(path: str) -> Data:
    """Read features and labels to train on, and report their sizes."""
    with _console.waiting(f"reading {path}"):
        rows = load_data(path)
    if rows.Y.nnz == 0:
        raise DataError(f"{rows.name} must have at least one label to train on; got {rows.sizes}.")
    _console.note(f"{rows.name}: {rows.sizes}")
    return rows


def origin(rows: Data) -> dict[str, Any]:
    """Return the provenance of a model trained on these rows."""
    return {"data": rows.name, "data_digest": rows.digest(), "rows": rows.X.shape[0]}


def trained_sentence(out: str, start: float) -> str:
    """Return a sentence with the training time since ``start``, the peak memory and the model size."""
    seconds = time.perf_counter() - start
    memory, size = (_console.in_words(n) for n in (_console.peak_memory(), storage.folder_bytes(out)))
    return f"{out}: trained in {seconds:.1f} s, peak memory {memory}, model size {size}"
