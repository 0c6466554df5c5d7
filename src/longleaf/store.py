"""Opening stores of rows without reading them, and converting texts to stores."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from longleaf._validation import DataError, ModelError, check_count
from longleaf._validation.sparse import indptr_fault
from longleaf.estimator import LabelEstimator
from longleaf.io._manifest import Manifest
from longleaf.io.storage import (
    DATA,
    Folder,
    StrPath,
    load_folder,
    pack_strings,
    read_manifest,
    unpack_strings,
    write_folder,
)
from longleaf.io.store import StoreWriter
from longleaf.io.tables import Record
from longleaf.tagger import Tagger
from longleaf.text.fields import Text
from longleaf.text.tags import Objects, TagCollector, as_objects
from longleaf.text.vectorizer import TextVectorizer

BATCH_TEXTS = 4096


@dataclass(frozen=True, eq=False)
class Store:
    """Features and labels of a store, memory-mapped: pages are read when used, and can be evicted.

    Attributes
    ----------
    X : csr_matrix of float32 [rows, features]
    Y : csr_matrix of float32 [rows, labels]
        Ones where a row has a label.
    tags : array of str objects [labels], or None
        The labels' tags, if the store was made from texts.
    vectorizer : TextVectorizer or None
        The vectorizer that created the features.
    meta : dict
        The provenance of the rows.
    """

    X: Any
    Y: Any
    tags: Objects | None
    vectorizer: TextVectorizer | None
    meta: dict[str, Any]

    def tagger(self, estimator: LabelEstimator, names: Mapping[str, str] | None = None) -> Tagger:
        """Return a tagger for an estimator trained on ``X`` and ``Y``, as if trained on the texts.

        ``names`` are only displayed: a store keeps no texts in which they could be found.
        """
        if self.tags is None or self.vectorizer is None:
            raise ValueError("The store must be made from texts to return a tagger; got a store of features.")
        tagger = Tagger(estimator, self.vectorizer, names)
        tagger.estimator_, tagger.vectorizer_ = estimator, self.vectorizer
        tagger.classes_, tagger.fields_ = self.tags, self.meta["fields"]
        return tagger


def is_store(path: StrPath) -> bool:
    """Return whether a path is the folder of a store."""
    if not Path(path).is_dir():
        return False
    try:
        return read_manifest(path).kind == DATA
    except ModelError:
        return False


def load_store(path: StrPath, *, verify: bool = False) -> Store:
    """Open a store; its arrays are memory-mapped, so data may be larger than memory.

    Parameters
    ----------
    path : str or path
        A folder written by ``longleaf convert`` or `longleaf.save_store`.
    verify : bool
        Whether to verify the checksums of all files.

    Raises
    ------
    ModelError
        If the folder is not a complete store.
    """
    folder = load_folder(path, verify=verify)
    if folder.kind != DATA:
        raise ModelError(f"{path} must be a store of rows; got a model of kind {folder.kind!r}.")
    try:
        return _opened(folder)
    except KeyError as error:
        raise ModelError(f"{path} is not a complete store: it must have {error}.") from error
    except (TypeError, ValueError) as error:
        raise ModelError(f"{path} is not a complete store: {error}") from error


def _opened(folder: Folder) -> Store:
    meta, arrays = folder.meta, folder.arrays
    rows, features, labels = (check_count(meta[name], name, low=0) for name in ("rows", "features", "labels"))
    X = _mapped(folder.part("X"), (rows, features), "X")
    Y = _mapped(folder.part("Y"), (rows, labels), "Y")
    if "vectorizer" not in meta:
        return Store(X, Y, None, None, meta)
    for name in ("vectorizer", "fields", "origin"):
        if not isinstance(meta[name], dict):
            raise ValueError(f"{name} must be an object; got {meta[name]!r:.60}.")
    vectorizer = TextVectorizer.from_state(meta["vectorizer"], folder.part("vectorizer"))
    tags = as_objects(unpack_strings(np.asarray(arrays["tags/bytes"]), arrays["tags/offsets"]))
    if len(tags) != labels or vectorizer.idf_.size != features:
        raise ValueError("its tags and vectorizer do not fit its rows.")
    return Store(X, Y, tags, vectorizer, meta)


def _mapped(arrays: dict[str, npt.NDArray[Any]], shape: tuple[int, int], name: str) -> Any:
    """Return a CSR matrix of mapped arrays; only ``indptr`` is read, and copied to the width of SciPy.

    The indices are not read before they are used; functions that take a matrix check them.
    """
    indptr, indices = arrays["indptr"], arrays["indices"]
    data = arrays.get("data", np.broadcast_to(np.float32(1), indices.shape))
    if indptr.dtype != np.int64 or indices.dtype != np.int32 or data.dtype != np.float32:
        raise ValueError(f"the arrays of {name} have other dtypes than those of a store.")
    if indptr.shape != (shape[0] + 1,) or indices.ndim != 1 or data.shape != indices.shape:
        raise ValueError(f"the arrays of {name} do not fit together.")
    fault = indptr_fault(indptr, len(indices))
    if fault is not None or indptr[-1] != len(indices):
        found = fault or f"its indptr ends at {indptr[-1]}"
        raise ValueError(f"{name}/indptr.npy must rise from 0 to {len(indices)}; {found}.")
    if len(indices) <= np.iinfo(np.int32).max:
        indptr = indptr.astype(np.int32)
    make: Any = sp.csr_matrix
    matrix = make(shape, dtype=np.float32)
    # the constructor would copy the indices of more than 2**31 entries to widen them
    matrix.data, matrix.indices, matrix.indptr = data, indices, indptr
    return matrix


def convert_texts(
    open_records: Callable[[], Iterator[Record]],
    path: StrPath,
    vectorizer: TextVectorizer,
    meta: Callable[[], Mapping[str, Any]],
    *,
    force: bool = False,
) -> None:
    """Convert texts and tags to a store, reading them twice: once for the vocabulary, once for the rows.

    Parameters
    ----------
    open_records : callable
        Returns the records; called twice. Only the vocabulary and the numbers of the tags are kept in memory.
    path, force
        As in `longleaf.save_store`.
    vectorizer : TextVectorizer
        It is fitted by this function.
    meta : callable
        Returns further metadata on the provenance of the rows, including ``fields``; called at the end.
    """

    def fill(folder: Path) -> Manifest:
        collector = TagCollector()
        vectorizer.fit(collector.texts(open_records()))
        tags, Y = collector.sorted_indicator()
        with StoreWriter(folder) as writer:
            for texts in _batches(record.content() for record in open_records()):
                X = vectorizer.transform(texts)
                writer.add_features(X.indptr, X.indices, X.data)
            if writer.n_rows != Y.shape[0]:
                raise DataError(
                    f"There must be the same {Y.shape[0]} texts in the second reading; got {writer.n_rows}."
                )
            writer.add_labels(Y.indptr, Y.indices)
            parameters, state = vectorizer.state()
            tag_bytes, tag_offsets = pack_strings(list(tags))
            extra = {f"vectorizer/{name}": array for name, array in state.items()}
            extra |= {"tags/bytes": tag_bytes, "tags/offsets": tag_offsets}
            noted = dict(meta()) | {"vectorizer": parameters}
            return writer.finish(vectorizer.idf_.size, len(tags), noted, extra)

    write_folder(path, DATA, fill, force)


def _batches(texts: Iterable[Text]) -> Iterator[list[Text]]:
    batch: list[Text] = []
    for text in texts:
        batch.append(text)
        if len(batch) == BATCH_TEXTS:
            yield batch
            batch = []
    if batch:
        yield batch
