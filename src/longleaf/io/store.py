"""Rows on disk: features and labels as plain arrays in a folder, written as a stream and memory-mapped.

The folder has the format of `longleaf.io.storage` and the kind ``data``:

    X/indptr int64, X/indices int32, X/data float32    the features, rows sorted and without duplicates
    Y/indptr int64, Y/indices int32                    the labels
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from longleaf import _core
from longleaf._validation import DataError, check_features, check_labels
from longleaf.io import _arrays
from longleaf.io._append import ArrayAppender
from longleaf.io._manifest import Manifest
from longleaf.io.storage import DATA, StrPath, write_folder
from longleaf.io.streams import Source, read_chunks, source_name

BLOCK_BYTES = 1 << 25
"""Approximate bytes of an XMLC file that are parsed before the rows are written."""


class StoreWriter:
    """The five arrays of a store, to which rows are appended; labels may come with features or later."""

    def __init__(self, folder: Path) -> None:
        self._files = ExitStack()
        self._folder = folder
        self._x_indptr = self._array("X/indptr", "<i8")
        self._x_indices = self._array("X/indices", "<i4")
        self._x_data = self._array("X/data", "<f4")
        self._y_indptr = self._array("Y/indptr", "<i8")
        self._y_indices = self._array("Y/indices", "<i4")
        for indptr in (self._x_indptr, self._y_indptr):
            indptr.append(np.zeros(1, np.int64))

    def __enter__(self) -> StoreWriter:
        return self

    def __exit__(self, *_: object) -> None:
        self._files.close()

    @property
    def n_rows(self) -> int:
        """The number of rows with features so far."""
        return self._x_indptr.size - 1

    def add_features(
        self, indptr: npt.NDArray[Any], indices: npt.NDArray[Any], data: npt.NDArray[Any]
    ) -> None:
        """Append rows of features: CSR arrays, sorted and without duplicates, ``indptr`` from 0."""
        self._x_indptr.append(indptr[1:] + np.int64(self._x_indices.size))
        self._x_indices.append(indices)
        self._x_data.append(data)

    def add_labels(self, indptr: npt.NDArray[Any], indices: npt.NDArray[Any]) -> None:
        """Append the labels of rows."""
        self._y_indptr.append(indptr[1:] + np.int64(self._y_indices.size))
        self._y_indices.append(indices)

    def finish(
        self, n_features: int, n_labels: int, meta: Mapping[str, Any], extra: Mapping[str, npt.NDArray[Any]]
    ) -> Manifest:
        """Complete the arrays; ``extra`` are additional small arrays."""
        if self._y_indptr.size != self._x_indptr.size:
            raise DataError(
                f"X and Y must have the same number of rows; got {self.n_rows} and {self._y_indptr.size - 1}."
            )
        sizes = {"rows": self.n_rows, "features": n_features, "labels": n_labels}
        entries = {name: array.finish() for name, array in self._arrays.items()}
        entries |= {name: _arrays.write_array(self._folder, name, array) for name, array in extra.items()}
        return Manifest(DATA, sizes | dict(meta), entries)

    @property
    def _arrays(self) -> dict[str, ArrayAppender]:
        return {
            "X/indptr": self._x_indptr,
            "X/indices": self._x_indices,
            "X/data": self._x_data,
            "Y/indptr": self._y_indptr,
            "Y/indices": self._y_indices,
        }

    def _array(self, name: str, dtype: str) -> ArrayAppender:
        array = ArrayAppender(self._folder, name, dtype)
        self._files.callback(array.close)
        return array


Progress = Callable[[int], None] | None
"""Called with the number of rows written so far."""


def save_store(path: StrPath, blocks: Iterable[tuple[Any, Any]], *, force: bool = False) -> None:
    """Write rows as a store, for `longleaf.load_store`; one block is in memory at a time.

    Parameters
    ----------
    path : str or path
        The folder to create. An existing store is replaced in one step, and only with ``force``.
    blocks : iterable of (X, Y)
        Consecutive blocks of features and labels, as `longleaf.PLT.fit` takes them, all with the same
        numbers of features and labels. ``[(X, Y)]`` is a single block.
    force : bool

    Examples
    --------
    >>> import tempfile, longleaf as ll
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     ll.save_store(f"{folder}/rows", [([[1.0, 0.0]], [[1, 0]]), ([[0.0, 2.0]], [[1, 1]])])
    ...     ll.load_store(f"{folder}/rows").X.toarray().tolist()
    [[1.0, 0.0], [0.0, 2.0]]
    """

    def fill(folder: Path) -> Manifest:
        shape: tuple[int, int] | None = None
        with StoreWriter(folder) as writer:
            for number, (X, Y) in enumerate(blocks):
                rows = check_features(X, None if shape is None else shape[0], name=f"X of block {number}")
                labels = check_labels(Y, None if shape is None else shape[1], name=f"Y of block {number}")
                shape = rows.n_features, labels.shape[1]
                writer.add_features(*rows.csr)
                writer.add_labels(labels.indptr, labels.indices)
            if shape is None:
                raise DataError("blocks must hold at least one pair of X and Y; got none.")
            return writer.finish(*shape, {}, {})

    write_folder(path, DATA, fill, force)


def convert_xmlc(
    sources: Iterable[Source], path: StrPath, *, force: bool = False, progress: Progress = None
) -> None:
    """Convert XMLC files, one after another, to one store, in memory that does not grow with them.

    Parameters
    ----------
    sources : iterable of str, path-like or binary file objects
        As in `longleaf.load_xmlc`; their headers must have the same features and labels.
    path, force
        As in `save_store`.
    progress : callable, optional
        Called from time to time with the number of rows written.
    """
    listed = list(sources)

    def fill(folder: Path) -> Manifest:
        shape: tuple[int, int] | None = None
        with StoreWriter(folder) as writer:
            for source in listed:
                found = _append_xmlc(writer, source, shape, progress)
                shape = found if shape is None else shape
            if shape is None:
                raise DataError("There must be at least one file to convert; got none.")
            return writer.finish(*shape, {"sources": [source_name(source) for source in listed]}, {})

    write_folder(path, DATA, fill, force)


def _append_xmlc(
    writer: StoreWriter, source: Source, shape: tuple[int, int] | None, progress: Progress
) -> tuple[int, int]:
    parser = _core.XmlcParser(True)
    held = 0
    chunks = read_chunks(source)
    try:
        for chunk in chunks:
            parser.feed(chunk)
            held += len(chunk)
            if held >= BLOCK_BYTES:
                _append_rows(writer, parser.take(), source, shape)
                held = 0
                if progress is not None:
                    progress(writer.n_rows)
        return _append_rows(writer, parser.finish(), source, shape)
    except DataError:
        raise
    except ValueError as error:
        raise DataError(f"{source_name(source)}, {error}") from None
    finally:
        chunks.close()


def _append_rows(
    writer: StoreWriter, parsed: _core.ParsedXmlc, source: Source, shape: tuple[int, int] | None
) -> tuple[int, int]:
    (_, n_features, n_labels), x_indptr, x_indices, x_data, y_indptr, y_indices = parsed
    if shape is not None and len(x_indptr) and shape != (n_features, n_labels):
        raise DataError(
            f"{source_name(source)} must have {shape[0]} features and {shape[1]} labels, as the files before "
            f"it; got {n_features} and {n_labels}."
        )
    writer.add_features(x_indptr, x_indices, x_data)
    writer.add_labels(y_indptr, y_indices)
    return n_features, n_labels
