"""Substring search in the names of millions of tags."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

MOST_HITS = 10_000
"""Maximum hits to rank, because a short query occurs in very many names."""
END = "\n"


class TagSearch:
    """All names in one string, so that a search is one pass of ``str.find``.

    Parameters
    ----------
    names, tags : sequences of str
        Searched case-insensitively.
    counts : int array [labels]
        Of two equally good hits, the more frequent comes first.
    """

    def __init__(self, names: Sequence[str], tags: Sequence[str], counts: npt.NDArray[np.int64]) -> None:
        entries = [
            _plain(name) if name == tag else f"{_plain(name)}\t{_plain(tag)}"
            for name, tag in zip(names, tags, strict=True)
        ]
        self._all = END + END.join(entries) + END
        self._begin = np.cumsum([1, *(len(entry) + 1 for entry in entries)])[:-1]
        self._counts = counts

    def find(self, query: str, limit: int) -> list[int]:
        """Return the labels whose name or tag contains the query: whole names, prefixes, then others."""
        needle = _plain(query).strip()
        if not needle:
            return [int(label) for label in np.argsort(-self._counts, kind="stable")[:limit]]
        ranked = sorted((self._rank(needle, place), label) for place, label in self._hits(needle))
        best = dict.fromkeys(label for _, label in ranked)
        return list(best)[:limit]

    def _hits(self, needle: str) -> Iterator[tuple[int, int]]:
        place, hits = self._all.find(needle), 0
        while place >= 0 and hits < MOST_HITS:
            yield place, bisect_right(self._begin, place) - 1
            hits += 1
            place = self._all.find(needle, place + 1)

    def _rank(self, needle: str, place: int) -> tuple[int, int]:
        before, after = self._all[place - 1], self._all[place + len(needle)]
        label = bisect_right(self._begin, place) - 1
        starts = before in "\n\t"
        kind = 0 if starts and after in "\n\t" else 1 if starts else 2 if not before.isalnum() else 3
        return kind, -int(self._counts[label])


def _plain(text: str) -> str:
    return text.casefold().replace(END, " ").replace("\t", " ")
