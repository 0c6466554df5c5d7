"""Explanations in words instead of columns, and the positions of the words in the text."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from longleaf.explain.records import SimilarRecord
from longleaf.explain.row import Level, RowExplanation
from longleaf.explain.spans import WORD
from longleaf.explain.spans import Span as Span
from longleaf.explain.spans import word_spans as word_spans
from longleaf.text.vectorizer import PIECE_MARKS, TextVectorizer

Words = tuple[tuple[str, float], ...]
"""Words, and what each added to the log probability."""


@dataclass(frozen=True)
class NameMatch:
    """A name of a tag that stands in a record.

    Attributes
    ----------
    name : str
        As the vocabulary has it.
    field : str
        The first field that it stands in; "" in a plain text.
    value : float
        What it added to the log probability of the tag.
    """

    name: str
    field: str
    value: float

    @property
    def sentence(self) -> str:
        """Where the name stands, in words."""
        return f"the name {self.name!r} is in the {self.field or 'text'}"


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
        What each word added to the log probability, largest magnitude first; negative values count against
        the tag. What parts of words added counts for the words that have them. With what a name in the text
        and what the text means added, they sum to ``log(probability) - log(baseline)``.
    levels : tuple of Level
        The contribution of each level of the trees, from the top; the changes have the same sum.
    records : tuple of SimilarRecord
        The training records that carry the tag and are most similar to the text, best first; empty unless
        the tagger keeps its records.
    match : NameMatch or None
        The name of the tag that stands in the text, if the tagger knows names.
    meaning : float or None
        What the embedding of the text added, as far as it is not divided among words; None without encoder.
    """

    tag: str
    name: str
    probability: float
    baseline: float
    contributions: list[tuple[str, float]]
    levels: tuple[Level, ...]
    records: tuple[SimilarRecord, ...] = ()
    match: NameMatch | None = None
    meaning: float | None = None

    @property
    def decided(self) -> Level:
        """The level of the trees that changed the probability most."""
        return max(self.levels, key=lambda level: abs(level.change))

    @property
    def words_for(self) -> Words:
        """The words that support the tag, strongest first."""
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
        if self.match is not None:
            lines.append(f"  {self.match.value:+8.3f}  {self.match.sentence}")
        if self.meaning is not None:
            lines.append(f"  {self.meaning:+8.3f}  the meaning of the text")
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


def in_words(
    found: RowExplanation, tag: str, name: str, vectorizer: Any, text: str, n_words: int | None = None
) -> Explanation:
    """Return an explanation in words; columns without a contribution are omitted.

    Parameters
    ----------
    found : RowExplanation
    tag, name : str
    vectorizer : transformer
    text : str
    n_words : int, optional
        The number of columns of the vectorizer; those after them are of the text's meaning.
    """
    columns, values = found.features, found.contributions
    meaning: float | None = None
    if n_words is not None:
        meaning = math.fsum(values[columns >= n_words])
        columns, values = columns[columns < n_words], values[columns < n_words]
    columns, values = columns[values != 0], values[values != 0]
    names = column_names(vectorizer, columns)
    sums: defaultdict[str, float] = defaultdict(float)
    if isinstance(vectorizer, TextVectorizer):
        divided = np.array([vectorizer.hashing is not None or is_piece(one) for one in names], bool)
        words, shares = _shares(vectorizer, columns[divided], text)
        known = np.diff(shares.indptr) > 0
        for word, value in zip(words, shares.T @ values[divided], strict=True):
            sums[word] += value
        divided[divided] = known
    else:
        divided = np.zeros(len(columns), bool)
    for place in np.flatnonzero(~divided):
        sums[names[place]] += values[place]
    return Explanation(
        tag,
        name,
        math.exp(found.log_probability),
        math.exp(found.log_baseline),
        sorted(((word, float(v)) for word, v in sums.items() if v != 0), key=lambda pair: -abs(pair[1])),
        found.levels,
        meaning=meaning,
    )


def is_piece(name: str) -> bool:
    """Return whether a column of a `TextVectorizer` is no term itself, but a piece of words."""
    return name.startswith(PIECE_MARKS)


def column_names(vectorizer: Any, columns: npt.NDArray[np.int64]) -> list[str]:
    """Return the names of some columns of a vectorizer, which may have millions.

    Parameters
    ----------
    vectorizer : TextVectorizer or other transformer
        One without names gets ``feature0``, ``feature1`` and so on.
    columns : int array
    """
    if isinstance(vectorizer, TextVectorizer):
        if vectorizer.hashing is not None:
            return [f"hash{column}" for column in columns]
        data, ends = vectorizer.term_bytes_, vectorizer.term_offsets_
        terms = (data[ends[c] : ends[c + 1]].tobytes() for c in columns)
        return [term.decode("utf-8", "surrogatepass") for term in terms]
    try:
        names = vectorizer.get_feature_names_out()
    except (AttributeError, TypeError, ValueError):
        return [f"feature{column}" for column in columns]
    return [str(names[column]) for column in columns]


def _shares(
    vectorizer: TextVectorizer, columns: npt.NDArray[np.int64], text: str
) -> tuple[list[str], sp.csr_array]:
    """Return the words of a text, and what share of each column comes from each word.

    A column is divided among the words that have it by themselves, by how often they occur, and among pairs
    of neighbours that have it only together. A column that nothing in the text has, has no shares.

    Returns
    -------
    words : list of str
    shares : csr_array [columns, words]
        The shares of a column have the sum 1.
    """
    there = WORD.findall(text.lower() if vectorizer.lowercase else text)
    if not len(columns) or not there:
        return [], sp.csr_array((len(columns), 0))
    words, pairs = Counter(there), Counter(pairwise(there))
    number = {word: place for place, word in enumerate(words)}
    first, second = ([number[pair[side]] for pair in pairs] for side in (0, 1))
    texts = [*words, *map(" ".join, pairs)]
    rows = sp.csr_array(vectorizer.transform(texts))[:, columns]
    has = sp.csr_array((np.ones_like(rows.indices), rows.indices, rows.indptr), shape=rows.shape)
    alone, together = has[: len(words)], has[len(words) :]
    halves = sp.csr_array(
        (np.full(2 * len(first), 0.5), (first + second, [*range(len(first))] * 2)),
        shape=(len(words), len(first)),
    )
    only_together = together - together.multiply((halves.T @ alone) > 0)
    counts, pair_counts = (np.array([*of.values()], float)[:, None] for of in (words, pairs))
    shares = sp.csr_array((alone.multiply(counts) + halves @ only_together.multiply(pair_counts)).T)
    shares.eliminate_zeros()
    return list(words), sp.csr_array(shares.multiply(1 / np.maximum(shares.sum(axis=1), 1e-300)[:, None]))
