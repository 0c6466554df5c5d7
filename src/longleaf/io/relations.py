"""Which tags are broader than, narrower than or related to a tag."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import numpy.typing as npt

Pairs = npt.NDArray[np.int64]
"""Numbers of tags [pairs, 2]: each of the first column has the relation to the second."""


def as_pairs(pairs: npt.ArrayLike) -> Pairs:
    """Return pairs of numbers in ascending order, each once; a tag has no relation to itself."""
    found: Pairs = np.asarray(pairs, np.int64).reshape(-1, 2)
    found = found[found[:, 0] != found[:, 1]]
    if found.size:
        found = found[np.lexsort((found[:, 1], found[:, 0]))]
        found = found[np.concatenate([[True], np.any(found[1:] != found[:-1], axis=1)])]
    found.flags.writeable = False
    return found


def reverse(pairs: Pairs) -> Pairs:
    """Return the inverse relation."""
    return as_pairs(pairs[:, ::-1])


class Relations(Mapping[str, tuple[str, ...]]):
    """A relation as a mapping of tags to the tags that it leads to; tags without any are no keys.

    Parameters
    ----------
    tags : sequence of str
    numbers : mapping of str to int
        The place of each tag in `tags`.
    pairs : array of int64 [pairs, 2]
        As `as_pairs` returns them.
    """

    def __init__(self, tags: Sequence[str], numbers: Mapping[str, int], pairs: Pairs) -> None:
        self.pairs = pairs
        self._tags, self._numbers = tags, numbers

    def __getitem__(self, tag: str) -> tuple[str, ...]:
        number = self._numbers[tag]
        start, end = np.searchsorted(self.pairs[:, 0], [number, number + 1])
        if start == end:
            raise KeyError(tag)
        return tuple(self._tags[other] for other in self.pairs[start:end, 1])

    def __iter__(self) -> Iterator[str]:
        return (self._tags[number] for number in np.unique(self.pairs[:, 0]))

    def __len__(self) -> int:
        return len(np.unique(self.pairs[:, 0]))

    def __repr__(self) -> str:
        return f"Relations({len(self.pairs)} pairs)"
