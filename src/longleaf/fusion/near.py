"""Tags whose names mean what a record means: evidence also for tags without training rows.

Given the columns of meaning of every name and of a record, both of unit length, a tag's cosine is the largest
of its names. All are compared, as 8-bit codes and in whole numbers, so the nearest tags are exact and the
same on every machine.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from longleaf import _core
from longleaf._validation import check_threads
from longleaf.io._schema import check_arrays, check_range

Codes = npt.NDArray[np.int8]
Ints = npt.NDArray[np.int64]
Doubles = npt.NDArray[np.float64]

NEAREST = 20
"""How many tags a record is near to."""
LARGEST = 127
"""The largest code; the product of two vectors of unit length is about its square."""
AT_ONCE = 16
BLOCK = 4096
ARRAYS = {"codes": "int8", "labels": "int32"}


@dataclass(frozen=True, eq=False)
class NearNames:
    """The names of tags by what they mean.

    Attributes
    ----------
    codes : int8 array [names, columns]
    labels : int32 array [names]
        The tag of each, ascending.
    """

    codes: Codes
    labels: npt.NDArray[np.int32]

    @classmethod
    def of(cls, columns: npt.NDArray[np.float32], labels: Ints) -> Self:
        """Keep the names by their columns of meaning; those without any are dropped."""
        known = np.flatnonzero(np.any(columns, axis=1))
        order = known[np.argsort(labels[known], kind="stable")]
        return cls(as_codes(columns[order]), labels[order].astype(np.int32))

    def without(self, labels: Ints) -> Self:
        """Return them without the names of some labels."""
        kept: npt.NDArray[np.bool_] = ~np.isin(self.labels, labels)
        return type(self)(self.codes[kept], self.labels[kept])

    def nearest(self, rows: Codes, n_jobs: int | None) -> tuple[Ints, Ints]:
        """Return the nearest labels of each row: where its labels begin, and the labels, ascending."""
        indptr, labels, _ = _core.nearest_labels(
            self.codes.ravel(), self.labels, rows.ravel(), rows.shape[1], NEAREST, check_threads(n_jobs)
        )
        return indptr, labels.astype(np.int64)

    def cosines(self, rows: Codes, row: Ints, label: Ints) -> Doubles:
        """Return the cosine of pairs of a row and a label, 0 for labels without names."""
        begin, end = (np.searchsorted(self.labels, label, side=side) for side in ("left", "right"))
        best = np.zeros(len(label))
        for nth in range(int((end - begin).max(initial=0))):
            some = np.flatnonzero(begin + nth < end)
            for first in range(0, len(some), BLOCK):
                part = some[first : first + BLOCK]
                codes = self.codes[begin[part] + nth].astype(np.int32)
                products = np.einsum("ij,ij->i", codes, rows[row[part]].astype(np.int32)) / LARGEST**2
                best[part] = products if nth == 0 else np.maximum(best[part], products)
        return best

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Return plain arrays."""
        return {"codes": self.codes.ravel(), "labels": self.labels}

    @classmethod
    def from_state(cls, arrays: Mapping[str, npt.NDArray[Any]], n_labels: int) -> Self:
        """Return what `state` was called on; raise ValueError if the arrays do not fit together."""
        check_arrays(arrays, ARRAYS)
        codes, labels = arrays["codes"], arrays["labels"]
        if not len(labels) or not len(codes) or len(codes) % (AT_ONCE * len(labels)):
            raise ValueError(f"codes must be whole sixteens for {len(labels)} names; got {len(codes)}.")
        codes = codes.reshape(len(labels), -1)
        check_range(labels, 0, n_labels - 1, "labels")
        if len(labels) and np.diff(labels).min(initial=0) < 0:
            raise ValueError("labels must ascend.")
        return cls(codes, labels)


def as_codes(columns: Any) -> Codes:
    """Return rows of columns, of any length, as codes of rows of unit length; rows of zeros stay zeros."""
    dense = np.asarray(columns, np.float64)
    lengths = np.sqrt(np.square(dense).sum(axis=1, keepdims=True))
    codes = np.rint(np.divide(dense * LARGEST, lengths, out=np.zeros_like(dense), where=lengths > 0))
    padding = -dense.shape[1] % AT_ONCE
    return np.pad(codes, ((0, 0), (0, padding))).astype(np.int8)
