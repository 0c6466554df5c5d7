"""Predictions as JSON, one line a row, a batch of rows at a time."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from longleaf._base.estimator import LabelEstimator
from longleaf.cli._filters import filtered_top_k
from longleaf.cli._tables import record_batches
from longleaf.io.tables import TableReader
from longleaf.search import TopK
from longleaf.tagger import MOST_WORDS, Tagger

BATCH_ROWS = 2048
DIGITS = 7  # what a 32-bit float holds

Describe = Callable[[int], dict[str, Any]]
"""Gives what a line says of a label besides its score."""
Words = Callable[["Batch", int, int], list[dict[str, Any]]]
"""Gives the words that spoke for a label, of the batch's row in this place."""


@dataclass(frozen=True, eq=False)
class Batch:
    """Some rows: features, numbers and ids; ``share`` of all rows are done with them, if that is known."""

    X: Any
    rows: Sequence[int]
    ids: Sequence[str | None]
    share: float | None = None
    texts: Sequence[str] = ()


def matrix_batches(X: Any) -> Iterator[Batch]:
    """Cut a matrix into batches; its rows have no ids."""
    n_rows = X.shape[0]
    for begin in range(0, n_rows, BATCH_ROWS):
        end = min(begin + BATCH_ROWS, n_rows)
        yield Batch(X[begin:end], range(begin, end), [None] * (end - begin), end / n_rows)


def text_batches(reader: TableReader, tagger: Tagger) -> Iterator[Batch]:
    """Vectorize a table as it is read."""
    for records in record_batches(reader):
        texts = [record.text for record in records]
        X = tagger.vectorizer_.transform(texts)
        yield Batch(X, [record.row for record in records], [record.id for record in records], texts=texts)


def as_label(label: int) -> dict[str, Any]:
    """Describe a label by its number."""
    return {"label": label}


def as_tag(tagger: Tagger) -> Describe:
    """Describe labels by tag, and by name where there are names."""
    names = tagger.names
    if names is None:
        return lambda label: {"tag": tagger.classes_[label]}
    return lambda label: {"tag": (tag := tagger.classes_[label]), "name": names.get(tag, tag)}


def words_of(tagger: Tagger) -> Words:
    """Name the words that spoke for a label of a row, and what each added to the log probability."""

    def words(batch: Batch, row: int, label: int) -> list[dict[str, Any]]:
        found = tagger._explain_row(batch.X, row, label, batch.texts[row]).words_for[:MOST_WORDS]
        return [{"word": word, "value": _short(value)} for word, value in found]

    return words


def write_lines(
    file: IO[bytes],
    model: LabelEstimator,
    batches: Iterable[Batch],
    describe: Describe,
    k: int,
    dial: dict[str, Any],
    *,
    group: npt.NDArray[np.int64] | None = None,
    words: Words | None = None,
    progress: Callable[[float], None] | None = None,
) -> None:
    """Predict and write a batch of rows at a time, so that a reader need not wait for the last."""
    for batch in batches:
        top = filtered_top_k(model, batch.X, k, group, dial)
        lines = _lines(top, _probabilities(model, batch.X, top, dial), batch, describe, words)
        file.write("".join(lines).encode())
        file.flush()
        if progress is not None and batch.share is not None:
            progress(batch.share)


def _probabilities(model: LabelEstimator, X: Any, top: TopK, dial: dict[str, Any]) -> npt.NDArray[np.float32]:
    """Give the labels' probabilities [rows, k]: the scores themselves where every gain is 1."""
    if dial["gain"] is None and not dial["tail"]:
        return top.scores
    # Not score / gain: a score may be too large or too small for a float where a gain is extreme.
    probability = np.zeros_like(top.scores)
    row, place = np.nonzero(top.labels >= 0)
    probability[row, place] = model.probability(X, row, top.labels[row, place])
    return probability


def _lines(
    top: TopK,
    probability: npt.NDArray[np.float32],
    batch: Batch,
    describe: Describe,
    words: Words | None,
) -> Iterator[str]:
    answers = zip(top.labels.tolist(), top.scores.tolist(), probability.tolist(), strict=True)
    for place, (labels, scores, chances) in enumerate(answers):
        found = [
            describe(label)
            | {"score": _short(score), "probability": _short(chance)}
            | ({} if words is None else {"words": words(batch, place, label)})
            for label, score, chance in zip(labels, scores, chances, strict=True)
            if label >= 0
        ]
        yield json.dumps({"row": batch.rows[place], "id": batch.ids[place], "labels": found}) + "\n"


def _short(number: float) -> float:
    """Leave out the digits that a 32-bit float does not have."""
    return float(f"{number:.{DIGITS}g}")
