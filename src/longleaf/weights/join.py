"""The weights of a tree from those of consecutive ranges of its nodes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from longleaf import _core
from longleaf.weights.layout import COUNTED, SPARE_BYTES

_SEAMS = {"node": 1, "bytes": SPARE_BYTES} | dict.fromkeys(COUNTED, 1)
"""How many closing elements of an array are those that the next range begins with, or nothing at all."""


def join_ranges(ranges: Sequence[_core.WeightArrays]) -> _core.WeightArrays:
    """Put the weights of consecutive ranges of nodes, from the root on, together as one tree's."""
    return {
        name: np.concatenate(list(pieces(name, (one[name] for one in ranges), len(ranges))))
        for name in ranges[0]
    }


def joined_length(name: str, lengths: Sequence[int]) -> int:
    """Say how long an array is once its ranges are joined."""
    return sum(lengths) - _SEAMS.get(name, 0) * (len(lengths) - 1)


def pieces(name: str, arrays: Iterable[npt.NDArray[Any]], n_ranges: int) -> Iterator[npt.NDArray[Any]]:
    """Return the shares of consecutive ranges in a joined array, one after the other."""
    start = 0
    for number, array in enumerate(arrays, 1):
        piece = array
        if name in COUNTED:
            piece = array + start
            start = piece[-1]
        seam = _SEAMS.get(name, 0) if number < n_ranges else 0
        yield piece[: len(piece) - seam]
