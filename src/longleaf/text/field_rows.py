"""The rows of records by what they are made of, so that other weights cost a sum and no reading."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from longleaf.io.tables import LANGUAGE
from longleaf.text.fields import Text, field_texts
from longleaf.text.meaning import Meaning
from longleaf.text.vectorizer import TextVectorizer


@dataclass(frozen=True, eq=False)
class FieldRows:
    """The rows that records have by each of their fields alone, with a weight of 1, and their embeddings.

    Attributes
    ----------
    fields : dict of str to csr_matrix [rows, features]
        One of any name where there are not several fields.
    weights : dict of str to float
        The weights that the vectorizer has.
    meaning : Meaning or None
        What becomes of embeddings.
    embeddings : float32 array [rows, embedding] or None
    """

    fields: dict[str, Any]
    weights: dict[str, float]
    meaning: Meaning | None = None
    embeddings: npt.NDArray[np.float32] | None = None

    @classmethod
    def of(cls, vectorizer: TextVectorizer, texts: Sequence[Text]) -> Self:
        """Vectorize each field by itself with a fitted vectorizer."""
        names = list(vectorizer.field_weights_)
        alone = vectorizer.reweighted(dict.fromkeys(names, 1.0))
        rows = {name: alone.transform(_only(texts, names, name)) for name in names}
        return cls(rows, dict(vectorizer.field_weights_))

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers of rows and features."""
        n_rows, n_features = next(iter(self.fields.values())).shape
        return n_rows, n_features + (0 if self.meaning is None else self.meaning.n_columns)

    def __getitem__(self, rows: Any) -> Self:
        """Return some of the rows."""
        embeddings = None if self.embeddings is None else self.embeddings[rows]
        return replace(
            self, fields={name: block[rows] for name, block in self.fields.items()}, embeddings=embeddings
        )

    def weighted(
        self, weights: Mapping[str, float] | None = None, encoder_weight: float | None = None
    ) -> sp.csr_matrix:
        """Return the rows by these weights, or else by those that they have."""
        weights = self.weights if weights is None else weights
        words = sp.csr_matrix(sum(weights[name] * block for name, block in self.fields.items()))
        if self.meaning is None or self.embeddings is None:
            return words
        meaning = self.meaning if encoder_weight is None else self.meaning.weighted(encoder_weight)
        return meaning.joined(words, self.embeddings)


def field_rows(
    vectorizer: Any,
    texts: Sequence[Text],
    words: Any = None,
    meaning: Meaning | None = None,
    embeddings: npt.NDArray[np.float32] | None = None,
) -> Any:
    """Return the rows of texts by what they are made of, or as a matrix where that is words alone.

    Parameters
    ----------
    vectorizer : transformer
        Fitted.
    texts : sequence of str or mapping
    words : matrix, optional
        The words of all fields, if they are known already.
    meaning, embeddings
        Of a tagger with an encoder.
    """
    if isinstance(vectorizer, TextVectorizer) and len(vectorizer.field_weights_) > 1:
        found = FieldRows.of(vectorizer, texts)
    else:
        words = vectorizer.transform(texts) if words is None else words
        if meaning is None:
            return words
        found = FieldRows({"": sp.csr_matrix(words)}, {"": 1.0})
    return replace(found, meaning=meaning, embeddings=embeddings)


def _only(texts: Iterable[Text], names: list[str], kept: str) -> Iterable[Text]:
    """Yield the records with one of their fields."""
    for row, text in enumerate(texts):
        alone: dict[str, Any] = dict.fromkeys(names, "")
        alone[kept] = field_texts(text, names, row)[names.index(kept)]
        if isinstance(text, Mapping) and LANGUAGE in text:
            alone[LANGUAGE] = text[LANGUAGE]
        yield alone
