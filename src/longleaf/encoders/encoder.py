"""What every encoder is: texts in, embeddings of unit length out."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, Self, TypeAlias

import numpy as np
import numpy.typing as npt

from longleaf._validation import check_threads

Vectors: TypeAlias = npt.NDArray[np.float32]
LARGEST = 1e100
Progress: TypeAlias = Callable[[float], None] | None


class Encoder(ABC):
    """Turns texts into embeddings.

    Attributes
    ----------
    name : str
        What the encoder is called in messages.
    max_tokens : int or None
        Longer texts are cut to this many tokens; None if there is no limit or it is unknown.
    keeps : bool
        Whether the fingerprint changes whenever embeddings do, so that they can be kept on disk.
    source : str or None
        What `longleaf.encoders.load` made it from, ``None`` for a function.
    held_out : array of uint64 or None
        Hashes of the texts that fine-tuning held out, as `longleaf.encoders.held_out` computes them.
    """

    name: str
    max_tokens: int | None
    keeps: bool = True
    source: str | None = None
    held_out: npt.NDArray[np.uint64] | None = None

    @property
    @abstractmethod
    def dimensions(self) -> int:
        """The length of an embedding."""

    @property
    @abstractmethod
    def fingerprint(self) -> str:
        """SHA-256 in hexadecimal of everything that decides the embedding of a text."""

    def embed(
        self, texts: Sequence[str], *, threads: int | None = None, progress: Progress = None
    ) -> Vectors:
        """Return the embeddings of texts.

        The embedding of a text depends on no other text, nor on the order or the number of threads: it
        always has the same bits on the same machine.

        Parameters
        ----------
        texts : sequence of str
        threads : int, optional
            How many texts are embedded at the same time; all cores by default.
        progress : callable, optional
            Called with the share of the work that is done.

        Returns
        -------
        ndarray of shape (n_texts, dimensions), float32
            Rows of unit length, rounded to what float16 can represent. A text without a letter or digit has
            a row of zeros.
        """
        checked = check_texts(texts)
        filled = [row for row, text in enumerate(checked) if any(map(str.isalnum, text))]
        vectors = np.zeros((len(checked), self.dimensions), np.float32)
        number = check_threads(-1 if threads is None else threads, "threads")
        if filled:
            vectors[filled] = self._embed([checked[row] for row in filled], number, progress)
        if progress is not None:
            progress(1.0)
        return vectors

    @abstractmethod
    def _embed(self, texts: list[str], threads: int, progress: Progress) -> Vectors:
        """Return the embeddings of texts that are not empty, as `unit` makes them."""

    @property
    def facts(self) -> dict[str, Any]:
        """What there is to say about the encoder, by name."""
        return {
            "name": self.name,
            "dimensions": self.dimensions,
            "max_tokens": self.max_tokens,
            "fingerprint": self.fingerprint,
        }

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Return the encoder itself, which never changes; scikit-learn's `clone` copies parameters."""
        return self

    def __repr__(self) -> str:
        return f"<encoder {self.name}>"


def check_texts(texts: Any) -> list[str]:
    """Return texts as a list; reject what is not a sequence of strings."""
    if isinstance(texts, str | bytes) or not hasattr(texts, "__iter__"):
        raise TypeError(f"texts must be a sequence of strings; got a single {type(texts).__name__}.")
    listed = list(texts)
    for row, text in enumerate(listed):
        if not isinstance(text, str):
            raise TypeError(f"texts must be strings; row {row} is {text!r:.80}.")
    return listed


def unit(vector: npt.ArrayLike) -> Vectors:
    """Scale one vector to unit length and round it to what float16 can represent; zeros stay zeros."""
    exact = np.asarray(vector, np.float64)
    largest = np.abs(exact).max(initial=0)
    if largest > LARGEST:  # its square would be infinite
        exact = exact / largest
    length = float(np.sqrt(np.square(exact).sum()))
    return (exact / length if length else exact).astype(np.float16).astype(np.float32)


def base_name(path: str | os.PathLike[str]) -> str:
    """Return the last component of a path, as the name of what lies there."""
    return os.path.basename(os.path.abspath(path))
