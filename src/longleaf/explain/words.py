"""Explanations in words instead of columns, and the positions of the words in the text."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from longleaf.explain.records import SimilarRecord
from longleaf.explain.row import Level, RowExplanation
from longleaf.explain.spans import WORD
from longleaf.explain.spans import Span as Span
from longleaf.explain.spans import word_spans as word_spans
from longleaf.text.vectorizer import TextVectorizer

Words = tuple[tuple[str, float], ...]
"""Words, and what each added to the log probability."""


@dataclass(frozen=True)
class Explanation:
    """Explanation of a tag for a text.

    Attributes
    ----------
    tag, name : str
        The tag, and its readable name (the tag itself if it has none).
    probability : float
        The tag's probability given the text.
    baseline : float
        The tag's probability given an empty text.
    contributions : list of (str, float)
        What each word added to the log probability, largest magnitude first; negative values speak against
        the tag. They sum to ``log(probability) - log(baseline)``.
    levels : tuple of Level
        The contribution of each level of the trees, from the top; the changes have the same sum.
    records : tuple of SimilarRecord
        The training records that carry the tag and are most similar to the text, best first; empty unless
        the tagger keeps its records.
    """

    tag: str
    name: str
    probability: float
    baseline: float
    contributions: list[tuple[str, float]]
    levels: tuple[Level, ...]
    records: tuple[SimilarRecord, ...] = ()

    @property
    def decided(self) -> Level:
        """The level of the trees that changed the probability most."""
        return max(self.levels, key=lambda level: abs(level.change))

    @property
    def words_for(self) -> Words:
        """The words that speak for the tag, strongest first."""
        return tuple((word, value) for word, value in self.contributions if value > 0)

    def spans(self, text: str) -> list[Span]:
        """Return the positions of the words in the explained text; see `word_spans`."""
        return word_spans(text, self.contributions)

    def to_text(self, words: int = 10) -> str:
        """Return the explanation in a few lines.

        Parameters
        ----------
        words : int
            Number of words to list; the rest is summed up.
        """
        title = self.tag if self.name == self.tag else f"{self.tag} ({self.name})"
        lines = [f"{title}: probability {self.probability:.4g}, {self.baseline:.4g} for an empty text"]
        listed, rest = self.contributions[:words], self.contributions[words:]
        width = max((len(word) for word, _ in listed), default=0)
        lines += [f"  {value:+8.3f}  {word:<{width}}  x{_factor(value)}" for word, value in listed]
        if rest:
            value = sum(value for _, value in rest)
            lines.append(f"  {value:+8.3f}  {len(rest)} more words")
        level = self.decided
        lines.append(f"  decided at level {level.depth} of {len(self.levels)} ({level.change:+.3f})")
        lines += ["  similar training records:"] if self.records else []
        lines += [f"  {one.similarity:8.3f}  {one.id}  {one.title}" for one in self.records]
        return "\n".join(lines)


def _factor(value: float) -> str:
    """Return the factor by which a contribution multiplies the probability."""
    return f"{math.exp(min(value, 700.0)):.3g}"


def in_words(found: RowExplanation, tag: str, name: str, vectorizer: Any, text: str) -> Explanation:
    """Return an explanation in words; columns without a contribution are omitted."""
    order = np.argsort(-np.abs(found.contributions), kind="stable")
    order = order[found.contributions[order] != 0]
    words = column_names(vectorizer, found.features[order], text)
    return Explanation(
        tag,
        name,
        math.exp(found.log_probability),
        math.exp(found.log_baseline),
        list(zip(words, found.contributions[order].tolist(), strict=True)),
        found.levels,
    )


def column_names(vectorizer: Any, columns: npt.NDArray[np.int64], text: str | None = None) -> list[str]:
    """Return the names of some columns of a vectorizer, which may have millions.

    Parameters
    ----------
    vectorizer : TextVectorizer or other transformer
        One without names gets ``feature0``, ``feature1`` and so on.
    columns : int array
    text : str, optional
        Hashed columns are named after the words of this text that are hashed to them.
    """
    if isinstance(vectorizer, TextVectorizer):
        if vectorizer.hashing is not None:
            hashed = _words_by_column(vectorizer, text or "")
            return [hashed.get(int(column), f"hash{column}") for column in columns]
        data, ends = vectorizer.term_bytes_, vectorizer.term_offsets_
        terms = (data[ends[c] : ends[c + 1]].tobytes() for c in columns)
        return [term.decode("utf-8", "surrogatepass") for term in terms]
    try:
        names = vectorizer.get_feature_names_out()
    except (AttributeError, TypeError, ValueError):
        return [f"feature{column}" for column in columns]
    return [str(names[column]) for column in columns]


def _words_by_column(vectorizer: TextVectorizer, text: str) -> dict[int, str]:
    words = list(dict.fromkeys(WORD.findall(text.lower() if vectorizer.lowercase else text)))
    found: dict[int, list[str]] = defaultdict(list)
    rows = vectorizer.transform(words)
    for row, word in enumerate(words):
        for column in rows.indices[rows.indptr[row] : rows.indptr[row + 1]].tolist():
            found[column].append(word)
    return {column: "/".join(names) for column, names in found.items()}
