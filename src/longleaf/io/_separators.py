"""Guessing the character that separates tags in a string.

Given: the strings of the first rows, and the separator in use. Result: another separator, if the strings
suggest one. A comma may well be contained in a tag (``Anemia, Sickle Cell``; ``Doe, Jane``; ``Paris,
France``), and so may a bar (``Sport|Football``). But the pieces of such tags have fixed positions: a surname
comes first, a first name follows. The tags of a list do not: those that occur repeatedly are first in some
rows and further back in others. This is the test.
"""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

CANDIDATES = (";", "|", ",")
MOST_STRINGS = 5000
MOST_CHARACTERS = 2000
"""Maximum characters kept of a string."""

LEAST_ROWS = 10
LEAST_SHARE = 0.1
"""Minimum number of rows that must contain a separator."""

LEAST_MIXED = 1 / 4
"""Minimum share of pieces without a fixed position, among all occurrences of repeated pieces."""


class Separator(NamedTuple):
    """A separator that would explain the strings of a table, and the share of strings that contain it."""

    text: str
    share: float


class SeparatorWatch:
    """Keeps the first strings of tags, to decide in the end whether another separator explains them."""

    def __init__(self) -> None:
        self._strings: list[str] = []

    def see(self, tags: object) -> None:
        """Add the field of one row; lists need no separator."""
        if isinstance(tags, str) and tags and len(self._strings) < MOST_STRINGS:
            self._strings.append(tags[:MOST_CHARACTERS])

    def better_than(self, used: str | None) -> Separator | None:
        """Return a separator that explains the strings better than the one in use, or None."""
        least = max(LEAST_ROWS, LEAST_SHARE * len(self._strings))
        rows = {text: sum(text in string for string in self._strings) for text in CANDIDATES}
        mixed = {text: _mixed(text, self._strings) for text in CANDIDATES if rows[text] >= least}
        best = max(mixed, key=mixed.__getitem__, default=None)
        already = _mixed(used, self._strings) if used else 0.0
        if best is None or best == used or mixed[best] < max(LEAST_MIXED, already):
            return None
        return Separator(best, rows[best] / len(self._strings))


def _mixed(separator: str, strings: list[str]) -> float:
    """Return the share of repeated pieces that occur both first and further back."""
    first: Counter[str] = Counter()
    later: Counter[str] = Counter()
    for string in strings:
        head, *rest = (piece.strip() for piece in string.split(separator))
        first[head] += 1
        later.update(piece for piece in rest if piece)
    recurring = mixed = 0
    for piece in first.keys() | later.keys():
        times = first[piece] + later[piece]
        recurring += times if times > 1 else 0
        mixed += times if piece in first and piece in later else 0
    return mixed / recurring if recurring else 0.0
