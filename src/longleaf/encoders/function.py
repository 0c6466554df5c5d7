"""A function of the user's as an encoder."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np

from longleaf._validation import DataError
from longleaf.encoders.encoder import Encoder, Progress, Vectors, unit

TEXTS_AT_ONCE = 256


class FunctionEncoder(Encoder):
    """A function from a list of strings to an array [n_texts, dimensions].

    Parameters
    ----------
    function : callable
        The embedding of a text should not depend on the other texts. Its optional attribute ``fingerprint``
        (str) should change whenever embeddings do; without it, the function's qualified name stands for it,
        and `cached` keeps nothing on disk, as a function may change and keep its name.
    """

    max_tokens = None

    def __init__(self, function: Callable[[list[str]], Any]) -> None:
        self._function: Any = function
        self.keeps = isinstance(getattr(function, "fingerprint", None), str)
        kind = type(function)
        own = getattr(function, "__qualname__", None)
        module = getattr(function, "__module__", None) if own else kind.__module__
        self.name = f"{module}.{own or kind.__qualname__}"

    @cached_property
    def dimensions(self) -> int:
        """The length of an embedding, found by embedding a word."""
        return int(self._call([self.name]).shape[1])

    @property
    def fingerprint(self) -> str:  # noqa: D102
        own = self._function.fingerprint if self.keeps else self.name
        return hashlib.sha256(f"function {own}".encode()).hexdigest()

    def _embed(self, texts: list[str], threads: int, progress: Progress) -> Vectors:
        vectors = np.empty((len(texts), self.dimensions), np.float32)
        for start in range(0, len(texts), TEXTS_AT_ONCE):
            found = self._call(texts[start : start + TEXTS_AT_ONCE])
            if found.shape[1] != self.dimensions:
                raise DataError(
                    f"encoder {self.name} must return {self.dimensions} dimensions, as for other texts; "
                    f"got {found.shape[1]}."
                )
            for row, vector in enumerate(found, start):
                vectors[row] = unit(vector)
            if progress is not None:
                progress(min(start + TEXTS_AT_ONCE, len(texts)) / len(texts))
        return vectors

    def _call(self, texts: list[str]) -> Any:
        returned = self._function(texts)
        try:
            found = np.asarray(returned)
        except ValueError:  # lists of different lengths
            found = np.empty(0)
        if found.ndim != 2 or len(found) != len(texts) or found.dtype.kind not in "fiu":
            raise DataError(
                f"encoder {self.name} must return one row of numbers per text; "
                f"got {found.dtype} of shape {found.shape} for {len(texts)} texts."
            )
        if not np.isfinite(found).all():
            raise DataError(f"encoder {self.name} must return finite numbers; got NaN or infinity.")
        return found
