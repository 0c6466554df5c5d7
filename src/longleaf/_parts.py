"""The weights of a tree from those of its parts."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from longleaf import _core

SPARE_BYTES = 8
"""What follows the bytes of the last chunk, since the kernels read eight codes at a time."""

_ENDS = ("word", "slot", "byte")  # where each chunk's share of the other arrays ends, counted from 0


def join_parts(parts: Sequence[_core.WeightArrays]) -> _core.WeightArrays:
    """Put the weights of consecutive ranges of nodes, from the root on, together as one tree's."""
    joined = {name: np.concatenate([_without_seam(name, part) for part in parts]) for name in parts[0]}
    joined["node"] = np.append(joined["node"], parts[-1]["node"][-1])
    joined["bytes"] = np.append(joined["bytes"], np.zeros(SPARE_BYTES, np.uint8))
    for name in _ENDS:
        sizes = np.concatenate([np.diff(part[name]) for part in parts])
        joined[name] = np.append(np.int64(0), np.cumsum(sizes))
    return joined


def _without_seam(name: str, part: _core.WeightArrays) -> np.ndarray:
    """Give a part's own share of an array: no closing element, no spare bytes."""
    if name == "node" or name in _ENDS:
        return part[name][:-1]
    return part[name][:-SPARE_BYTES] if name == "bytes" else part[name]
