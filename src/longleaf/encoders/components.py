"""The columns that an encoder adds to the words of a row: principal components of embeddings.

Given embeddings, fit their mean and the directions in which they vary most. A text's columns are what its
embedding has in these directions, scaled to unit length and then weighted.

Embeddings and directions are rounded to whole multiples of a power of two first, so that products and sums
in float64 are exact. The columns of a text therefore have the same bits whatever texts come with it, and
whatever the number of threads.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from threadpoolctl import threadpool_limits

from longleaf._validation import check_count, check_number

Floats = npt.NDArray[np.float32]
Doubles = npt.NDArray[np.float64]

DEFAULT_WEIGHT, DEFAULT_DIMENSIONS = 0.5, 128
MOST_WEIGHT, MOST_DIMENSIONS = 1e3, 4096
STEPS, DIRECTION_STEPS = 2.0**12, 2.0**14
"""Embeddings and directions are whole multiples of one over these."""
LEAST_VARIANCE = 1e-7
"""Directions in which embeddings vary less, as a share of all variance, are noise of the rounding."""


@dataclass(frozen=True, eq=False)
class Components:
    """How embeddings become columns.

    Attributes
    ----------
    mean : float64 array [embedding]
        In steps.
    directions : float64 array [embedding, columns]
        In steps, the direction of most variance first.
    weight : float
        The length of a row's columns, beside words of length 1.
    """

    mean: Doubles
    directions: Doubles
    weight: float

    @classmethod
    def fit(cls, embeddings: Floats, weight: float, n_columns: int) -> Self:
        """Find the directions of most variance.

        Parameters
        ----------
        embeddings : float32 array [texts, embedding]
            Rows of zeros, which empty texts have, are ignored.
        weight : float
        n_columns : int
            At most so many directions.
        """
        weight = check_number(weight, "encoder_weight", low=0, high=MOST_WEIGHT)
        n_columns = check_count(n_columns, "encoder_dimensions", high=MOST_DIMENSIONS)
        steps = _in_steps(embeddings[np.any(embeddings, axis=1)])
        n_texts, width = steps.shape
        total = steps.sum(axis=0)
        mean = np.rint(total / max(n_texts, 1))
        scatter = np.zeros((width, width))
        for begin in range(0, n_texts, 4096):  # exact, like the columns
            block = steps[begin : begin + 4096]
            scatter += block.T @ block
        scatter = (scatter - np.outer(total, mean) - np.outer(mean, total)) / max(n_texts, 1)
        scatter += np.outer(mean, mean)
        with threadpool_limits(1):
            variance, vectors = np.linalg.eigh(scatter)
        order = np.argsort(-variance, kind="stable")[:n_columns]
        order = order[variance[order] > LEAST_VARIANCE * max(variance.sum(), 1.0)]
        vectors = vectors[:, order]
        signs = np.sign(vectors[np.argmax(np.abs(vectors), axis=0), np.arange(len(order))])
        return cls(mean, np.rint(vectors * signs * DIRECTION_STEPS), weight)

    @property
    def n_columns(self) -> int:
        """The number of columns that it adds."""
        return int(self.directions.shape[1])

    def columns(self, embeddings: Floats) -> Floats:
        """Return the weighted columns of embeddings; zeros where an embedding is zero."""
        products = (_in_steps(embeddings) - self.mean) @ self.directions
        lengths = np.sqrt(np.square(products / (STEPS * DIRECTION_STEPS)).sum(axis=1, keepdims=True))
        lengths *= STEPS * DIRECTION_STEPS
        known = np.any(embeddings, axis=1, keepdims=True) & (lengths > 0)
        scaled = np.divide(products, lengths, out=np.zeros_like(products), where=known)
        weighted: Floats = (self.weight * scaled).astype(np.float32)
        return weighted

    def weighted(self, weight: float) -> Self:
        """Return the same with another weight."""
        return replace(self, weight=weight)

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Return the arrays that a model keeps."""
        return {
            "mean": self.mean.astype(np.int32),
            "directions": self.directions.astype(np.int16),
            "weight": np.array([self.weight], np.float64),
        }

    @classmethod
    def from_state(cls, arrays: dict[str, npt.NDArray[Any]]) -> Self:
        """Create it from the result of `state`; reject what could not have come from there."""
        mean, directions, weight = (np.asarray(arrays[name]) for name in ("mean", "directions", "weight"))
        if not (
            [str(array.dtype) for array in (mean, directions, weight)] == ["int32", "int16", "float64"]
            and mean.ndim == weight.ndim == 1
            and directions.ndim == 2
            and len(directions) == len(mean)
            and directions.shape[1] <= MOST_DIMENSIONS
            and len(weight) == 1
        ):
            raise ValueError("mean, directions and weight must be arrays of one embedding's length.")
        if len(mean) and int(np.abs(mean).max()) > STEPS:
            raise ValueError("mean must lie within the unit sphere.")
        check_number(float(weight[0]), "weight", low=0, high=MOST_WEIGHT)
        return cls(mean.astype(np.float64), directions.astype(np.float64), float(weight[0]))


def _in_steps(embeddings: Floats) -> Doubles:
    return np.rint(embeddings.astype(np.float64) * STEPS)
