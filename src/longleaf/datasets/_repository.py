"""Reading folders in the formats of the XMLC repository.

There are three formats, plain or compressed (``.gz``, ``.xz``, ``.bz2``):

1. one file per split, ``NAME_train.txt`` and ``NAME_test.txt``, as `longleaf.load_xmlc` reads them;
2. features and labels in separate files, ``trn_X_Xf.txt``, ``trn_X_Y.txt``, ``tst_X_Xf.txt`` and
``tst_X_Y.txt``
   (or ``trn_ft_mat.txt``, ``trn_lbl_mat.txt`` and so on, the names in older code);
3. all rows in ``NAME_data.txt``; ``NAME_trSplit.txt`` and ``NAME_tstSplit.txt`` list the training and test
   rows: one column for each way of splitting, rows counted from 1.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from longleaf._validation import DataError, check_count, check_path
from longleaf.io.streams import read_chunks
from longleaf.io.xmlc import load_sparse, load_xmlc

Matrix = sp.csr_matrix
COMPRESSIONS = (".gz", ".xz", ".bz2")
SEPARATE = (("X_Xf", "X_Y"), ("ft_mat", "lbl_mat"))

FORMS = (
    "NAME_train.txt and NAME_test.txt",
    "trn_X_Xf.txt, trn_X_Y.txt, tst_X_Xf.txt and tst_X_Y.txt",
    "NAME_data.txt, NAME_trSplit.txt and NAME_tstSplit.txt",
)
"""The possible contents of a folder, for messages."""


class Splits(NamedTuple):
    """Features and labels of the training and the test rows, CSR of float32."""

    X_train: Matrix
    Y_train: Matrix
    X_test: Matrix
    Y_test: Matrix


def load_repository(folder: str | os.PathLike[str], *, fold: int = 0) -> Splits:
    """Read a data set from a folder in any format of the XMLC repository.

    Parameters
    ----------
    folder : str or path
        The folder; files with other names are ignored.
    fold : int
        Column of the split files, if there are any.

    Returns
    -------
    Splits
        ``X_train, Y_train, X_test, Y_test``: csr_matrix of float32 [rows, features] and [rows, labels].

    Raises
    ------
    DataError
        If the files are missing, in no known format, or inconsistent.
    """
    check_count(fold, "fold", low=0)
    place = check_path(folder, "folder")
    files = _files(place)
    for read in (_from_separate, _from_split, _from_two):
        splits = read(place, files, fold)
        if splits is not None:
            return _check_agreement(place, splits)
    raise DataError(f"{place} must hold {'; or '.join(FORMS)}.")


def _files(folder: Path) -> dict[str, Path]:
    """Return the text files of a folder by their lower-case names without compression suffix."""
    if not folder.is_dir():
        raise DataError(f"{folder} must be a folder with {'; or '.join(FORMS)}.")
    found: dict[str, Path] = {}
    for path in sorted(folder.iterdir()):
        name = path.name.lower()
        name = name.removesuffix(path.suffix.lower()) if path.suffix.lower() in COMPRESSIONS else name
        if not name.endswith(".txt") or name.startswith("filter_labels"):  # pairs to ignore in evaluation
            continue
        if name in found:
            raise DataError(f"{folder} must hold {name} once; got {found[name].name} and {path.name}.")
        found[name] = path
    return found


def _from_separate(folder: Path, files: dict[str, Path], fold: int) -> Splits | None:
    for features, labels in SEPARATE:
        names = [f"{split}_{kind}.txt" for split in ("trn", "tst") for kind in (features, labels)]
        held = [files.get(name.lower()) for name in names]
        if not any(held):
            continue
        paths = [path for path in held if path is not None]
        if len(paths) < len(names):
            missing = [name for name, path in zip(names, held, strict=True) if path is None]
            raise DataError(f"{folder} must also hold {' and '.join(missing)}.")
        X_train, Y_train, X_test, Y_test = (load_sparse(path) for path in paths)
        return Splits(X_train, _indicator(Y_train), X_test, _indicator(Y_test))
    return None


def _from_split(folder: Path, files: dict[str, Path], fold: int) -> Splits | None:
    split_files = [_only(folder, files, name) for name in ("trsplit.txt", "tstsplit.txt")]
    if split_files == [None, None]:
        return None
    data = _only(folder, files, "data.txt")
    if data is None or split_files[0] is None or split_files[1] is None:
        raise DataError(f"{folder} must hold {FORMS[2]} together.")
    X, Y = load_xmlc(data)
    train, test = (_read_split(path, fold, X.shape[0]) for path in split_files if path is not None)
    common = np.intersect1d(train, test)
    if len(common):
        raise DataError(f"{folder} must have no row in both splits; row {common[0] + 1} is.")
    return Splits(X[train], Y[train], X[test], Y[test])


def _from_two(folder: Path, files: dict[str, Path], fold: int) -> Splits | None:
    train, test = (_only(folder, files, split) for split in ("train.txt", "test.txt"))
    if train is None and test is None:
        return None
    if train is None or test is None:
        raise DataError(f"{folder} must hold {FORMS[0]} together.")
    return Splits(*load_xmlc(train), *load_xmlc(test))


def _only(folder: Path, files: dict[str, Path], end: str) -> Path | None:
    """Return the one file whose name is ``end`` or NAME_end, or None."""
    found = [path for name, path in files.items() if name == end or name.endswith("_" + end)]
    if len(found) > 1:
        names = " and ".join(path.name for path in found[:2])
        raise DataError(f"{folder} must hold one file of each kind; got {names}.")
    return found[0] if found else None


def _read_split(path: Path, fold: int, n_rows: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Read one column of row numbers, counted from 1, and return them counted from 0."""
    rows = []
    for line, text in enumerate(_lines(path), 1):
        words = text.split()
        if not words:
            continue
        if fold >= len(words):
            raise DataError(f"{path}, line {line}: fold must be below the {len(words)} columns; got {fold}.")
        try:
            row = int(words[fold])
        except ValueError:
            raise DataError(f"{path}, line {line}: must be row numbers; got {words[fold]!r}.") from None
        if not 1 <= row <= n_rows:
            raise DataError(f"{path}, line {line}: rows must be from 1 to {n_rows}; got {row}.")
        rows.append(row - 1)
    numbers, times = np.unique(rows, return_counts=True)
    if not rows:
        raise DataError(f"{path} must name at least one row; got none.")
    if times.max() > 1:
        raise DataError(f"{path} must name a row once; row {numbers[times.argmax()] + 1} occurs again.")
    return np.array(rows, np.int64)


def _lines(path: Path) -> Iterator[str]:
    yield from b"".join(read_chunks(path)).decode("utf-8", errors="replace").splitlines()


def _indicator(Y: Matrix) -> Matrix:
    """Keep the given labels, but not their values."""
    Y.eliminate_zeros()
    Y.data[:] = 1
    return Y


def _check_agreement(folder: Path, splits: Splits) -> Splits:
    for split, X, Y in (("train", *splits[:2]), ("test", *splits[2:])):
        if X.shape[0] != Y.shape[0]:
            raise DataError(
                f"{folder}: features and labels of {split} must have the same number of rows; "
                f"got {X.shape[0]} and {Y.shape[0]}."
            )
    for what, train, test in (("features", splits[0], splits[2]), ("labels", splits[1], splits[3])):
        if train.shape[1] != test.shape[1]:
            raise DataError(
                f"{folder}: train and test must have the same number of {what}; "
                f"got {train.shape[1]} and {test.shape[1]}."
            )
    return splits
