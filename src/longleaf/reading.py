"""Texts and their tags as the matrices that a tagger is trained on, read in one pass."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from longleaf._validation import DataError
from longleaf.encoders.cache import cached
from longleaf.encoders.encoder import Encoder
from longleaf.explain.titles import RecordNotes
from longleaf.fusion.training import NamedTraining
from longleaf.io.tag_names import TagNames
from longleaf.text.field_rows import field_rows
from longleaf.text.fields import Text
from longleaf.text.meaning import EmbeddingPass, Meaning
from longleaf.text.tags import Objects, TagCollector, ready_texts
from longleaf.text.vectorizer import TextVectorizer


@dataclass(frozen=True, eq=False)
class TaggedRows:
    """Texts and tags as matrices.

    Attributes
    ----------
    words : matrix [rows, words]
    Y : csr_array [rows, tags]
    classes : array of str objects [tags]
    vectorizer : transformer
        Fitted to the texts.
    notes : RecordNotes
        What the records are called, if the tagger keeps them.
    named : NamedTraining or None
        The names found in the texts, if the tagger learns from names.
    meaning : Meaning or None
        Fitted to the texts, if the tagger has an encoder.
    embeddings : float32 array [rows, embedding] or None
    n_jobs : int or None
        Threads.
    fresh : bool array [rows] or None
        Rows whose texts the encoder was not fine-tuned on; None if it does not know of any.
    """

    words: Any
    Y: sp.csr_array
    classes: Objects
    vectorizer: Any
    notes: RecordNotes
    named: NamedTraining | None
    meaning: Meaning | None
    embeddings: npt.NDArray[np.float32] | None
    n_jobs: int | None
    fresh: npt.NDArray[np.bool_] | None = None

    @classmethod
    def read(
        cls,
        texts: Iterable[Text],
        collector: TagCollector,
        notes: RecordNotes,
        vectorizer: Any,
        *,
        names: TagNames | None = None,
        encoder: Encoder | None = None,
        columns: tuple[float, int] = (0.0, 1),
        n_jobs: int | None = None,
    ) -> Self:
        """Fit a vectorizer to texts, whose tags have been collected when the last one was read.

        Parameters
        ----------
        texts : iterable of str or mapping
        collector : TagCollector
        notes : RecordNotes
        vectorizer : transformer
        names : TagNames, optional
            Are looked for in the texts.
        encoder : Encoder, optional
            Embeds the texts; what it finds is kept on disk.
        columns : tuple of (float, int)
            The weight and the number of the columns that embeddings become.
        n_jobs : int or None
            Threads.
        """
        texts = notes.texts(ready_texts(texts, vectorizer))
        fields: list[str] = []
        if isinstance(vectorizer, TextVectorizer):
            settled, texts = vectorizer.settle_fields(texts)
            fields = [name for name in settled if name != getattr(encoder, "field", None)]
        named: NamedTraining | None = None
        if names is not None:
            named = NamedTraining(names, fields, n_jobs)
            texts = named.through(texts)
        reading = None if encoder is None else EmbeddingPass(cached(encoder), n_jobs)
        if reading is not None:
            texts = ready_texts(reading.through(texts, fields), vectorizer)
        words = vectorizer.fit_transform(texts)
        classes, Y = collector.sorted_indicator()
        if words.shape[0] != Y.shape[0]:
            raise ValueError(
                f"texts and tags must have the same length; got {words.shape[0]} and {Y.shape[0]}."
            )
        found = cls(words, Y, classes, vectorizer, notes, named, None, None, n_jobs)
        if encoder is None or reading is None:
            return found
        embeddings = reading.embeddings()
        if not embeddings.shape[1]:
            raise DataError(f"texts must bring embeddings for encoder {encoder.name}; none of them does.")
        meaning = Meaning.fit(encoder, embeddings, *columns)
        return replace(found, meaning=meaning, embeddings=embeddings, fresh=reading.fresh())

    @cached_property
    def X(self) -> Any:  # noqa: N802
        """The rows of features."""
        if self.meaning is None or self.embeddings is None:
            return self.words
        return self.meaning.joined(self.words, self.embeddings)

    def rows_of(self, texts: Sequence[str]) -> Any:
        """Return the rows of plain texts, such as names of tags."""
        words = self.vectorizer.transform(texts)
        if self.meaning is None:
            return words
        return self.meaning.joined(words, self.meaning.kept().embeddings(texts, self.n_jobs))

    def by_field(self, texts: Sequence[Text]) -> Any:
        """Return these rows by what they are made of; `texts` are their texts again."""
        return field_rows(self.vectorizer, texts, self.words, self.meaning, self.embeddings)

    def others_by_field(self, texts: Iterable[Text]) -> Any:
        """Return the rows of other texts by what they are made of."""
        texts, embeddings = list(ready_texts(texts, self.vectorizer)), None
        if self.meaning is not None:
            reading = EmbeddingPass(self.meaning.kept().encoder(), self.n_jobs)
            texts = list(reading.through(texts, list(getattr(self.vectorizer, "field_weights_", ()))))
            embeddings = reading.embeddings()
        return field_rows(self.vectorizer, texts, None, self.meaning, embeddings)

    def reweighted(
        self, texts: Sequence[Text], fields: Mapping[str, float] | None, encoder_weight: float | None
    ) -> Self:
        """Return the same rows by other weights; `texts` are their texts again."""
        changed = self
        if fields is not None:
            vectorizer = self.vectorizer.reweighted(fields)
            changed = replace(changed, words=vectorizer.transform(texts), vectorizer=vectorizer)
        if encoder_weight is not None and self.meaning is not None:
            changed = replace(changed, meaning=self.meaning.weighted(encoder_weight))
        return changed
