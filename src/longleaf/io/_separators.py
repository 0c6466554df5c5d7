"""Which character separates tags that stand in one string, judged by the strings.

Given: the strings of the first rows, and the separator that they are split by. Out: another one, if the
strings speak for it. A comma may well be part of a tag (``Anemia, Sickle Cell``; ``Doe, Jane``; ``Paris,
France``), and so may a bar (``Sport|Football``). But the parts of such tags keep to their places: a surname
begins, a first name follows. The tags of a list do not: those that recur stand first in some rows and further
back in others. This is what is asked for here.
"""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

CANDIDATES = (";", "|", ",")
MOST_STRINGS = 5000
MOST_CHARACTERS = 2000
"""Of one string; no more are kept."""

LEAST_ROWS = 10
LEAST_SHARE = 0.1
"""The rows that a separator must stand in."""

LEAST_MIXED = 1 / 4
"""The share of the parts that must have no place of their own, of the occurrences of all parts that recur."""


class Separator(NamedTuple):
    """A separator that would explain the strings of a table, and the share of them that it stands in."""

    text: str
    share: float


class SeparatorWatch:
    """Keeps the first strings of tags, to say in the end whether another separator would explain them."""

    def __init__(self) -> None:
        self._strings: list[str] = []

    def see(self, tags: object) -> None:
        """Take in the field of one row; lists need no separator."""
        if isinstance(tags, str) and tags and len(self._strings) < MOST_STRINGS:
            self._strings.append(tags[:MOST_CHARACTERS])

    def better_than(self, used: str | None) -> Separator | None:
        """Return the separator that explains the strings better than the one in use does; None if none does."""
        least = max(LEAST_ROWS, LEAST_SHARE * len(self._strings))
        rows = {text: sum(text in string for string in self._strings) for text in CANDIDATES}
        mixed = {text: _mixed(text, self._strings) for text in CANDIDATES if rows[text] >= least}
        best = max(mixed, key=mixed.__getitem__, default=None)
        already = _mixed(used, self._strings) if used else 0.0
        if best is None or best == used or mixed[best] < max(LEAST_MIXED, already):
            return None
        return Separator(best, rows[best] / len(self._strings))


def _mixed(separator: str, strings: list[str]) -> float:
    """Return the share that parts seen both first and further back have in what recurs."""
    first: Counter[str] = Counter()
    later: Counter[str] = Counter()
    for string in strings:
        head, *rest = (part.strip() for part in string.split(separator))
        first[head] += 1
        later.update(part for part in rest if part)
    recurring = mixed = 0
    for part in first.keys() | later.keys():
        times = first[part] + later[part]
        recurring += times if times > 1 else 0
        mixed += times if part in first and part in later else 0
    return mixed / recurring if recurring else 0.0
