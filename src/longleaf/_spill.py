"""Weights that go to disk as their nodes are finished, and come back memory-mapped."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
import numpy.typing as npt

from longleaf import _core
from longleaf._parts import _ENDS, SPARE_BYTES, _without_seam
from longleaf.io._append import ArrayAppender
from longleaf.linear import NodeTrainer

SMALLEST_SCRATCH = 1 << 20
"""Working arrays of fewer bytes stay in memory."""


class WeightFiles:
    """The weights of one tree, appended to files part by part: what `join_parts` would give, on disk."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._arrays: dict[str, ArrayAppender] = {}
        self._ends = dict.fromkeys(_ENDS, 0)
        self._last: _core.WeightArrays = {}

    def add(self, part: _core.WeightArrays) -> None:
        """Append the weights of the nodes that come next."""
        for name, array in part.items():
            if name not in self._arrays:
                dtype = array.dtype.newbyteorder("<").str
                self._arrays[name] = ArrayAppender(self._folder, name, dtype)
            if name in _ENDS:
                self._arrays[name].append(array[:-1] + self._ends[name])
                self._ends[name] += int(array[-1])
            else:
                self._arrays[name].append(_without_seam(name, part))
        self._last = {"node": part["node"][-1:]}

    def finish(self) -> _core.WeightArrays:
        """Complete the files and map them."""
        closing = self._last | {name: np.array([end]) for name, end in self._ends.items()}
        closing["bytes"] = np.zeros(SPARE_BYTES, np.uint8)
        for name, array in closing.items():
            self._arrays[name].append(array)
        for file in self._arrays.values():
            file.finish(checked=False)
        return {
            name: np.asarray(np.load(self._folder / f"{name}.npy", mmap_mode="r")) for name in self._arrays
        }


@dataclass(frozen=True)
class Spill:
    """How to train with less memory than it would take otherwise.

    Attributes
    ----------
    folder : Path
        Where weights go.
    parts : int
        Into how many parts of about the same cost a tree's training is cut.
    scratch : bool
        Whether the copies of a node's rows that training works on go to files as well.
    """

    folder: Path
    parts: int
    scratch: bool

    def train(
        self, trainer: NodeTrainer, number: int, threads: int, progress: Callable[[float], None] | None
    ) -> tuple[_core.WeightArrays, dict[str, int]]:
        """Train tree ``number``; give its weights, mapped, and what it took."""
        files = WeightFiles(self.folder / f"tree{number}")
        total: dict[str, int] = {}
        bounds = part_bounds(*trainer.units(), self.parts)
        with scratch_files(self.folder if self.scratch else None):
            for place, (first, last) in enumerate(pairwise(bounds)):
                share = _share(progress, place, len(bounds) - 1)
                part, facts = trainer.train(first, last, threads=threads, progress=share)
                files.add(part)
                total = {name: total.get(name, 0) + fact for name, fact in facts.items()}
        return files.finish(), total


def part_bounds(first_node: npt.NDArray[np.int32], cost: npt.NDArray[np.float64], parts: int) -> list[int]:
    """Cut a tree's units into runs of about the same cost; give the nodes where they begin, and the end."""
    before = np.append(0.0, np.cumsum(cost))
    cuts = np.searchsorted(before, np.arange(1, parts) * before[-1] / parts)
    return [int(first_node[cut]) for cut in np.unique([0, *cuts, len(cost)])]


@contextmanager
def scratch_files(folder: Path | None) -> Iterator[None]:
    """Let the large working arrays of training lie in unnamed files of a folder, if there is one."""
    if folder is None:
        yield
        return
    _core.set_scratch(str(folder), SMALLEST_SCRATCH)
    try:
        yield
    finally:
        _core.set_scratch("", 0)


def _share(progress: Callable[[float], None] | None, part: int, parts: int) -> Callable[[float], None] | None:
    return None if progress is None else lambda done: progress((part + min(done, 1.0)) / parts)
