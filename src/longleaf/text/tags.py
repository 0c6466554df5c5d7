"""Mapping between tags as strings and label numbers."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from longleaf._validation import check_number
from longleaf.io.tables import Record
from longleaf.io.tag_names import check_names
from longleaf.search.top_k import LARGEST_GAIN
from longleaf.text.fields import Text
from longleaf.text.vectorizer import TextVectorizer

Objects = npt.NDArray[np.object_]
UNKNOWN, SHARED = -1, -2
"""Instead of a number: no tag has this name, or several tags have it."""
MOST_QUOTED = 80


class TagCollector:
    """Collects the tags of rows as numbers; each string is stored once."""

    def __init__(self, known: Iterable[str] = ()) -> None:
        self._number = {tag: number for number, tag in enumerate(known)}
        self._numbers = array("i")
        self._ends = array("q", [0])

    @classmethod
    def of(cls, rows: Iterable[Iterable[str]], known: Iterable[str] = ()) -> Self:
        """Collect the tags of all rows of an iterable."""
        if isinstance(rows, str | bytes) or not isinstance(rows, Iterable):
            raise TypeError(f"tags must be an iterable of lists of strings; got {type(rows).__name__}.")
        collector = cls(known)
        for tags in rows:
            collector.add(tags)
        return collector

    @property
    def n_rows(self) -> int:
        """The number of rows so far."""
        return len(self._ends) - 1

    @property
    def tags(self) -> list[str]:
        """The tags so far, in order of first occurrence."""
        return list(self._number)

    def add(self, tags: Iterable[str]) -> None:
        """Add the tags of one row."""
        if isinstance(tags, str | bytes) or not isinstance(tags, Iterable):
            raise TypeError(f"tags[{self.n_rows}] must be a list of strings; got {type(tags).__name__}.")
        for tag in tags:
            if not isinstance(tag, str):
                raise TypeError(f"tags[{self.n_rows}] must hold strings; got {type(tag).__name__}.")
            if tag not in self._number and not tag.strip():
                raise ValueError(f"tags[{self.n_rows}] must hold no empty tag; got {tag!r:.80}.")
            self._numbers.append(self._number.setdefault(tag, len(self._number)))
        self._ends.append(len(self._numbers))

    def texts(self, records: Iterable[Record], fields: Sequence[str] | None = None) -> Iterator[Text]:
        """Yield the contents of records, and collect their tags; ``fields`` are those of a fitted model."""
        for record in records:
            self.add(record.tags)
            yield record.content(fields)

    def indicator(self) -> sp.csr_array:
        """Return a float32 matrix [rows, tags] with ones at the tags of each row, by first occurrence."""
        width = np.int32 if len(self._numbers) <= np.iinfo(np.int32).max else np.int64
        ends, numbers = np.array(self._ends, width), np.array(self._numbers, width)
        shape = (self.n_rows, len(self._number))
        matrix: sp.csr_array = sp.csr_array((np.ones(len(numbers), np.float32), numbers, ends), shape=shape)
        matrix.sum_duplicates()
        matrix.data[:] = 1
        return matrix

    def sorted_indicator(self) -> tuple[Objects, sp.csr_array]:
        """Return the sorted tags, and the indicator with columns in that order."""
        tags = as_objects(sorted(self._number))
        place = np.empty(len(tags), np.int32)
        place[[self._number[tag] for tag in tags]] = np.arange(len(tags))
        matrix = self.indicator()
        matrix.indices = place[matrix.indices].astype(matrix.indices.dtype)
        matrix.has_sorted_indices = False
        matrix.sort_indices()
        return tags, matrix


def known_indicator(tags: Iterable[Iterable[str]], known: Objects, unseen: str) -> sp.csr_array:
    """Return the indicator of tags, with `known` first; `unseen` is as in `Tagger.transform_tags`."""
    indicator = TagCollector.of(tags, known).indicator()
    if unseen == "error" and indicator.shape[1] > len(known):
        raise ValueError(
            f"tags must be tags of the model; got {indicator.shape[1] - len(known)} that are not."
        )
    return indicator if unseen == "add" else indicator[:, : len(known)]


def as_objects(strings: Iterable[str]) -> Objects:
    """Return strings as an array of objects, not of fixed-width strings."""
    listed = list(strings)
    result = np.empty(len(listed), dtype=object)
    result[:] = listed
    return result


class TagIndex:
    """Tags by number, with lookup by tag or readable name.

    A name shared by several tags is ambiguous and matches none; a tag takes precedence over another's name.

    Parameters
    ----------
    tags : iterable of str
        In the order of their numbers.
    names : mapping of str to str, optional
        Readable names by tag; those of unknown tags are ignored.
    """

    def __init__(self, tags: Iterable[str], names: Mapping[str, str] | None = None) -> None:
        if names is not None:
            check_names(names)
        self.tags = tags if isinstance(tags, np.ndarray) else as_objects(tags)
        self.names = names
        self._numbers = {tag: number for number, tag in enumerate(self.tags)}
        self._by_name: dict[str, int] | None = None

    def __len__(self) -> int:
        return len(self.tags)

    def __contains__(self, word: object) -> bool:
        return isinstance(word, str) and self._find(word) >= 0

    def name(self, tag: str) -> str:
        """Return the readable name of a tag, or the tag itself if it has none."""
        return tag if self.names is None else self.names.get(tag, tag)

    def number(self, word: str, argument: str = "tag") -> int:
        """Return the number of a tag, given by itself or its name.

        Parameters
        ----------
        word : str
        argument : str
            Its name in error messages.
        """
        if not isinstance(word, str):
            raise TypeError(f"{argument} must be a string; got {type(word).__name__}.")
        number = self._find(word)
        if number == UNKNOWN:
            raise ValueError(f"{argument} must name tags of the model; {quoted(word)} is none.")
        if number == SHARED:
            raise ValueError(f"{argument} must name one tag; {quoted(word)} {self.unusable(word)}.")
        return number

    def unusable(self, word: str) -> str:
        """Return why a word does not identify a tag."""
        if self._find(word) == UNKNOWN:
            return "is no tag of the model"
        first, second = [tag for tag in self.tags if self.name(tag) == word][:2]
        return f"is the name of {quoted(first)} and {quoted(second)}"

    def numbers(self, words: Iterable[str], argument: str) -> npt.NDArray[np.int64]:
        """Return the numbers of tags."""
        if isinstance(words, str | bytes) or not isinstance(words, Iterable):
            raise TypeError(f"{argument} must be a list of tags; got a single {type(words).__name__}.")
        listed = list(words)
        for word in listed:
            if not isinstance(word, str):
                raise TypeError(f"{argument} must hold strings; got {type(word).__name__}.")
        return np.array([self.number(word, argument) for word in listed], np.int64)

    def gains(self, gain: Mapping[str, float]) -> npt.NDArray[np.float64]:
        """Return the gain of every tag: 1 for those that are omitted."""
        numbers, result = self.numbers(gain, "gain"), np.ones(len(self))
        for number, (word, value) in zip(numbers, gain.items(), strict=True):
            result[number] = check_number(value, f"gain of {quoted(word)}", low=0, high=LARGEST_GAIN)
        return result

    def groups(self, groups: Mapping[str, Any]) -> npt.NDArray[np.int64]:
        """Return the number of each tag's group; a tag in no group is a group by itself."""
        members = self.numbers(groups, "groups")
        numbers: dict[Any, int] = {}
        result = np.arange(len(self)) + len(members)
        result[members] = [numbers.setdefault(group, len(numbers)) for group in groups.values()]
        return result

    def _find(self, word: str) -> int:
        number = self._numbers.get(word)
        if number is not None:
            return number
        if self._by_name is None:
            self._by_name = {}
            for tag, name in (self.names or {}).items():
                if tag in self._numbers:
                    self._by_name[name] = SHARED if name in self._by_name else self._numbers[tag]
        return self._by_name.get(word, UNKNOWN)


