"""What a training keeps on disk to resume from."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from longleaf import __version__
from longleaf._validation import DataError
from longleaf.encoders.tuning.token_rows import TokenRows
from longleaf.encoders.tuning.training import Arrays
from longleaf.io._bundle import UNFINISHED, open_bundle, write_arrays
from longleaf.training.checkpoint import CheckpointError, open_checkpoint

STATE = "encoder.bundle"
SECONDS_BETWEEN = 60.0
COST = 20.0
"""Keeping the state takes at most one of so many seconds."""


class TrainingKeeper:
    """The file of a training's state; it is whole, or not there.

    Parameters
    ----------
    folder : Path
    seconds : float
        The least time between two writes in the middle of an epoch.
    """

    def __init__(self, folder: Path, seconds: float) -> None:
        self.path = folder / STATE
        self._seconds = self._wait = seconds
        self._last = time.monotonic()

    def load(self) -> tuple[dict[str, Any], Arrays] | None:
        """Return the facts and arrays that were kept last, if any."""
        try:
            bundle = open_bundle(self.path)
        except FileNotFoundError:
            return None
        except DataError as error:
            raise CheckpointError(f"{str(error).rstrip('.')}; remove {self.path} to start over.") from None
        return dict(bundle.meta["facts"]), bundle.map()

    def is_due(self) -> bool:
        """Return whether it is time to keep the state."""
        return time.monotonic() - self._last >= self._wait

    def keep(self, facts: dict[str, Any], arrays: Arrays) -> None:
        """Replace the state."""
        begin = time.monotonic()
        try:
            write_arrays(self.path, {"facts": facts}, arrays)
        except BaseException:
            self.path.with_name(self.path.name + UNFINISHED).unlink(missing_ok=True)
            raise
        self._last = time.monotonic()
        self._wait = max(self._seconds, COST * (self._last - begin))


@contextmanager
def open_keeper(
    path: Path,
    settings: Mapping[str, Any],
    tokens: Sequence[TokenRows],
    labels: Sequence[Any],
    *,
    seconds: float = SECONDS_BETWEEN,
) -> Iterator[TrainingKeeper]:
    """Begin a checkpoint, or continue one of the same training; it is locked meanwhile.

    Parameters
    ----------
    path : Path
        The folder; it is made if it is not there.
    settings : mapping
        All that the result depends on beside the data, with a ``seed``; plain JSON.
    tokens : sequence of TokenRows
        The training texts, and those that are held out.
    labels : sequence of csr_array
        Their labels.
    seconds : float
        As of `TrainingKeeper`.
    """
    description = {
        "longleaf": __version__,
        "model": "fine-tuned encoder",
        "settings": dict(settings),
        "seeds": [settings["seed"]],
        "features": data_digest(tokens, ()),
        "labels": data_digest((), labels),
        "sample_weight": "",
    }
    with open_checkpoint(path, description, any_seeds=False):
        yield TrainingKeeper(path, seconds)


def data_digest(tokens: Sequence[TokenRows], labels: Sequence[Any]) -> str:
    """Return the SHA-256 in hexadecimal of token numbers and labels."""
    sha = hashlib.sha256()
    for rows in tokens:
        sha.update(str((len(rows), len(rows.ids))).encode())
        sha.update(np.ascontiguousarray(rows.offsets, "<i8").data)
        sha.update(np.ascontiguousarray(rows.ids, "<i4").data)
    for Y in labels:
        sha.update(str((*map(int, Y.shape), int(Y.nnz))).encode())
        sha.update(np.ascontiguousarray(Y.indptr, "<i8").data)
        sha.update(np.ascontiguousarray(Y.indices, "<i4").data)
    return sha.hexdigest()
