r"""Names of tags, found where they stand in records.

Names are compared as their words (``\w+``), in lower case and without the ending of an inflected form, by one
rule for all languages: of six characters or more a word loses a final -es, -en, -er, -em or -ern, otherwise
of five or more a final -e, -n or -s. What stands in brackets says which meaning a name has, and texts do not
repeat it: "Bank (Möbel)" is found as "Bank", and its entry is marked. Compounds are not divided.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from longleaf import _core
from longleaf._validation.numbers import MOST_LABELS, check_threads
from longleaf.io._schema import check_arrays, check_range
from longleaf.text.batches import batches, encoded
from longleaf.text.characters import character_table

Ints = npt.NDArray[np.int32]
Offsets = npt.NDArray[np.int64]

ARRAYS = {
    "phrase_bytes": "uint8",
    "phrase_offsets": "int64",
    "entry_ptr": "int64",
    "entry_labels": "int32",
    "entry_brackets": "bool",
}
"""The arrays of an index and their dtypes."""

_BRACKETS = re.compile(r"\s*[<(][^>)\n]*[>)]")
_WORD = re.compile(r"\w")


@dataclass(frozen=True, eq=False)
class Matches:
    """The phrases that stand in records: those of record ``i`` are ``phrases[indptr[i]:indptr[i + 1]]``.

    Attributes
    ----------
    indptr : int64 array [records + 1]
    phrases : int32 array [matches]
        Ascending in each record; each phrase once.
    in_first, counts : int32 arrays [matches]
        How often the phrase stands in the first field of the record, and in all fields.
    positions : int32 array [matches]
        How many words of the record, through all of its fields, come before the first place.
    n_words : int32 array [records]
        The words of each record.
    """

    indptr: Offsets
    phrases: Ints
    in_first: Ints
    counts: Ints
    positions: Ints
    n_words: Ints

    def of(self, rows: npt.ArrayLike) -> Matches:
        """Return the matches of some of the records, given by their numbers."""
        rows = np.asarray(rows)
        sizes = np.diff(self.indptr)[rows]
        indptr = _offsets(sizes)
        places = np.arange(indptr[-1]) + np.repeat(self.indptr[rows] - indptr[:-1], sizes)
        return Matches(
            indptr,
            self.phrases[places],
            self.in_first[places],
            self.counts[places],
            self.positions[places],
            self.n_words[rows],
        )


class PhraseIndex:
    """Names of labels, ready to be found in records.

    Names with the same words are one phrase. A phrase has an entry for each label with such a name.

    Parameters
    ----------
    names : iterable of str
        Several may have the same label. Names without a word are never found.
    labels : int array [names]
        The label of each name.
    n_jobs : int or None, default=None
        Number of threads of `find`; None is 1, -1 is all cores.

    Attributes
    ----------
    phrase_bytes, phrase_offsets : uint8 array, int64 array [phrases + 1]
        The phrases, packed: stemmed words, separated by single spaces.
    entry_ptr : int64 array [phrases + 1]
        The entries of phrase ``p`` are ``entry_ptr[p]`` to ``entry_ptr[p + 1]``.
    entry_labels : int32 array [entries]
        Ascending in each phrase.
    entry_brackets : bool array [entries]
        Whether the label's first name of these words has brackets.

    Examples
    --------
    >>> from longleaf.text.phrases import PhraseIndex
    >>> index = PhraseIndex(["Olive oil", "Bank (Möbel)", "Bank"], [0, 1, 2])
    >>> found = index.find([["Banken und Olive Oil", "A bank."]])
    >>> found.phrases.tolist(), found.counts.tolist(), found.positions.tolist()
    ([0, 1], [1, 2], [2, 0])
    >>> index.entry_labels.tolist(), index.entry_brackets.tolist()
    ([0, 1, 2], [False, True, False])
    """

    phrase_bytes: npt.NDArray[np.uint8]
    phrase_offsets: Offsets
    entry_ptr: Offsets
    entry_labels: Ints
    entry_brackets: npt.NDArray[np.bool_]

    def __init__(self, names: Iterable[str], labels: npt.ArrayLike, n_jobs: int | None = None) -> None:
        check_threads(n_jobs)
        self.n_jobs = n_jobs
        stripped, brackets = _without_brackets(names)
        numbers = _checked_labels(labels, len(stripped))
        texts = list(chain.from_iterable(batches(stripped, lowercase=True)))
        data, offsets, phrases = _core.phrase_texts(texts, character_table(True))
        named = np.flatnonzero(phrases >= 0)
        order = named[
            np.lexsort((numbers[named], phrases[named]))
        ]  # stable: a label's first name comes first
        same = (np.diff(phrases[order]) == 0) & (np.diff(numbers[order]) == 0)
        order = order[np.append(True, ~same)] if order.size else order
        self.phrase_bytes, self.phrase_offsets = data, offsets
        self.entry_ptr = _offsets(np.bincount(phrases[order], minlength=len(offsets) - 1))
        self.entry_labels, self.entry_brackets = numbers[order], brackets[order]

    def __len__(self) -> int:
        return len(self.phrase_offsets) - 1

    def phrase(self, number: int) -> str:
        """Return a phrase: stemmed words, separated by single spaces."""
        begin, end = self.phrase_offsets[number : number + 2]
        return self.phrase_bytes[begin:end].tobytes().decode("utf-8", "surrogatepass")

    @cached_property
    def n_words(self) -> Ints:
        """The words of each phrase, int32 [phrases]."""
        return self._count(self.phrase_bytes == ord(" ")) + np.int32(1)

    @cached_property
    def n_characters(self) -> Ints:
        """The characters of the stemmed words of each phrase, without spaces, int32 [phrases]."""
        return self._count((self.phrase_bytes & 0xC0 != 0x80) & (self.phrase_bytes != ord(" ")))

    def find(self, records: Iterable[Sequence[str]]) -> Matches:
        """Find the phrases in records.

        Parameters
        ----------
        records : iterable of sequences of str
            The texts of the fields of each record, the same number of fields in all. No phrase goes on from
            one field into the next. Records are read in batches.

        Returns
        -------
        Matches
            The same for any number of threads.
        """
        threads, table = check_threads(self.n_jobs), character_table(True)
        records = iter(records)
        first = next(records, None)
        if first is None:
            return _joined([])
        n_fields = len(_check_record(first, 0))
        checked = _checked_records(chain([first], records), n_fields)
        return _joined(
            [
                Matches(*self._native.find(batch, n_fields, table, threads))
                for batch in encoded(checked, lowercase=True)
            ]
        )

    def keep(self, entries: npt.ArrayLike) -> Self:
        """Return an index of some of the entries; phrases that have none of them are dropped.

        Parameters
        ----------
        entries : bool array [entries]
            Which to keep.
        """
        kept = np.asarray(entries)
        if kept.dtype != np.bool_ or kept.shape != self.entry_labels.shape:
            raise ValueError(
                f"entries must be {len(self.entry_labels)} booleans, one per entry; "
                f"got {kept.dtype} of shape {kept.shape}."
            )
        counts = np.diff(np.append(0, np.cumsum(kept))[self.entry_ptr])
        phrases, lengths = counts > 0, np.diff(self.phrase_offsets)
        return self._of(
            self.phrase_bytes[np.repeat(phrases, lengths)],
            _offsets(lengths[phrases]),
            _offsets(counts[phrases]),
            self.entry_labels[kept],
            self.entry_brackets[kept],
            self.n_jobs,
        )

    def renumbered(self, numbers: npt.ArrayLike) -> Self:
        """Return the index with other numbers for its labels, which must differ: an int array [labels]."""
        labels = np.asarray(numbers, np.int32)[self.entry_labels]
        phrase = np.repeat(np.arange(len(self)), np.diff(self.entry_ptr))
        order = np.lexsort((labels, phrase))
        brackets = self.entry_brackets[order]
        return self._of(
            self.phrase_bytes, self.phrase_offsets, self.entry_ptr, labels[order], brackets, self.n_jobs
        )

    def state(self) -> dict[str, npt.NDArray[Any]]:
        """Return all arrays by name, to be saved."""
        return {name: getattr(self, name) for name in ARRAYS}

    @classmethod
    def from_state(
        cls,
        arrays: Mapping[str, npt.NDArray[Any]],
        n_labels: int = MOST_LABELS,
        n_jobs: int | None = None,
        folder: str = "",
    ) -> Self:
        """Return the index of the result of `state`; reject arrays that no index has.

        Parameters
        ----------
        arrays : mapping of str to array
            They may be memory-mapped.
        n_labels : int
            The labels of the model, which those of the entries must be among.
        n_jobs : int or None
            As of the index.
        folder : str
            The folder of the arrays, for error messages.

        Notes
        -----
        What is checked when the first text is read: that no two phrases are the same.
        """
        check_threads(n_jobs)
        check_arrays(arrays, ARRAYS, folder)
        data, offsets, ptr, labels, brackets = (np.ascontiguousarray(arrays[name]) for name in ARRAYS)
        _check_phrases(data, offsets, folder)
        _check_offsets(ptr, len(labels), f"{folder}entry_ptr.npy")
        if len(ptr) != len(offsets):
            raise ValueError(
                f"{folder}entry_ptr.npy must have {len(offsets)} numbers, as phrase_offsets.npy; "
                f"got {len(ptr)}."
            )
        check_range(labels, 0, n_labels - 1, f"{folder}entry_labels.npy")
        starts = np.zeros(len(labels), bool)
        starts[ptr[:-1]] = True
        if np.any((labels[1:] <= labels[:-1]) & ~starts[1:]):
            raise ValueError(f"{folder}entry_labels.npy must rise in each phrase.")
        if len(brackets) != len(labels):
            raise ValueError(
                f"{folder}entry_brackets.npy must have {len(labels)} elements, as entry_labels.npy; "
                f"got {len(brackets)}."
            )
        check_range(brackets.view(np.uint8), 0, 1, f"{folder}entry_brackets.npy")
        return cls._of(data, offsets, ptr, labels, brackets, n_jobs)

    @classmethod
    def _of(
        cls,
        phrase_bytes: npt.NDArray[np.uint8],
        phrase_offsets: Offsets,
        entry_ptr: Offsets,
        entry_labels: Ints,
        entry_brackets: npt.NDArray[np.bool_],
        n_jobs: int | None,
    ) -> Self:
        made = cls.__new__(cls)
        made.n_jobs = n_jobs
        made.phrase_bytes, made.phrase_offsets = phrase_bytes, phrase_offsets
        made.entry_ptr, made.entry_labels, made.entry_brackets = entry_ptr, entry_labels, entry_brackets
        return made

    def __getstate__(self) -> dict[str, Any]:
        return {"n_jobs": self.n_jobs, **self.state()}  # what is native is cheap to build again

    @cached_property
    def _native(self) -> _core.PhraseIndex:
        return _core.PhraseIndex(self.phrase_bytes, self.phrase_offsets)

    def _count(self, bytes_to_count: npt.NDArray[np.bool_]) -> Ints:
        sums = np.append(0, np.cumsum(bytes_to_count))
        return np.diff(sums[self.phrase_offsets]).astype(np.int32)


def _without_brackets(names: Iterable[str]) -> tuple[list[str], npt.NDArray[np.bool_]]:
    """Return names without what stands in brackets, and which of them had any; names of nothing else stay."""
    if isinstance(names, str | bytes):
        raise TypeError(f"names must be an iterable of strings; got a single {type(names).__name__}.")
    stripped, brackets = [], []
    for number, name in enumerate(names):
        if not isinstance(name, str):
            raise TypeError(f"names[{number}] must be a string; got {type(name).__name__}.")
        rest = _BRACKETS.sub("", name) if "(" in name or "<" in name else name
        stripped.append(rest if _WORD.search(rest) else name)
        brackets.append(rest != name)
    return stripped, np.array(brackets, bool)


def _checked_labels(labels: npt.ArrayLike, n_names: int) -> Ints:
    numbers = np.asarray(labels)
    if not numbers.size:
        numbers = numbers.astype(np.int32)
    if numbers.dtype.kind not in "iu" or numbers.shape != (n_names,):
        raise ValueError(
            f"labels must be {n_names} whole numbers, one per name; "
            f"got {numbers.dtype} of shape {numbers.shape}."
        )
    check_range(numbers, 0, MOST_LABELS - 1, "labels")
    return numbers.astype(np.int32)


def _check_record(record: Any, number: int) -> Sequence[str]:
    if isinstance(record, str | bytes) or not isinstance(record, Sequence):
        raise TypeError(
            f"records[{number}] must be a list of texts, one per field; got {type(record).__name__}."
        )
    if not record:
        raise ValueError(f"records[{number}] must have at least one field; got none.")
    return record


def _checked_records(records: Iterable[Sequence[str]], n_fields: int) -> Iterator[Sequence[str]]:
    """Yield records, each of which must have so many fields."""
    for number, record in enumerate(records):
        if len(_check_record(record, number)) != n_fields:
            raise ValueError(
                f"records[{number}] must have {n_fields} fields, as records[0]; got {len(record)}."
            )
        for field, text in enumerate(record):
            if not isinstance(text, str):
                raise TypeError(f"records[{number}][{field}] must be a string; got {type(text).__name__}.")
        yield record


def _joined(batches: list[Matches]) -> Matches:
    """Return the matches of the records of all batches."""
    if len(batches) == 1:
        return batches[0]
    none = np.empty(0, np.int32)
    arrays = {
        name: np.concatenate([none, *(getattr(batch, name) for batch in batches)])
        for name in ("phrases", "in_first", "counts", "positions", "n_words")
    }
    counts = [np.diff(batch.indptr) for batch in batches]
    return Matches(_offsets(np.concatenate([np.empty(0, np.int64), *counts])), **arrays)


def _offsets(counts: npt.NDArray[Any]) -> Offsets:
    return np.append(0, np.cumsum(counts, dtype=np.int64))


def _check_offsets(offsets: Offsets, end: int, name: str) -> None:
    """Reject offsets that do not divide so many values into lists that have some each."""
    if not offsets.size or offsets[0] != 0 or offsets[-1] != end or np.any(offsets[1:] <= offsets[:-1]):
        raise ValueError(f"{name} must be numbers that rise from 0 to {end}.")


def _check_phrases(data: npt.NDArray[np.uint8], offsets: Offsets, folder: str) -> None:
    """Reject what is not words in UTF-8 that are separated by single spaces."""
    _check_offsets(offsets, len(data), f"{folder}phrase_offsets.npy")
    try:
        str(data.data, "utf-8", "surrogatepass")
    except UnicodeDecodeError:
        raise ValueError(f"{folder}phrase_bytes.npy must be UTF-8.") from None
    if np.any(data[offsets[:-1]] & 0xC0 == 0x80):
        raise ValueError(f"{folder}phrase_offsets.npy must not divide a character.")
    space = data == ord(" ")
    if np.any(space[offsets[:-1]]) or np.any(space[offsets[1:] - 1]) or np.any(space[1:] & space[:-1]):
        raise ValueError(f"{folder}phrase_bytes.npy must be words that single spaces separate.")
