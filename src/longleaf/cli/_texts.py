"""How a table of texts is read and turned into features: options of `train`, `tune`, `convert` and `plan`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from longleaf.cli import _options
from longleaf.cli._groups import takes
from longleaf.cli._tables import given, given_fields
from longleaf.cli._vectorizer import named_options, word_settings
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
    """

    fields: dict[str, Any]
    strict: bool
    words: dict[str, Any]

    @property
    def given(self) -> dict[str, Any]:
        """What was given, by option without leading dashes; only a table of texts takes these options."""
        weights = given(field=self.words.get("fields"))
        return weights | self.fields | given(strict=self.strict) | named_options(self.words)

    def vectorizer(self, n_jobs: int | None) -> TextVectorizer:
        """Return the vectorizer of the texts."""
        return TextVectorizer.for_tags(**self.words, n_jobs=n_jobs)


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
    text, weights = _options.parse_fields(text, field)
    fields = given_fields(text=text, tags=tags, separator=separator, id=id)
    return TextOptions(fields, strict, words | given(fields=weights))
