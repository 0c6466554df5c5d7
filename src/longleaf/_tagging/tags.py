"""Tags as strings on one side, as label numbers on the other."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from longleaf.io.tables import Record

Objects = npt.NDArray[np.object_]


class TagCollector:
    """Gathers the tags of rows, one row after the other, as numbers: the strings are kept once."""

    def __init__(self, known: Iterable[str] = ()) -> None:
        self._number = {tag: number for number, tag in enumerate(known)}
        self._numbers = array("i")
        self._ends = array("q", [0])

    @classmethod
    def of(cls, rows: Iterable[Iterable[str]], known: Iterable[str] = ()) -> Self:
        """Take in all rows of an iterable."""
        if isinstance(rows, str | bytes) or not isinstance(rows, Iterable):
            raise TypeError(f"tags must be an iterable of lists of strings; got {type(rows).__name__}.")
        collector = cls(known)
        for tags in rows:
            collector.add(tags)
        return collector

    @property
    def n_rows(self) -> int:
        """How many rows there are so far."""
        return len(self._ends) - 1

    @property
    def tags(self) -> list[str]:
        """The tags so far, in the order in which they came up."""
        return list(self._number)

    def add(self, tags: Iterable[str]) -> None:
        """Take in one row's tags."""
        if isinstance(tags, str | bytes) or not isinstance(tags, Iterable):
            raise TypeError(f"tags[{self.n_rows}] must be a list of strings; got {type(tags).__name__}.")
        for tag in tags:
            if not isinstance(tag, str):
                raise TypeError(f"tags[{self.n_rows}] must hold strings; got {type(tag).__name__}.")
            self._numbers.append(self._number.setdefault(tag, len(self._number)))
        self._ends.append(len(self._numbers))

    def texts(self, records: Iterable[Record]) -> Iterator[str]:
        """Give the texts of records, taking in their tags on the way."""
        for record in records:
            self.add(record.tags)
            yield record.text

    def indicator(self) -> sp.csr_array:
        """Give float32 [rows, tags], ones at the tags of each row, in the order in which tags came up."""
        width = np.int32 if len(self._numbers) <= np.iinfo(np.int32).max else np.int64
        ends, numbers = np.array(self._ends, width), np.array(self._numbers, width)
        shape = (self.n_rows, len(self._number))
        matrix: sp.csr_array = sp.csr_array((np.ones(len(numbers), np.float32), numbers, ends), shape=shape)
        matrix.sum_duplicates()
        matrix.data[:] = 1
        return matrix

    def sorted_indicator(self) -> tuple[Objects, sp.csr_array]:
        """Give the tags in order, and the indicator whose columns they name."""
        tags = as_objects(sorted(self._number))
        place = np.empty(len(tags), np.int32)
        place[[self._number[tag] for tag in tags]] = np.arange(len(tags))
        matrix = self.indicator()
        matrix.indices = place[matrix.indices].astype(matrix.indices.dtype)
        matrix.has_sorted_indices = False
        matrix.sort_indices()
        return tags, matrix


def known_indicator(tags: Iterable[Iterable[str]], known: Objects, unseen: str) -> sp.csr_array:
    """Give the indicator of tags whose first columns are `known`; `unseen` as in `Tagger.transform_tags`."""
    indicator = TagCollector.of(tags, known).indicator()
    if unseen == "error" and indicator.shape[1] > len(known):
        raise ValueError(f"tags must occur in training; {indicator.shape[1] - len(known)} do not.")
    return indicator if unseen == "add" else indicator[:, : len(known)]


def as_objects(strings: Iterable[str]) -> Objects:
    """Give strings as an array of objects, never as one of fixed width."""
    listed = list(strings)
    result = np.empty(len(listed), dtype=object)
    result[:] = listed
    return result


def tag_numbers(tags: Iterable[str], index: Mapping[str, int], name: str) -> npt.NDArray[np.int64]:
    """Look up tags; refuse one that training never saw.

    Parameters
    ----------
    tags : iterable of str
    index : mapping of str to int
        The number of every tag.
    name : str
        What the caller calls them, for errors.
    """
    if isinstance(tags, str | bytes):
        raise TypeError(f"{name} must be a list of tags; got a single {type(tags).__name__}.")
    numbers = []
    for tag in tags:
        if tag not in index:
            raise ValueError(f"{name} must name tags that occur in training; {tag!r} does not.")
        numbers.append(index[tag])
    return np.array(numbers, np.int64)


def filtered_gain(
    gain: npt.NDArray[np.float64] | None,
    index: Mapping[str, int],
    only: Iterable[str] | None,
    never: Iterable[str] | None,
) -> npt.NDArray[np.float64] | None:
    """Set the gain of every tag that must not be returned to 0; None stays None without filters."""
    if only is None and never is None:
        return gain
    allowed = np.ones(len(index)) if only is None else np.zeros(len(index))
    if only is not None:
        allowed[tag_numbers(only, index, "only")] = 1
    if never is not None:
        allowed[tag_numbers(never, index, "never")] = 0
    return allowed if gain is None else gain * allowed


def group_numbers(groups: Mapping[str, Any], index: Mapping[str, int]) -> npt.NDArray[np.int64]:
    """Give each tag the number of its group; a tag in none is a group of its own."""
    members = tag_numbers(groups, index, "groups")
    numbers: dict[Any, int] = {}
    result = np.arange(len(index)) + len(members)
    result[members] = [numbers.setdefault(group, len(numbers)) for group in groups.values()]
    return result