def quoted(word: str) -> str:
    """Quote a word for an error message, shortened if necessary."""
    return repr(word if len(word) <= MOST_QUOTED else word[:MOST_QUOTED] + "…")


def ready_texts(texts: Iterable[Text], vectorizer: Any) -> Iterable[Text]:
    """Return texts unchanged for a vectorizer that reads them once, or as a list for any other."""
    if isinstance(texts, str | bytes | Mapping) or not isinstance(texts, Iterable):
        raise TypeError(f"texts must be an iterable of strings; got a single {type(texts).__name__}.")
    if hasattr(texts, "to_dict") and hasattr(texts, "columns"):  # a data frame: a record per row
        texts = texts.to_dict("records")
    return texts if isinstance(vectorizer, TextVectorizer) else list(texts)


def check_tags(tags: Iterable[str], name: str) -> list[str]:
    """Check and return a list of tags, which must be distinct strings."""
    if isinstance(tags, str | bytes):
        raise TypeError(f"{name} must be a list of tags; got a single {type(tags).__name__}.")
    listed = list(tags)
    for tag in listed:
        if not isinstance(tag, str):
            raise TypeError(f"{name} must hold strings; got {type(tag).__name__}.")
        if not tag.strip():
            raise ValueError(f"{name} must hold no empty tag; got {tag!r:.80}.")
    repeated = first_repeated(listed)
    if not listed or repeated is not None:
        found = "none" if not listed else f"{repeated!r} twice"
        raise ValueError(f"{name} must name at least one tag, and each only once; got {found}.")
    return listed


def first_repeated(tags: list[str]) -> str | None:
    """Return the first tag that occurs a second time, if any."""
    seen: set[str] = set()
    for tag in tags:
        if tag in seen:
            return tag
        seen.add(tag)
    return None
