"""Reading data sets and gain files; error messages name the file and line."""

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
    """Features [rows, features] and labels [rows, labels] of a file, and its name in messages."""

    name: str
    X: Any
    Y: Any

    @property
    def sizes(self) -> str:
        """The numbers of rows, features and labels, for messages."""
        return f"{self.X.shape[0]} rows, {self.X.shape[1]} features, {self.Y.shape[1]} labels"

    def digest(self) -> str:
        """Return the SHA-256 of sizes and content; it is the same for a file and its compressed copy."""
        sha = hashlib.sha256(str((*self.X.shape, self.Y.shape[1])).encode())
        for matrix in (self.X, self.Y):
            sha.update(np.ascontiguousarray(matrix.indptr, "<i8").data)
            sha.update(np.ascontiguousarray(matrix.indices, "<i4").data)
        sha.update(np.ascontiguousarray(self.X.data, "<f4").data)
        return f"sha256:{sha.hexdigest()}"


def open_source(path: str) -> str | BinaryIO:
    """Return the path, or standard input for ``-``."""
    if path != STANDARD_INPUT:
        return path
    if sys.stdin is None:
        raise DataError("Standard input is closed; name a file in place of -.")
    return sys.stdin.buffer


def load_data(path: str) -> Data:
    """Read an XMLC file or open a store."""
    if path != STANDARD_INPUT and Path(path).is_dir():
        store = load_store(path)
        return Data(os.fspath(path), store.X, store.Y)
    X, Y = load_xmlc(open_source(path))
    return Data("<stdin>" if path == STANDARD_INPUT else os.fspath(path), X, Y)


def check_features_match(data: Data, model: LabelEstimator) -> None:
    """Reject data whose number of features differs from the model's."""
    if data.X.shape[1] != model.n_features_in_:
        raise DataError(
            f"{data.name} must have {model.n_features_in_} features, as the model has; got {data.X.shape[1]}."
        )


def check_labels_match(data: Data, model: LabelEstimator) -> None:
    """Reject data whose number of labels differs from the model's, and data without rows."""
    if data.Y.shape[1] != model.n_labels_:
        raise DataError(
            f"{data.name} must have {model.n_labels_} labels, as the model has; got {data.Y.shape[1]}."
        )
    if data.Y.shape[0] == 0:
        raise DataError(f"{data.name} must have at least one row; got 0.")


def load_gain(path: str, n_labels: int | None, what: str = "gain") -> npt.NDArray[np.float64]:
    """Read one number per line, one line per label; blank lines are allowed only at the end."""
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
    """Read a gain; return None if it is not a number or out of range."""
    try:
        gain = float(text)
    except ValueError:
        return None
    return gain if 0 <= gain <= LARGEST_GAIN else None


def check_new_file(path: str, force: bool) -> None:
    """Reject, before any work, an output path that exists or cannot be written."""
    target = Path(path)
    if not target.parent.is_dir():
        raise DataError(f"{path} cannot be written: its folder does not exist.")
    if os.path.lexists(target):
        if not target.is_file():
            raise DataError(f"{path} cannot be written: it exists and is not a file.")
        if not force:
            raise DataError(f"{path} already exists; choose another path or replace it with --force.")
    with suppress(_ProbedError), open_replacing(target):
        raise _ProbedError  # the file could be created; it is removed again, and an existing file stays


def check_not_read(out: str, *inputs: str | None) -> None:
    """Reject an output path that the same command reads from."""
    for path in inputs:
        if path is None or path == STANDARD_INPUT or not (os.path.exists(out) and os.path.exists(path)):
            continue
        if os.path.samefile(out, path):
            raise DataError(f"{out} is an input of this command and cannot be replaced; choose another -o.")


def check_new_model(path: str, force: bool, kind: str = "model") -> None:
    """Reject, before any work, a path that exists or where no model (or store) can be saved."""
    try:
        storage.check_target(path, force, kind)
    except ModelExistsError as error:
        raise ModelExistsError(str(error).replace("with force", "with --force")) from None
    with staging_folder(Path(os.path.realpath(path))):
        pass  # a folder can be created there


class _ProbedError(Exception):
    """Ends a trial write."""
