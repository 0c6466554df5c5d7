"""The training records that are most similar to a text and carry a tag.

Problem: given a row x and a label, find the n training rows of the largest cosine with x among those that
carry the label, within milliseconds, for labels of one row as for labels of all.

Given: the training rows, of which `compact` keeps the 64 strongest features with weights of eight bits, as
an inverted index: per feature its rows, ascending, and their weights. The labels have ascending lists of
rows as well.

The inner products of x with the label's rows are summed over the features of x, 64 at most. Each
feature's list is either read as a whole or searched for the label's rows, whichever costs less. Inner
products and squared lengths are whole numbers, so the order is the same on every machine; of equally similar
rows the first wins. This is the evaluation "term at a time" of search engines (Turtle and Flood, 1995)
without early termination: the result is exact for the compact rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from longleaf.explain.compact import LARGEST_WEIGHT, STRONGEST, compact
from longleaf.explain.packed import Ints, Strings, check_offsets, inserted
from longleaf.io._schema import check_arrays, check_range

BLOCK = 4096
"""Number of rows made compact at a time."""
LONGEST = STRONGEST * LARGEST_WEIGHT**2
"""The largest squared length of a compact row."""

Arrays = dict[str, npt.NDArray[Any]]
DTYPES = {
    "features/offsets": "int64",
    "features/rows": "int32",
    "features/weights": "int8",
    "labels/offsets": "int64",
    "labels/rows": "int32",
    "lengths": "int32",
    "ids/bytes": "uint8",
    "ids/offsets": "int64",
    "titles/bytes": "uint8",
    "titles/offsets": "int64",
}


class SimilarRecord(NamedTuple):
    """A training record.

    Attributes
    ----------
    id : str
        Its id, or the number of its row if it had none.
    title : str
        The beginning of its title or text.
    similarity : float
        The cosine with the text, above 0 and at most 1.
    """

    id: str
    title: str
    similarity: float


class Postings(NamedTuple):
    """An inverted index: the rows of feature ``f`` are ``rows[offsets[f]:offsets[f + 1]]``."""

    offsets: Ints
    rows: npt.NDArray[np.int32]
    weights: npt.NDArray[np.int8]

    @classmethod
    def of(cls, compacted: sp.csr_array) -> Self:
        """Invert compact rows."""
        columns = compacted.tocsc()
        return cls(columns.indptr.astype(np.int64), columns.indices.astype(np.int32), columns.data)


@dataclass(frozen=True, eq=False)
class RecordIndex:
    """The training records of a tagger, ready to be searched; made by `build`.

    Attributes
    ----------
    features : Postings
        The compact rows, inverted.
    label_offsets, label_rows : int64 array [labels + 1], int32 array
        The rows of each label.
    lengths : int32 array [rows]
        The squared length of each compact row.
    ids, titles : Strings
    """

    features: Postings
    label_offsets: Ints
    label_rows: npt.NDArray[np.int32]
    lengths: npt.NDArray[np.int32]
    ids: Strings
    titles: Strings

    @classmethod
    def build(cls, X: Any, Y: Any, ids: Sequence[str], titles: Sequence[str]) -> Self:
        """Index training rows.

        Parameters
        ----------
        X : sparse or dense matrix [rows, features]
        Y : sparse matrix [rows, labels]
            The indicator of the labels.
        ids, titles : sequences of str [rows]
        """
        n_rows = X.shape[0]
        if not len(ids) == len(titles) == Y.shape[0] == n_rows:
            raise ValueError(
                f"X, Y, ids and titles must have the same length; "
                f"got {n_rows}, {Y.shape[0]}, {len(ids)} and {len(titles)}."
            )
        blocks = [compact(X[begin : begin + BLOCK]) for begin in range(0, n_rows, BLOCK)]
        rows = sp.vstack(blocks, format="csr") if blocks else sp.csr_array((0, X.shape[1]), dtype=np.int8)
        squares = sp.csr_array((np.square(rows.data, dtype=np.int32), rows.indices, rows.indptr), rows.shape)
        lengths = np.asarray(squares.sum(axis=1), np.int32).ravel()
        labels = sp.csc_array(Y)
        labels.sort_indices()
        return cls(
            Postings.of(rows),
            labels.indptr.astype(np.int64),
            labels.indices.astype(np.int32),
            lengths,
            Strings.pack(ids),
            Strings.pack(titles),
        )

    def __len__(self) -> int:
        return len(self.lengths)

    @property
    def n_bytes(self) -> int:
        """The size of all arrays."""
        return sum(array.nbytes for array in self.state().values())

    def similar(self, row: Any, label: int, n: int = 3) -> tuple[SimilarRecord, ...]:
        """Return the most similar records that carry a label, best first.

        Parameters
        ----------
        row : sparse or dense matrix [1, features]
        label : int
        n : int
            At most so many; those that have no feature in common with the row are omitted.
        """
        query = compact(row)
        members = self.label_rows[self.label_offsets[label] : self.label_offsets[label + 1]]
        products = self._products(query, members).astype(np.float64)
        length = float(np.square(query.data, dtype=np.int64).sum())
        cosines = products / np.sqrt(np.maximum(self.lengths[members], 1) * max(length, 1.0))
        return tuple(
            SimilarRecord(
                self.ids.string(members[place]),
                self.titles.string(members[place]),
                min(float(cosines[place]), 1.0),
            )
            for place in _best(cosines, n)
        )

    def _products(self, query: sp.csr_array, members: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
        """Return the inner products of a compact row with some rows, which ascend."""
        offsets, rows, weights = self.features
        products = np.zeros(len(members), np.int32)
        whole: npt.NDArray[np.int32] | None = None  # the products of all rows, as far as they are needed
        for feature, weight in zip(query.indices.tolist(), query.data.tolist(), strict=True):
            begin, end = int(offsets[feature]), int(offsets[feature + 1])
            listed = rows[begin:end]
            if not len(listed):
                continue
            if len(members) * len(listed).bit_length() < len(listed):
                place = np.minimum(np.searchsorted(listed, members), len(listed) - 1)
                found = np.multiply(weights[begin:end][place], weight, dtype=np.int32)
                products += np.where(listed[place] == members, found, 0)
            else:
                whole = np.zeros(len(self), np.int32) if whole is None else whole
                whole[listed] += np.multiply(weights[begin:end], weight, dtype=np.int32)
        return products if whole is None else products + whole[members]

    def extended(self, X: Any, Y: Any, ids: Sequence[str], titles: Sequence[str]) -> RecordIndex:
        """Return an index that has further rows after these, and perhaps further labels."""
        more = RecordIndex.build(X, Y, ids, titles)
        old, new, n_rows = self.features, more.features, len(self)
        grown = self.with_labels(Y.shape[1])
        return RecordIndex(
            Postings(
                old.offsets + new.offsets,
                inserted(old.offsets, old.rows, new.offsets, new.rows + np.int32(n_rows)),
                inserted(old.offsets, old.weights, new.offsets, new.weights),
            ),
            grown.label_offsets + more.label_offsets,
            inserted(
                grown.label_offsets, grown.label_rows, more.label_offsets, more.label_rows + np.int32(n_rows)
            ),
            np.concatenate([self.lengths, more.lengths]),
            self.ids.followed_by(ids),
            self.titles.followed_by(titles),
        )

    def with_labels(self, n_labels: int) -> RecordIndex:
        """Return an index with so many labels; new ones have no rows."""
        missing = n_labels + 1 - len(self.label_offsets)
        return replace(self, label_offsets=np.pad(self.label_offsets, (0, missing), mode="edge"))

    def without(self, labels: Iterable[int]) -> RecordIndex:
        """Return an index where no row carries some labels; rows and numbers stay."""
        counts = np.diff(self.label_offsets)
        keep = np.ones(len(counts), bool)
        keep[list(labels)] = False
        return replace(
            self,
            label_offsets=np.append(0, np.where(keep, counts, 0).cumsum()),
            label_rows=self.label_rows[np.repeat(keep, counts)],
        )

    def state(self) -> Arrays:
        """Return all arrays by name, to be saved."""
        return {
            "features/offsets": self.features.offsets,
            "features/rows": self.features.rows,
            "features/weights": self.features.weights,
            "labels/offsets": self.label_offsets,
            "labels/rows": self.label_rows,
            "lengths": self.lengths,
            "ids/bytes": self.ids.data,
            "ids/offsets": self.ids.offsets,
            "titles/bytes": self.titles.data,
            "titles/offsets": self.titles.offsets,
        }

    @classmethod
    def from_state(cls, arrays: Mapping[str, npt.NDArray[Any]], n_features: int, n_labels: int) -> Self:
        """Return the index of the result of `state`; reject arrays that no index has.

        Parameters
        ----------
        arrays : mapping of str to array
            They may be memory-mapped.
        n_features, n_labels : int
            Those of the model.
        """
        folder = "records/"
        check_arrays(arrays, DTYPES, folder)
        features = Postings(*(arrays[f"features/{name}"] for name in ("offsets", "rows", "weights")))
        lengths, label_rows = arrays["lengths"], arrays["labels/rows"]
        if len(features.rows) != len(features.weights):
            raise ValueError(
                f"{folder}features must have as many rows as weights; "
                f"got {len(features.rows)} and {len(features.weights)}."
            )
        check_offsets(features.offsets, n_features, len(features.rows), f"{folder}features/offsets")
        check_offsets(arrays["labels/offsets"], n_labels, len(label_rows), f"{folder}labels/offsets")
        check_range(lengths, 0, LONGEST, f"{folder}lengths.npy")
        for name in ("features/rows", "labels/rows"):
            check_range(arrays[name], 0, len(lengths) - 1, f"{folder}{name}.npy")
        ids, titles = (
            Strings(arrays[f"{name}/bytes"], arrays[f"{name}/offsets"]) for name in ("ids", "titles")
        )
        ids.check(len(lengths), f"{folder}ids")
        titles.check(len(lengths), f"{folder}titles")
        return cls(features, arrays["labels/offsets"], label_rows, lengths, ids, titles)


def _best(cosines: npt.NDArray[np.float64], n: int) -> npt.NDArray[np.intp]:
    """Return the places of the n largest numbers above 0, the first of equal ones first."""
    n = min(n, len(cosines))
    if n < 1:
        return np.empty(0, np.intp)
    least = np.partition(cosines, len(cosines) - n)[len(cosines) - n]
    places = np.flatnonzero((cosines >= least) & (cosines > 0))
    return places[np.argsort(-cosines[places], kind="stable")][:n]
