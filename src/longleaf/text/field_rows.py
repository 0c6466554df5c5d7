"""The rows of records field by field, so that other weights of fields cost a sum and no reading."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import scipy.sparse as sp

from longleaf.io.tables import LANGUAGE
from longleaf.text.fields import Text, field_texts
from longleaf.text.vectorizer import TextVectorizer


@dataclass(frozen=True, eq=False)
class FieldRows:
    """The rows that records have by each of their fields alone, with a weight of 1.

    Attributes
    ----------
    fields : dict of str to csr_matrix [rows, features]
    weights : dict of str to float
        The weights that the vectorizer has.
    """

    fields: dict[str, Any]
    weights: dict[str, float]

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
        return n_rows, n_features

    def __getitem__(self, rows: Any) -> Self:
        """Return some of the rows."""
        return type(self)({name: block[rows] for name, block in self.fields.items()}, self.weights)

    def weighted(self, weights: Mapping[str, float]) -> sp.csr_matrix:
        """Return the rows by these weights of the fields."""
        return sp.csr_matrix(sum(weights[name] * block for name, block in self.fields.items()))


def field_rows(vectorizer: Any, texts: Sequence[Text], X: Any = None) -> Any:
    """Return the rows of texts field by field, or as a matrix where there are not several fields.

    Parameters
    ----------
    vectorizer : transformer
        Fitted.
    texts : sequence of str or mapping
    X : matrix, optional
        The matrix, if it is known already.
    """
    if isinstance(vectorizer, TextVectorizer) and len(vectorizer.field_weights_) > 1:
        return FieldRows.of(vectorizer, texts)
    return vectorizer.transform(texts) if X is None else X


def _only(texts: Iterable[Text], names: list[str], kept: str) -> Iterable[Text]:
    """Yield the records with one of their fields."""
    for row, text in enumerate(texts):
        alone: dict[str, Any] = dict.fromkeys(names, "")
        alone[kept] = field_texts(text, names, row)[names.index(kept)]
        if isinstance(text, Mapping) and LANGUAGE in text:
            alone[LANGUAGE] = text[LANGUAGE]
        yield alone
