"""Locating the terms of an explanation in a text, in one pass over the text for each length of term."""

from __future__ import annotations

import re
from array import array
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

WORD = re.compile(r"\b\w\w+\b")
RUN = re.compile(r"\w+|[^\w\s]+")
BLANK = re.compile(r"\s+")
MOST_RANGES = 1 << 18
"""Number of ranges processed at a time."""

Ints = npt.NDArray[np.int64]
Doubles = npt.NDArray[np.float64]
Values = dict[str, float]


class Span(NamedTuple):
    """A range of a text, ``text[begin:end]``, and its contribution."""

    begin: int
    end: int
    value: float


class Found(NamedTuple):
    """Occurrences of terms of one length: the number of the term, and its ranges [occurrences, ranges]."""

    values: Doubles
    terms: Ints
    begins: Ints
    ends: Ints


def word_spans(text: str, contributions: Iterable[tuple[str, float]]) -> list[Span]:
    """Map the contributions of terms to their positions in a text, to colour it.

    A term's value is divided equally among its occurrences, and within one among its characters other than
    space; then every run of word characters gets the sum of its characters. The total is preserved, except
    for terms that are not in the text. The time is proportional to the text, not to text times terms.

    Parameters
    ----------
    text : str
        The text that was explained.
    contributions : iterable of (str, float)
        Terms as `TextVectorizer` names them: words, n-grams of words, and character n-grams (with a leading
        ``~`` if they were added to words).

    Returns
    -------
    list of Span
        In order, not overlapping; only those that belong to some term.
    """
    if not text:
        return []
    lowered, origin = _lower(text)
    solid = np.ones(len(text), bool)
    for match in BLANK.finditer(text):
        solid[match.start() : match.end()] = False
    values, touched = np.zeros(len(text) + 1), np.zeros(len(text) + 1, bool)
    for found in _find(lowered, contributions):
        _spread(found, origin, solid, values, touched)
    runs = np.array([match.span() for match in RUN.finditer(text)], np.int64).reshape(-1, 2)
    if not len(runs):
        return []
    sums = np.add.reduceat(values, runs.ravel())[::2]
    runs_touched = np.logical_or.reduceat(touched, runs.ravel())[::2]
    found_runs = zip(runs[runs_touched].tolist(), sums[runs_touched].tolist(), strict=True)
    return [Span(begin, end, value) for (begin, end), value in found_runs]


def _lower(text: str) -> tuple[str, Ints]:
    """Lower-case a text; also return the source character of each character of the result."""
    lowered = text.lower()
    if len(lowered) == len(text):
        return lowered, np.arange(len(text))
    pieces = [character.lower() for character in text]
    return "".join(pieces), np.repeat(np.arange(len(text)), [len(piece) for piece in pieces])


def _find(text: str, contributions: Iterable[tuple[str, float]]) -> Iterator[Found]:
    """Find terms as words, and the remaining ones as characters."""
    by_words: defaultdict[int, Values] = defaultdict(dict)
    for term, value in contributions:
        term = " ".join(word.lower() for word in term.split(" "))
        its = by_words[term.count(" ") + 1]
        its[term] = its.get(term, 0.0) + value
    spans = np.array([match.span() for match in WORD.finditer(text)], np.int64).reshape(-1, 2)
    words = [text[begin:end] for begin, end in spans.tolist()]
    by_characters: defaultdict[int, dict[str, Values]] = defaultdict(dict)
    for n, values in by_words.items():
        found, left = _of_words(words, spans, n, values)
        yield found
        for term in left:
            bare = term.removeprefix("~")
            its = by_characters[len(bare.strip())].setdefault(bare.strip(), {})
            its[bare] = its.get(bare, 0.0) + values[term]
    by_characters.pop(0, None)
    for length, patterns in by_characters.items():
        yield _of_characters(text, length, patterns)


def _of_words(words: list[str], spans: Ints, n: int, values: Values) -> tuple[Found, list[str]]:
    """Find terms of ``n`` consecutive words, with words as in the vectorizer."""
    numbers = {term: number for number, term in enumerate(values)}
    terms, places = array("q"), array("q")
    grams = words if n == 1 else (" ".join(words[i : i + n]) for i in range(len(words) - n + 1))
    for place, gram in enumerate(grams):
        number = numbers.get(gram)
        if number is not None:
            terms.append(number)
            places.append(place)
    rows = np.array(places, np.int64)[:, None] + np.arange(n)
    found = Found(np.array(list(values.values())), np.array(terms, np.int64), spans[rows, 0], spans[rows, 1])
    there = set(terms)
    return found, [term for number, term in enumerate(values) if number not in there]


def _of_characters(text: str, length: int, patterns: dict[str, Values]) -> Found:
    """Find character n-grams; a space at either end also matches the start or end of the text.

    Occurrences of a term do not overlap: the first one wins.
    """
    values: list[float] = []
    forms: dict[str, list[tuple[int, bool, bool]]] = {}
    for pattern, its in patterns.items():
        forms[pattern] = [
            (len(values) + number, term.startswith(" "), term.endswith(" "))
            for number, term in enumerate(its)
        ]
        values += its.values()
    free = [0] * len(values)
    terms, begins = array("q"), array("q")
    for begin in range(len(text) - length + 1):
        end = begin + length
        for number, opens, closes in forms.get(text[begin:end], ()):
            inside = (opens and begin and _is_word(text[begin - 1])) or (
                closes and end < len(text) and _is_word(text[end])
            )
            if begin >= free[number] and not inside:
                free[number] = end
                terms.append(number)
                begins.append(begin)
    at = np.array(begins, np.int64)[:, None]
    return Found(np.array(values), np.array(terms, np.int64), at, at + length)


def _is_word(character: str) -> bool:
    return character.isalnum() or character == "_"


def _spread(
    found: Found, origin: Ints, solid: npt.NDArray[np.bool_], values: Doubles, touched: npt.NDArray[np.bool_]
) -> None:
    """Distribute the contributions of terms over the characters of their occurrences."""
    if not found.terms.size:
        return
    begins, ends = origin[found.begins], origin[found.ends - 1] + 1
    before = np.concatenate([[0], np.cumsum(solid)])
    sizes = (before[ends] - before[begins]).sum(axis=1)
    shares = (found.values / np.maximum(1, np.bincount(found.terms, minlength=len(found.values))))[
        found.terms
    ]
    amounts = np.repeat(shares / sizes, begins.shape[1])
    begins, ends = begins.ravel(), ends.ravel()
    for start in range(0, len(begins), MOST_RANGES):
        some = slice(start, start + MOST_RANGES)
        lengths = ends[some] - begins[some]
        firsts = np.repeat(begins[some] - np.cumsum(lengths) + lengths, lengths)
        places = firsts + np.arange(len(firsts))
        kept = solid[places]
        np.add.at(values, places[kept], np.repeat(amounts[some], lengths)[kept])
        touched[places[kept]] = True
