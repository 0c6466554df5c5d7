"""All names of many tags, in flat arrays."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from longleaf._validation import ModelError
from longleaf.io._schema import check_arrays, check_range
from longleaf.io._strings import Arrays, packed, unpacked
from longleaf.io.relations import Pairs, Relations, as_pairs, reverse


class Name(NamedTuple):
    """One name of a tag: its text, its language ("" if unknown), and whether it is preferred."""

    text: str
    language: str = ""
    preferred: bool = True


class TagNames(Mapping[str, str]):
    """The names of tags: a mapping of each tag to the name to display, and all other names besides.

    A tag has at most one preferred name in each language; its other names are alternatives. It is displayed
    by its preferred name in the first of the chosen languages that has one, otherwise by its first preferred
    name; if it has none, by an alternative, chosen likewise. A million names take a few arrays and a list of
    strings, and no object each.

    Compared with another `TagNames`, everything counts; compared with another mapping, the displayed names.

    Parameters
    ----------
    names : iterable of (str, Name)
        A tag and one of its names, in order of importance. Repeated names count once, and of several
        preferred names in one language the first is preferred, the others are alternatives.
    languages : sequence of str
        Languages to display, the best first; ``de`` includes ``de-at``. The names in others stay.
    broader, related : iterable of (str, str)
        Two tags: the second is broader than, or related to, the first. Tags without names are skipped.

    Attributes
    ----------
    tags : list of str
        In order of first occurrence.
    texts : list of str [names]
        All names, those of a tag side by side: the displayed one, other preferred ones, alternatives.
    owners : array of int64 [names]
        The place in `tags` of each name's tag; ascending.
    languages : list of str
        The languages that occur, sorted; "" is an unknown one.
    language_codes : array of int32 [names]
        The place in `languages` of each name's language.
    preferred : array of bool [names]

    Examples
    --------
    >>> names = TagNames.of({"1264": "olive oil"})
    >>> names["1264"]
    'olive oil'
    >>> names = TagNames([("1264", Name("olive oil", "en")), ("1264", Name("Olivenöl", "de"))], ["de"])
    >>> names["1264"], names.all_names("1264")[1]
    ('Olivenöl', Name(text='olive oil', language='en', preferred=True))
    """

    tags: list[str]
    texts: list[str]
    owners: npt.NDArray[np.int64]
    languages: list[str]
    language_codes: npt.NDArray[np.int32]
    preferred: npt.NDArray[np.bool_]

    def __init__(
        self,
        names: Iterable[tuple[str, Name]],
        languages: Sequence[str] = (),
        *,
        broader: Iterable[tuple[str, str]] = (),
        related: Iterable[tuple[str, str]] = (),
    ) -> None:
        tags: dict[str, int] = {}
        known: dict[str, int] = {}
        owners, codes, preferred = array("q"), array("i"), array("b")
        texts: list[str] = []
        for tag, (text, language, is_preferred) in names:
            owners.append(tags.setdefault(tag, len(tags)))
            codes.append(known.setdefault(language, len(known)))
            preferred.append(is_preferred)
            texts.append(text)
        self.tags, self.languages = list(tags), sorted(known)
        number = {language: number for number, language in enumerate(self.languages)}
        place = np.array([number[language] for language in known], np.int32)
        columns = np.array(owners, np.int64), place[np.array(codes, np.int64)], np.array(preferred, np.bool_)
        chosen, is_preferred_now = _distinct(*columns, texts)
        self._set(columns[0][chosen], columns[1][chosen], is_preferred_now, [texts[row] for row in chosen])
        self._order(languages)
        self._broader = as_pairs(_numbered(broader, tags))
        pairs = _numbered(related, tags)
        self._related = as_pairs(np.concatenate([pairs, pairs[:, ::-1]]))

    @classmethod
    def of(cls, names: Mapping[str, str]) -> TagNames:
        """Return a mapping of tags to names as `TagNames`; one that already is one is returned as it is."""
        check_names(names)
        if isinstance(names, TagNames):
            return names
        for tag, name in names.items():
            if not (isinstance(tag, str) and isinstance(name, str)):
                raise TypeError(f"names must map strings to strings; got {tag!r:.80}: {name!r:.80}.")
            if not (tag.strip() and name.strip()):
                raise ValueError(f"names must hold no empty tag or name; got {tag!r:.80}: {name!r:.80}.")
        return cls((tag, Name(name)) for tag, name in names.items())

    def in_languages(self, languages: Sequence[str]) -> TagNames:
        """Return the same names, displayed in these languages where they have them, otherwise as before."""
        changed = self._copy()
        changed._order(languages)
        return changed

    def renamed(self, tags: Mapping[str, str]) -> TagNames:
        """Return the names and relations with other tags; a tag whose place is taken goes with its names.

        Parameters
        ----------
        tags : mapping of str to str
            The new tag of each tag that gets one.
        """
        new = [tags.get(tag, tag) for tag in self.tags]
        last: dict[str, int] = {}
        for number, (old, tag) in enumerate(zip(self.tags, new, strict=True)):
            if tag not in last or old in tags:
                last[tag] = number
        place = np.full(len(new), -1, np.int64)
        kept = np.sort(np.array(list(last.values()), np.int64))
        place[kept] = np.arange(len(kept))
        changed = self._copy()
        changed.tags = [new[number] for number in kept]
        rows = np.flatnonzero(place[self.owners] >= 0)
        changed._set(
            place[self.owners[rows]],
            self.language_codes[rows],
            self.preferred[rows],
            [self.texts[row] for row in rows],
        )
        for relation in ("_broader", "_related"):
            pairs = place[getattr(self, relation)]
            setattr(changed, relation, as_pairs(pairs[(pairs >= 0).all(axis=1)]))
        return changed

    def __getitem__(self, tag: str) -> str:
        return self.texts[int(self._starts[self._numbers[tag]])]

    def __contains__(self, tag: object) -> bool:
        return tag in self._numbers

    def __iter__(self) -> Iterator[str]:
        return iter(self.tags)

    def __len__(self) -> int:
        return len(self.tags)

    def all_names(self, tag: str) -> tuple[Name, ...]:
        """Return all names of a tag: the displayed one, other preferred ones, alternatives."""
        number = self._numbers[tag]
        rows = range(self._starts[number], self._starts[number + 1])
        return tuple(
            Name(self.texts[row], self.languages[self.language_codes[row]], bool(self.preferred[row]))
            for row in rows
        )

    @property
    def broader(self) -> Relations:
        """The tags just above a tag."""
        return Relations(self.tags, self._numbers, self._broader)

    @property
    def narrower(self) -> Relations:
        """The tags just below a tag."""
        return Relations(self.tags, self._numbers, reverse(self._broader))

    @property
    def related(self) -> Relations:
        """The tags beside a tag; if one is related to another, that is to the one."""
        return Relations(self.tags, self._numbers, self._related)

    def to_arrays(self) -> Arrays:
        """Return everything as plain arrays, for `from_arrays`."""
        return {
            **packed("tags", self.tags),
            **packed("names", self.texts),
            **packed("languages", self.languages),
            "owners": self.owners,
            "language_codes": self.language_codes,
            "preferred": self.preferred,
            "broader/from": self._broader[:, 0],
            "broader/to": self._broader[:, 1],
            "related/from": self._related[:, 0],
            "related/to": self._related[:, 1],
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, npt.NDArray[Any]], folder: str = "") -> TagNames:
        """Return what `to_arrays` made arrays of; without owners, each tag has one name.

        Parameters
        ----------
        arrays : mapping of str to array
        folder : str
            The folder of the arrays, with a slash at the end, for error messages.
        """
        try:
            return cls._from_arrays(arrays, folder)
        except ValueError as error:
            raise ModelError(str(error)) from None

    @classmethod
    def _from_arrays(cls, arrays: Mapping[str, npt.NDArray[Any]], folder: str) -> TagNames:
        tags, texts = unpacked(arrays, "tags", folder), unpacked(arrays, "names", folder)
        if len(set(tags)) != len(tags):
            raise ValueError(f"{folder}tags must be distinct.")
        if "owners" not in arrays:  # as models had it before tags had several names
            if len(tags) != len(texts):
                raise ValueError(f"names must have as many tags as names; got {len(tags)} and {len(texts)}.")
            return cls(zip(tags, map(Name, texts), strict=True))
        self = cls.__new__(cls)
        self.tags, self.languages = tags, unpacked(arrays, "languages", folder)
        if self.languages != sorted(set(self.languages)):
            raise ValueError(f"{folder}languages must be sorted, each once.")
        columns = {"owners": "int64", "language_codes": "int32", "preferred": "bool"}
        check_arrays(arrays, columns, folder)
        for column in columns:
            if len(arrays[column]) != len(texts):
                raise ValueError(
                    f"{folder}{column}.npy must have {len(texts)} items, as there are names; "
                    f"got {len(arrays[column])}."
                )
        owners, codes, preferred = (np.array(arrays[column]) for column in columns)
        steps = np.diff(owners, prepend=-1, append=len(tags))
        if np.any((steps < 0) | (steps > 1)) or (len(texts) > 0 and owners[0] != 0) or steps[-1] != 1:
            raise ValueError(f"{folder}owners.npy must ascend over all {len(tags)} tags.")
        check_range(codes, 0, len(self.languages) - 1, f"{folder}language_codes.npy")
        if np.any((owners[1:] == owners[:-1]) & preferred[1:] & ~preferred[:-1]):
            raise ValueError(f"{folder}preferred.npy must have the preferred names of a tag first.")
        self._set(owners, codes, preferred, texts)
        self._broader = _read_pairs(arrays, "broader", folder, len(tags))
        self._related = _read_pairs(arrays, "related", folder, len(tags))
        return self

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TagNames):
            return super().__eq__(other)
        return (
            self.tags == other.tags
            and self.texts == other.texts
            and self.languages == other.languages
            and all(
                np.array_equal(getattr(self, column), getattr(other, column))
                for column in ("owners", "language_codes", "preferred", "_broader", "_related")
            )
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"TagNames({len(self.texts)} names of {len(self.tags)} tags)"

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name not in ("_numbers", "_starts")}

    def _copy(self) -> TagNames:
        changed = TagNames.__new__(TagNames)
        changed.__dict__.update(self.__getstate__())
        return changed

    def _set(
        self,
        owners: npt.NDArray[np.int64],
        codes: npt.NDArray[np.int32],
        preferred: npt.NDArray[np.bool_],
        texts: list[str],
    ) -> None:
        for column in (owners, codes, preferred):
            column.flags.writeable = False
        self.owners, self.language_codes, self.preferred, self.texts = owners, codes, preferred, texts

    def _order(self, languages: Sequence[str]) -> None:
        """Order the names of each tag: preferred ones first, then by language, then as they came."""
        ranks = np.array([language_rank(language, languages) for language in self.languages], np.int64)
        order = np.lexsort((ranks[self.language_codes], ~self.preferred, self.owners))
        self._set(
            self.owners[order],
            self.language_codes[order],
            self.preferred[order],
            [self.texts[row] for row in order],
        )

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {tag: number for number, tag in enumerate(self.tags)}

    @cached_property
    def _starts(self) -> npt.NDArray[np.int64]:
        return np.searchsorted(self.owners, np.arange(len(self.tags) + 1)).astype(np.int64)


def check_names(names: object) -> None:
    """Refuse what does not map tags to names, such as the path of a file."""
    if not isinstance(names, Mapping):
        raise TypeError(
            "names must map tags to names, as longleaf.read_names returns them from a file; "
            f"got {type(names).__name__}."
        )


def plain_language(language: str) -> str:
    """Return the code of a language as it is stored: ``de_AT`` and ``de-AT`` are ``de-at``."""
    return language.strip().lower().replace("_", "-")


def language_rank(language: str, languages: Sequence[str]) -> int:
    """Return the place of a language among those to display, or their number if it is none of them."""
    for rank, wanted in enumerate(languages):
        if language == wanted or (wanted and language.startswith(f"{wanted}-")):
            return rank
    return len(languages)


def _numbered(pairs: Iterable[tuple[str, str]], numbers: Mapping[str, int]) -> Pairs:
    """Return the numbers of two tags each, without pairs of unknown tags."""
    found = [(numbers[one], numbers[other]) for one, other in pairs if one in numbers and other in numbers]
    return np.array(found, np.int64).reshape(-1, 2)


def _distinct(
    owners: npt.NDArray[np.int64],
    codes: npt.NDArray[np.int32],
    preferred: npt.NDArray[np.bool_],
    texts: Sequence[str],
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    """Choose rows so that no tag has a name twice; say which are preferred, at most one in each language.

    A name that is both preferred and an alternative is preferred.
    """
    if not texts:
        return np.zeros(0, np.int64), np.zeros(0, np.bool_)
    numbers: dict[str, int] = {}
    words = np.array([numbers.setdefault(text, len(numbers)) for text in texts], np.int64)
    order = np.lexsort((words, codes, owners))
    columns = np.stack([owners[order], codes[order].astype(np.int64), words[order]])
    is_new = np.concatenate([[True], np.any(columns[:, 1:] != columns[:, :-1], axis=0)])
    firsts = np.flatnonzero(is_new)
    chosen, liked = order[firsts], np.logical_or.reduceat(preferred[order], firsts)
    back = np.argsort(chosen)
    chosen, liked = chosen[back], liked[back]

    rows = np.flatnonzero(liked)
    language = np.stack([owners[chosen[rows]], codes[chosen[rows]].astype(np.int64)])
    order = np.lexsort(language)
    language = language[:, order]
    repeats = np.concatenate([[False], np.all(language[:, 1:] == language[:, :-1], axis=0)])[: len(rows)]
    liked[rows[order[repeats]]] = False
    return chosen, liked


def _read_pairs(arrays: Mapping[str, npt.NDArray[Any]], name: str, folder: str, n_tags: int) -> Pairs:
    names = f"{name}/from", f"{name}/to"
    check_arrays(arrays, dict.fromkeys(names, "int64"), folder)
    columns = [arrays[column] for column in names]
    if len(columns[0]) != len(columns[1]):
        raise ValueError(
            f"{folder}{name} must lead from as many tags as to; got {len(columns[0])} and {len(columns[1])}."
        )
    for column, numbers in zip(names, columns, strict=True):
        check_range(numbers, 0, n_tags - 1, f"{folder}{column}.npy")
    return as_pairs(np.stack(columns, axis=1))
