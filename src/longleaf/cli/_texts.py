"""How a table of texts is read and turned into features: options of `train`, `tune`, `convert` and `plan`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from longleaf.cli import _options
from longleaf.cli._groups import takes
from longleaf.cli._tables import given, given_fields
from longleaf.cli._vectorizer import named_options, word_settings
from longleaf.io.tables import TableReader
from longleaf.text.vectorizer import TextVectorizer


@dataclass(frozen=True)
class TextOptions:
    """How to read a table of texts.

    Attributes
    ----------
    fields : dict
        Its fields, as `open_table` takes them.
    strict : bool
        Whether faulty rows are errors.
    words : dict
        Parameters of `TextVectorizer`.
    weights : dict of str to float
        The weights of fields that are given; other fields of the text weigh 1.
    """

    fields: dict[str, Any]
    strict: bool
    words: dict[str, Any]
    weights: dict[str, float]

    @property
    def given(self) -> dict[str, Any]:
        """What was given, by option without leading dashes; only a table of texts takes these options."""
        weights = {"field": self.weights} if self.weights else {}
        return weights | self.fields | given(strict=self.strict) | named_options(self.words)

    def vectorizer(self, n_jobs: int | None, reader: TableReader) -> TextVectorizer:
        """Return the vectorizer of the texts that a reader will read."""
        weights = _options.field_weights(reader.settle_text(), self.weights) if self.weights else None
        return TextVectorizer.for_tags(**self.words, fields=weights, n_jobs=n_jobs)


@takes(words=word_settings)
def text_options(
    text: _options.TextFields = None,
    field: _options.FieldWeights = None,
    tags: _options.TagsField = None,
    id: _options.IdField = None,
    separator: _options.Separator = None,
    strict: _options.Strict = False,
    *,
    words: dict[str, Any],
) -> TextOptions:
    """Parse the options, before any data are read."""
    weights = _options.parse_weights(text, field)
    fields = given_fields(text=text, tags=tags, separator=separator, id=id)
    return TextOptions(fields, strict, words, weights)
