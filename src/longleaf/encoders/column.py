"""Embeddings that records bring with them, as an encoder."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from longleaf._validation import DataError
from longleaf.encoders.encoder import Encoder, Progress, Vectors, unit
from longleaf.io._embedding import listed

PREFIX = "column:"
MOST_DIMENSIONS = 1 << 16


class Column(Encoder):
    """A field of records that holds their embeddings, computed elsewhere.

    Parameters
    ----------
    field : str
        The field. Its values are lists of numbers, arrays, or such lists as text: ``"[0.1, 0.2]"`` or
        ``"0.1 0.2"``; None or an empty text stands for no embedding.
    dimensions : int, optional
        The length of an embedding; that of the first one by default.
    """

    max_tokens = None
    keeps = False

    def __init__(self, field: str, dimensions: int | None = None) -> None:
        if not isinstance(field, str) or not field:
            raise ValueError(f"encoder {PREFIX}NAME must name a field; got {field!r:.80}.")
        self.field = field
        self.name = self.source = PREFIX + field
        self._dimensions = dimensions

    @property
    def dimensions(self) -> int:  # noqa: D102
        return self._dimensions or 0

    @property
    def fingerprint(self) -> str:
        """By the name of the field: whether embeddings are of the same model, nobody can tell."""
        return hashlib.sha256(f"column {self.field}".encode()).hexdigest()

    def value(self, text: Any, row: int) -> Vectors | None:
        """Return the embedding of a record; None if it has none.

        Parameters
        ----------
        text : str or mapping
        row : int
            Its number in error messages.
        """
        if not isinstance(text, Mapping):
            return None
        given = text.get(self.field)
        if given is None or (isinstance(given, str) and not given.strip()):
            return None
        try:
            vector = np.asarray(listed(given), np.float64)
        except (TypeError, ValueError, OverflowError, RecursionError):
            vector = np.empty(0)
        if vector.ndim != 1 or not 0 < len(vector) <= MOST_DIMENSIONS or not np.isfinite(vector).all():
            raise DataError(
                f"texts[{row}][{self.field!r}] must be a list of finite numbers; got {given!r:.60}."
            )
        if self._dimensions is None:
            self._dimensions = len(vector)
        if len(vector) != self._dimensions:
            raise DataError(
                f"texts[{row}][{self.field!r}] must be {self._dimensions} numbers, as others are; "
                f"got {len(vector)}."
            )
        return unit(vector)

    def rest(self, text: Any) -> Any:
        """Return a record without its embedding."""
        if not isinstance(text, Mapping):
            return text
        return {name: value for name, value in text.items() if name != self.field}

    def embed(
        self, texts: Sequence[Any], *, threads: int | None = None, progress: Progress = None
    ) -> Vectors:
        """Return embeddings as an array, zeros where there is none; `texts` are what `value` returned."""
        vectors = np.zeros((len(texts), self.dimensions), np.float32)
        for row, vector in enumerate(texts):
            if vector is not None and not isinstance(vector, str):
                vectors[row] = vector
        return vectors

    def _embed(self, texts: list[str], threads: int, progress: Progress) -> Vectors:
        raise NotImplementedError  # it reads records, not texts
