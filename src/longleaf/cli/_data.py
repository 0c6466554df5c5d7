"""What commands read: data sets and gain files, each fault named with its file and line."""

from __future__ import annotations

import hashlib
import os
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
import numpy.typing as npt

from longleaf._validation import DataError, ModelExistsError
from longleaf.io import storage
from longleaf.io._replace import staging_folder
from longleaf.io.streams import open_replacing, read_chunks
from longleaf.io.xmlc import load_xmlc
from longleaf.search.top_k import LARGEST_GAIN
from longleaf.store import load_store

if TYPE_CHECKING:
    from longleaf.estimator import LabelEstimator

STANDARD_INPUT = "-"
GAIN_LIMITS = f"must be a finite number from 0 to {LARGEST_GAIN:g}"


@dataclass(frozen=True)
class Data:
    """Features [rows, features] and labels [rows, labels] of a file, and what messages call it."""

    name: str
    X: Any
    Y: Any

    @property
    def sizes(self) -> str:
        """How much there is, in words."""
        return f"{self.X.shape[0]} rows, {self.X.shape[1]} features, {self.Y.shape[1]} labels"

    def digest(self) -> str:
        """Give a SHA-256 over sizes and content; the same for a file and its compressed copy."""
        sha = hashlib.sha256(str((*self.X.shape, self.Y.shape[1])).encode())
        for matrix in (self.X, self.Y):
            sha.update(np.ascontiguousarray(matrix.indptr, "<i8").data)
            sha.update(np.ascontiguousarray(matrix.indices, "<i4").data)
        sha.update(np.ascontiguousarray(self.X.data, "<f4").data)
        return f"sha256:{sha.hexdigest()}"


def open_source(path: str) -> str | BinaryIO:
    """Give what to read from: the path, or standard input for ``-``."""
    if path != STANDARD_INPUT:
        return path
    if sys.stdin is None:
        raise DataError("Standard input is closed; name a file in place of -.")
    return sys.stdin.buffer


def load_data(path: str) -> Data:
    """Read a data set, or open a store; the one place that knows which formats there are."""
    if path != STANDARD_INPUT and Path(path).is_dir():
        store = load_store(path)
        return Data(os.fspath(path), store.X, store.Y)
    X, Y = load_xmlc(open_source(path))
    return Data("<stdin>" if path == STANDARD_INPUT else os.fspath(path), X, Y)


def check_features_match(data: Data, model: LabelEstimator) -> None:
    """Refuse data of another width than the model was trained on."""
    if data.X.shape[1] != model.n_features_in_:
        raise DataError(
            f"{data.name} must have {model.n_features_in_} features, as the model has; got {data.X.shape[1]}."
        )


def check_labels_match(data: Data, model: LabelEstimator) -> None:
    """Refuse true labels that the model numbers otherwise, and files without a row to judge by."""
    if data.Y.shape[1] != model.n_labels_:
        raise DataError(
            f"{data.name} must have {model.n_labels_} labels, as the model has; got {data.Y.shape[1]}."
        )
    if data.Y.shape[0] == 0:
        raise DataError(f"{data.name} must have at least one row; got 0.")


def load_gain(path: str, n_labels: int | None, what: str = "gain") -> npt.NDArray[np.float64]:
    """Read one number per line, one line per label; blank lines are allowed at the end only."""
    lines = b"".join(read_chunks(open_source(path))).rstrip().split(b"\n")
    if lines == [b""]:
        lines = []
    gains = np.array([_gain(path, number, line, what) for number, line in enumerate(lines, 1)], np.float64)
    if n_labels is not None and len(gains) != n_labels:
        raise DataError(f"{path} must have {n_labels} lines, one number for each label; got {len(gains)}.")
    return gains


def _gain(path: str, number: int, line: bytes, what: str) -> float:
    gain = parse_gain(line)
    if gain is None:
        found = line[:40].decode("utf-8", "replace").strip()
        raise DataError(f"{path}, line {number}: a {what} {GAIN_LIMITS}; got {found!r}.")
    return gain


def parse_gain(text: str | bytes) -> float | None:
    """Read a gain; None if it is no number or out of its limits."""
    try:
        gain = float(text)
    except ValueError:
        return None
    return gain if 0 <= gain <= LARGEST_GAIN else None


def check_new_file(path: str, force: bool) -> None:
    """Refuse, before any work, a path that no file can be written to or that is taken."""
    target = Path(path)
    if not target.parent.is_dir():
        raise DataError(f"{path} cannot be written: its folder does not exist.")
    if os.path.lexists(target):
        if not target.is_file():
            raise DataError(f"{path} cannot be written: something other than a file is there.")
        if not force:
            raise DataError(f"{path} exists already; choose another path or replace it with --force.")
    with suppress(_ProbedError), open_replacing(target):
        raise _ProbedError  # a file can be made there; it is gone again, and what was there stays


def check_not_read(out: str, *inputs: str | None) -> None:
    """Refuse to write over a file that the same command reads."""
    for path in inputs:
        if path is None or path == STANDARD_INPUT or not (os.path.exists(out) and os.path.exists(path)):
            continue
        if os.path.samefile(out, path):
            raise DataError(f"{out} is read by this command, which cannot replace it; choose another -o.")


def check_new_model(path: str, force: bool, kind: str = "model") -> None:
    """Refuse, before any work, a path that no model (or store) can be saved to or that is taken."""
    try:
        storage.check_target(path, force, kind)
    except ModelExistsError as error:
        raise ModelExistsError(str(error).replace("with force", "with --force")) from None
    with staging_folder(Path(os.path.realpath(path))):
        pass  # a folder can be made there


class _ProbedError(Exception):
    """Ends a write that was only a trial."""
