"""Rows to be searched, with what is known of them beside their features."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from longleaf.search.score_map import Overrides


@dataclass(frozen=True, eq=False)
class RecordRows:
    """The features of some records, and the maps of the labels whose names stand in them.

    It goes wherever a matrix of features goes into a search.

    Attributes
    ----------
    X : sparse matrix [rows, features]
    overrides : Overrides
    """

    X: Any
    overrides: Overrides

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers of rows and features."""
        n_rows, n_features = self.X.shape
        return n_rows, n_features

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: Any) -> Self:
        """Return some rows: a slice, or an array or list of row numbers."""
        n_rows = self.shape[0]
        numbers = np.arange(n_rows)[rows]
        return type(self)(self.X[rows], self.overrides.take(numbers))


def features_of(X: Any) -> Any:
    """Return the features of rows."""
    return X.X if isinstance(X, RecordRows) else X


def overrides_of(X: Any) -> Overrides | None:
    """Return the overrides of rows, if they have any."""
    return X.overrides if isinstance(X, RecordRows) else None
