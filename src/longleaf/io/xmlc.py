"""Reading and writing data sets in the text format of the XMLC repository."""

from __future__ import annotations

import os
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from longleaf import _core
from longleaf._validation import DataError
from longleaf._validation.sparse import check_structure
from longleaf.io.streams import Source, open_replacing, read_chunks, source_name

LARGEST_SIZE = 2**31 - 1
NUMBERS_PER_BLOCK = 1 << 20


def load_xmlc(path: Source) -> tuple[sparse.csr_matrix[np.float32], sparse.csr_matrix[np.float32]]:
    """Read features and labels.

    The first line is ``rows features labels``; each further line is a row, counted from 0,
    ``label,label feature:value ...``. A row without labels starts with a space or with its first pair.
    Features may be in any order; repeated ones are summed, and repeated labels count once. Lines may end in
    CRLF. A blank line is a row with neither labels nor features as long as the header announces more rows,
    and is ignored after that.

    Parameters
    ----------
    path : str, path-like or binary file object
        The file; gzip, xz and bzip2 data are recognised by their first bytes. A file object is read from
        its current position and left open.

    Returns
    -------
    X : csr_matrix of float32, shape (rows, features)
        Each value is the float32 nearest to the written number. Explicit zeros are kept.
    Y : csr_matrix of float32, shape (rows, labels)
        Ones for the given labels. The rows of both are sorted, without duplicates.

    Raises
    ------
    DataError
        If the file cannot be read or is invalid; the message names the file and the line.
    """
    sizes, x_indptr, x_indices, x_data, y_indptr, y_indices = _parse(path, labelled=True)
    n_rows, n_features, n_labels = sizes
    X = _canonical_csr(x_data, x_indices, x_indptr, (n_rows, n_features))
    Y = _canonical_csr(np.ones(len(y_indices), np.float32), y_indices, y_indptr, (n_rows, n_labels))
    return X, Y


def load_sparse(path: Source) -> sparse.csr_matrix[np.float32]:
    """Read one matrix in the repository's other format, that of ``trn_X_Y.txt``.

    The first line is ``rows columns``; each further line is a row, ``column:value ...``, counted from 0.
    Otherwise as in `load_xmlc`.

    Parameters
    ----------
    path : str, path-like or binary file object

    Returns
    -------
    csr_matrix of float32, shape (rows, columns)

    Raises
    ------
    DataError
        If the file cannot be read or is invalid.
    """
    (n_rows, n_columns, _), indptr, indices, data, _, _ = _parse(path, labelled=False)
    return _canonical_csr(data, indices, indptr, (n_rows, n_columns))


def save_xmlc(path: str | os.PathLike[str], X: Any, Y: Any) -> None:
    """Write features and labels so that `load_xmlc` returns the same bits.

    Parameters
    ----------
    path : str or path-like
        The file, compressed if it ends in ``.gz``, ``.xz`` or ``.bz2``. It is written under another name and
        renamed, so an existing file is replaced in one step or not at all.
    X : sparse or dense matrix, shape (rows, features)
        Written as float32, with the fewest digits that read back as the same number.
    Y : sparse or dense matrix, shape (rows, labels)
        Nonzero entries are labels.

    Raises
    ------
    DataError
        If `X` and `Y` differ in rows, are too large, or `X` has a value that float32 cannot represent.
    """
    X, Y = _writable(X, "X"), _writable(Y, "Y")
    if X.shape[0] != Y.shape[0]:
        raise DataError(f"X and Y must have the same number of rows; got {X.shape[0]} and {Y.shape[0]}.")
    with np.errstate(over="ignore"):
        x_data = np.ascontiguousarray(X.data, np.float32)
    if not np.isfinite(x_data).all():
        found = X.data[np.flatnonzero(~np.isfinite(x_data))[0]]
        raise DataError(f"X must hold finite numbers that fit a 32-bit float; got {found}.")
    Y.eliminate_zeros()
    x_indptr, y_indptr = X.indptr.astype(np.int64), Y.indptr.astype(np.int64)
    x_indices, y_indices = X.indices.astype(np.int32, copy=False), Y.indices.astype(np.int32, copy=False)
    bounds = _block_bounds(x_indptr + y_indptr)
    with open_replacing(path) as file:
        file.write(f"{X.shape[0]} {X.shape[1]} {Y.shape[1]}\n".encode())
        for begin, end in pairwise(bounds):
            file.write(_core.format_xmlc(x_indptr, x_indices, x_data, y_indptr, y_indices, begin, end))


def _parse(path: Source, *, labelled: bool) -> _core.ParsedXmlc:
    parser = _core.XmlcParser(labelled)
    chunks = read_chunks(path)
    try:
        for chunk in chunks:
            parser.feed(chunk)
        return parser.finish()
    except DataError:
        raise
    except ValueError as error:
        raise DataError(f"{source_name(path)}, {error}") from None
    finally:
        chunks.close()  # closes the file even if its text was rejected midway


def _canonical_csr(
    data: NDArray[np.float32], indices: NDArray[np.int32], indptr: NDArray[np.int64], shape: tuple[int, int]
) -> sparse.csr_matrix[np.float32]:
    matrix = sparse.csr_matrix((data, indices, indptr), shape=shape)
    matrix.has_canonical_format = True  # known from the parser; SciPy would check again
    return matrix


def _writable(matrix: Any, name: str) -> Any:
    """Return a CSR copy, sorted and without duplicates, whose index arrays fit int32."""
    if sparse.issparse(matrix):
        check_structure(matrix, name)
    matrix = sparse.csr_matrix(matrix, copy=True)
    if max(matrix.shape) > LARGEST_SIZE:
        raise DataError(f"{name} must have at most {LARGEST_SIZE} rows and columns; got {matrix.shape}.")
    matrix.sum_duplicates()
    return matrix


def _block_bounds(numbers_before: NDArray[np.int64]) -> list[int]:
    """Split the rows into blocks of about `NUMBERS_PER_BLOCK` numbers; a long row is a block by itself."""
    n_rows = len(numbers_before) - 1
    steps = np.arange(0, int(numbers_before[-1]) + n_rows, NUMBERS_PER_BLOCK)
    cuts = np.searchsorted(numbers_before + np.arange(n_rows + 1), steps)
    return [int(bound) for bound in np.unique([0, *cuts, n_rows])]
