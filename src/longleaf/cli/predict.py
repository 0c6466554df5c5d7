"""``longleaf predict``."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from typing import IO, Annotated, Any

import numpy as np
import numpy.typing as npt
import typer

from longleaf._estimator import LabelEstimator
from longleaf.cli import _console, _options
from longleaf.cli._data import check_features_match, check_new_file, load_data, load_gain
from longleaf.io.streams import open_replacing
from longleaf.models import load
from longleaf.search import TopK

BATCH_ROWS = 2048
DIGITS = 7  # what a 32-bit float holds
STANDARD_OUTPUT = "-"


def predict(
    model: _options.ModelPath,
    data: _options.DataPath,
    k: Annotated[int, typer.Option("-k", min=1, metavar="K", help="Labels per row.")] = 5,
    tail: _options.Tail = None,
    gain: Annotated[
        str | None,
        typer.Option("--gain", metavar="FILE", help="What each label is worth, one number per line."),
    ] = None,
    propensity: _options.Propensity = None,
    search: _options.SearchOption = _options.Search.exact,
    beam: _options.Beam = 10,
    threads: _options.Threads = None,
    out: Annotated[
        str,
        typer.Option("-o", "--out", metavar="OUT", help="The file to write; left out, standard output."),
    ] = STANDARD_OUTPUT,
    force: Annotated[bool, typer.Option("--force", help="Replace the file that is there.")] = False,
) -> None:
    """Write the best labels of each row of DATA as JSON, one line per row."""
    if tail is not None and gain is not None:
        raise typer.BadParameter("--tail and --gain cannot be given together.")
    if gain == data == "-":
        raise typer.BadParameter("Only one of DATA and --gain can be standard input.")
    if out != STANDARD_OUTPUT:
        check_new_file(out, force)
    trained = load(model)
    dial: dict[str, Any] = {
        "tail": tail,
        "propensity": _options.parse_propensity(propensity, trained),
        "gain": None if gain is None else load_gain(gain, trained.n_labels_),
        "search": search.value,
        "beam": beam,
        "n_jobs": threads,
    }
    with _console.waiting(f"reading {data}"):
        rows = load_data(data)
    check_features_match(rows, trained)
    if out == STANDARD_OUTPUT:
        _write(sys.stdout.buffer, trained, rows.X, min(k, trained.n_labels_), dial)
        return
    with open_replacing(out) as file, _console.progress_bar("predicting") as progress:
        _write(file, trained, rows.X, min(k, trained.n_labels_), dial, progress)


def _write(
    file: IO[bytes], model: LabelEstimator, X: Any, k: int, dial: dict[str, Any], progress: Any = None
) -> None:
    """Predict and write a batch of rows at a time, so that a reader need not wait for the last."""
    for begin in range(0, X.shape[0], BATCH_ROWS):
        batch = X[begin : begin + BATCH_ROWS]
        top = model.top_k(batch, k, **dial)
        file.write("".join(_lines(top, _probabilities(model, batch, top, dial), begin)).encode())
        file.flush()
        if progress is not None:
            progress((begin + batch.shape[0]) / X.shape[0])


def _probabilities(model: LabelEstimator, X: Any, top: TopK, dial: dict[str, Any]) -> npt.NDArray[np.float32]:
    """Give the labels' probabilities [rows, k]: the scores themselves where every gain is 1."""
    if dial["gain"] is None and not dial["tail"]:
        return top.scores
    # Not score / gain: a score may be too large or too small for a float where a gain is extreme.
    probability = np.zeros_like(top.scores)
    row, place = np.nonzero(top.labels >= 0)
    probability[row, place] = model.probability(X, row, top.labels[row, place])
    return probability


def _lines(top: TopK, probability: npt.NDArray[np.float32], first_row: int) -> Iterator[str]:
    for row, (labels, scores, chances) in enumerate(
        zip(top.labels.tolist(), top.scores.tolist(), probability.tolist(), strict=True), first_row
    ):
        found = [
            {"label": label, "score": _short(score), "probability": _short(chance)}
            for label, score, chance in zip(labels, scores, chances, strict=True)
            if label >= 0
        ]
        yield json.dumps({"row": row, "id": None, "labels": found}) + "\n"


def _short(number: float) -> float:
    """Leave out the digits that a 32-bit float does not have."""
    return float(f"{number:.{DIGITS}g}")
