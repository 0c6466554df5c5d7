"""What texts mean, beside their words: an encoder, and the columns that its embeddings become."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from longleaf._validation import ModelError
from longleaf.encoders.cache import cached
from longleaf.encoders.column import Column
from longleaf.encoders.components import Components
from longleaf.encoders.encoder import Encoder
from longleaf.encoders.held_out import hashes
from longleaf.encoders.loading import Source, load
from longleaf.text.fields import Text, field_texts

Floats = npt.NDArray[np.float32]
BATCH = 1024
BETWEEN_FIELDS = ". "
SHORT = 12
"""How many characters of a fingerprint are shown."""
WORD = re.compile(r"\b\w\w+\b")


def embedded_text(text: Text, fields: Sequence[str], row: int = 0) -> str:
    """Return what an encoder reads of a record: its fields, joined as sentences."""
    return BETWEEN_FIELDS.join(filter(None, field_texts(text, fields, row)))


def beside(words: Any, columns: Floats) -> sp.csr_matrix:
    """Return rows of words, scaled to unit length, with other columns after them."""
    words = sp.csr_matrix(words, dtype=np.float32)
    if not words.has_canonical_format:  # as scikit-learn's vectorizers leave it
        words = words.copy()
        words.sum_duplicates()
    squares = sp.csr_matrix((np.square(words.data), words.indices, words.indptr), words.shape)
    lengths = np.sqrt(squares @ np.ones(words.shape[1], np.float32))
    lengths[lengths == 0] = 1
    scaled = words.data / np.repeat(lengths, np.diff(words.indptr))
    words = sp.csr_matrix((scaled, words.indices, words.indptr), words.shape)
    rows = sp.csr_matrix(sp.hstack([words, sp.csr_matrix(columns)], format="csr", dtype=np.float32))
    rows.has_canonical_format = True
    return rows


def first_words(text: Text, fields: Sequence[str], most: int | None) -> list[str]:
    """Return the distinct words of a text in lower case, or those of its first so many words."""
    parts = field_texts(text, fields, 0)
    found = (match[0] for part in parts for match in WORD.finditer(part.lower()))
    return list(dict.fromkeys(islice(found, most)))


def without_word(text: Text, fields: Sequence[str], word: str) -> Text:
    """Return a text without a word."""
    pattern = re.compile(rf"\b{re.escape(word)}\b", re.IGNORECASE)
    parts = (pattern.sub(" ", part) for part in field_texts(text, fields, 0))
    return dict(zip(fields or ["text"], parts, strict=True))


class EmbeddingPass:
    """Embeds the texts that pass through it, in batches; the texts are not kept.

    Parameters
    ----------
    encoder : Encoder
    fields : sequence of str
        The fields of records; none for plain texts.
    n_jobs : int or None
        Threads.
    known : float32 array [texts, embedding], optional
        The embeddings of all texts; then nothing is embedded.
    """

    def __init__(self, encoder: Encoder, n_jobs: int | None, known: Floats | None = None) -> None:
        self._encoder, self._threads = encoder, 1 if n_jobs is None else n_jobs
        self._found: list[Floats] = []
        self._fresh: list[npt.NDArray[np.bool_]] = []
        self._known = known

    def through(self, texts: Iterable[Text], fields: Sequence[str] | None) -> Iterator[Text]:
        """Yield the texts, without a column of embeddings.

        Parameters
        ----------
        texts : iterable of str or mapping
        fields : sequence of str
            The fields of records; none for plain texts.
        """
        batch: list[Any] = []
        column = self._encoder if isinstance(self._encoder, Column) else None
        if self._known is not None:
            yield from texts if column is None else map(column.rest, texts)
            return
        for row, text in enumerate(texts):
            if column is None:
                batch.append(embedded_text(text, fields or (), row))
            else:
                batch.append(column.value(text, row))
            if len(batch) == BATCH:
                self._embed(batch)
                batch = []
            yield text if column is None else column.rest(text)
        if batch:
            self._embed(batch)

    def embeddings(self) -> Floats:
        """Return the embeddings of all texts so far."""
        if self._known is not None:
            return self._known
        if len(self._found) == 1:
            return self._found[0]
        return np.concatenate([np.zeros((0, self._encoder.dimensions), np.float32), *self._found])

    def fresh(self) -> npt.NDArray[np.bool_] | None:
        """Return which texts the encoder was not fine-tuned on; None if it does not know of any."""
        return np.concatenate(self._fresh) if self._fresh else None

    def _embed(self, batch: list[Any]) -> None:
        if self._encoder.held_out is not None:
            self._fresh.append(np.isin(hashes(batch), self._encoder.held_out))
        self._found.append(self._encoder.embed(batch, threads=self._threads))


@dataclass(frozen=True, eq=False)
class Meaning:
    """An encoder, and how its embeddings become the columns after those of words.

    Attributes
    ----------
    source : encoder, str or None
        The encoder, or where to load it from; None if only its fingerprint is known.
    name, fingerprint : str
        Of the encoder.
    components : Components
    """

    source: Source | None
    name: str
    fingerprint: str
    components: Components

    @classmethod
    def fit(cls, encoder: Encoder, embeddings: Floats, weight: float, n_columns: int) -> Self:
        """Fit the columns to the embeddings of training texts."""
        components = Components.fit(embeddings, weight, n_columns)
        return cls(encoder, encoder.name, encoder.fingerprint, components)

    @property
    def n_columns(self) -> int:
        """The number of columns that it adds."""
        return self.components.n_columns

    def encoder(self) -> Encoder:
        """Return the encoder; load it when it is first used, and refuse another one."""
        loaded: Encoder | None = self.__dict__.get("_encoder")
        if loaded is None:
            loaded = self.checked(self._load())
            if isinstance(loaded, Column):
                loaded = Column(loaded.field, len(self.components.mean))
            self.__dict__["_encoder"] = loaded
        return loaded

    def checked(self, encoder: Encoder) -> Encoder:
        """Return an encoder if it is the one that the model was trained with."""
        if encoder.fingerprint != self.fingerprint:
            raise ModelError(
                f"the model was trained with encoder {self.name} ({self.fingerprint[:SHORT]}); encoder "
                f"{encoder.name} is another one ({encoder.fingerprint[:SHORT]})."
            )
        width = len(self.components.mean)
        if not isinstance(encoder, Column) and encoder.dimensions != width:
            raise ModelError(
                f"encoder {encoder.name} must return {width} dimensions, as in training; "
                f"got {encoder.dimensions}."
            )
        return encoder

    def with_encoder(self, source: Source) -> Self:
        """Return the same with an encoder from another place, which is loaded and checked now."""
        return replace(self, source=self.checked(load(source)))

    def kept(self) -> Self:
        """Return the same with an encoder whose embeddings are kept on disk."""
        return replace(self, source=cached(self.encoder()))

    def embeddings(self, texts: Sequence[str], n_jobs: int | None) -> Floats:
        """Return the embeddings of plain texts; of a column of embeddings, these are zeros."""
        encoder = self.encoder()
        if isinstance(encoder, Column):
            return np.zeros((len(texts), encoder.dimensions), np.float32)
        return encoder.embed(texts, threads=1 if n_jobs is None else n_jobs)

    def joined(self, words: Any, embeddings: Floats) -> sp.csr_matrix:
        """Return rows of words, of unit length, with the columns of embeddings after them."""
        return beside(words, self.components.columns(embeddings))

    @property
    def weight(self) -> float:
        """The length of its columns, beside words of length 1."""
        return self.components.weight

    def weighted(self, weight: float) -> Self:
        """Return the same with another weight of the columns."""
        return replace(self, components=self.components.weighted(weight))

    @property
    def facts(self) -> dict[str, Any]:
        """What there is to say about it, ready for JSON."""
        fingerprint = self.fingerprint[:SHORT]
        return {
            "name": self.name,
            "fingerprint": fingerprint,
            "columns": self.n_columns,
            "weight": self.weight,
        }

    def meta(self) -> dict[str, Any]:
        """Return what a model keeps of the encoder, ready for JSON."""
        source = self.source
        if isinstance(source, Encoder):
            source = source.source
        known = None if source is None else os.fspath(source) if isinstance(source, os.PathLike) else source
        return {"name": self.name, "fingerprint": self.fingerprint, "source": known}

    @classmethod
    def from_state(cls, meta: Mapping[str, Any], components: Components) -> Self:
        """Create it from the results of `meta` and ``components.state``; the encoder is loaded later."""
        return cls(meta["source"], meta["name"], meta["fingerprint"], components)

    def near(self, model: str | os.PathLike[str]) -> Self:
        """Return the same with an encoder that is not where it was, but beside the model's folder."""
        source = self.source
        if not isinstance(source, str) or not os.path.isabs(source) or Path(source).exists():
            return self
        beside = Path(model).absolute().parent / Path(source).name
        return replace(self, source=str(beside)) if beside.exists() else self

    def _load(self) -> Encoder:
        if self.source is None:
            raise ModelError(
                f"the model needs encoder {self.name}, which it cannot load by itself: "
                "pass it as longleaf.load(path, encoder=...)."
            )
        if isinstance(self.source, str) and os.path.isabs(self.source) and not Path(self.source).exists():
            raise ModelError(
                f"the model needs encoder {self.name}, but {self.source} does not exist: put the encoder "
                "beside the model, or pass it as longleaf.load(path, encoder=...)."
            )
        try:
            return load(self.source)
        except ValueError as error:
            raise ModelError(
                f"the model needs encoder {self.name}, which cannot be loaded: {error}"
            ) from None

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_encoder"}
