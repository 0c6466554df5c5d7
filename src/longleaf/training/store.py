"""Trees and finished ranges of their training on disk, so that memory need not hold them."""

from __future__ import annotations

import json
import logging
import re
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy.typing as npt

from longleaf import _core
from longleaf._validation import DataError
from longleaf.io._bundle import UNFINISHED, Bundle, Layout, open_bundle, write_arrays, write_bundle
from longleaf.trees.label_tree import LabelTree
from longleaf.weights.join import joined_length, pieces

logger = logging.getLogger("longleaf")

Facts = dict[str, int]

_TREE, _WHOLE = "tree.bundle", "weights.bundle"
_PART = re.compile(r"nodes-(\d+)-(\d+)\.bundle")


@dataclass(frozen=True)
class StoredRange:
    """The weights of the nodes [first_node, last_node) in a file."""

    first_node: int
    last_node: int
    bundle: Bundle


class WeightStore:
    """A folder of trees and of ranges of their weights, each in a file that is whole or not there.

    Ranges may be saved in any order and by several threads. A range of nodes is what was trained at once;
    how the nodes were cut into ranges does not matter to what comes out. Files that are damaged are removed
    when they are found, as if they had never been written.

    Parameters
    ----------
    folder : Path
        Must exist. What else is in it stays.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._ranges: dict[int, list[StoredRange]] = {}
        self._lock = threading.Lock()

    def save_tree(self, tree: int, label_tree: LabelTree) -> None:
        """Keep the tree number ``tree``."""
        arrays = {"first_child": label_tree.first_child, "label": label_tree.label}
        write_arrays(self._folder_of(tree) / _TREE, {}, arrays)

    def load_tree(self, tree: int) -> LabelTree | None:
        """Return a tree that was kept, or None."""
        bundle = _open_if_intact(self._folder_of(tree) / _TREE)
        return None if bundle is None else LabelTree(bundle.read("first_child"), bundle.read("label"))

    def save(self, tree: int, first_node: int, weights: _core.WeightArrays, facts: Facts) -> None:
        """Keep the weights of the nodes from ``first_node`` on, as many as they have biases."""
        ranges, last_node = self.ranges(tree), first_node + len(weights["bias"])
        path = self._folder_of(tree) / f"nodes-{first_node:010d}-{last_node:010d}.bundle"
        bundle = write_arrays(path, {"first_node": first_node, "facts": facts}, weights)
        ranges.append(StoredRange(first_node, last_node, bundle))

    def ranges(self, tree: int) -> list[StoredRange]:
        """List the ranges of a tree that are there; every byte of them is checked the first time."""
        with self._lock:
            if tree not in self._ranges:
                self._ranges[tree] = list(self._find_ranges(tree))
            return self._ranges[tree]

    def joined(self, tree: int) -> tuple[_core.WeightArrays, Facts]:
        """Return the weights of a whole tree, mapped into memory, and the sums of the ranges' facts.

        The ranges must cover every node. They are copied into one file, piece by piece, and are then removed.
        """
        ranges = sorted(self.ranges(tree), key=lambda stored: stored.first_node)
        if [stored.bundle.path.name for stored in ranges] == [_WHOLE]:
            return ranges[0].bundle.map(), ranges[0].bundle.meta["facts"]
        ends = [0, *(stored.last_node for stored in ranges)]
        if not ranges or ends[:-1] != [stored.first_node for stored in ranges]:
            raise ValueError(f"Ranges must follow one another from node 0 on; those of tree {tree} do not.")
        bundle = _join(self._folder_of(tree) / _WHOLE, ranges)
        self._ranges[tree] = [StoredRange(0, ranges[-1].last_node, bundle)]
        for stored in ranges:
            stored.bundle.path.unlink()
        return bundle.map(), bundle.meta["facts"]

    def _folder_of(self, tree: int) -> Path:
        folder = self.folder / f"tree{tree}"
        folder.mkdir(exist_ok=True)
        return folder

    def _find_ranges(self, tree: int) -> Iterator[StoredRange]:
        """Find the whole tree's weights, or its ranges; tidy up what a killed training left."""
        folder = self._folder_of(tree)
        for leftover in folder.glob(f"*{UNFINISHED}"):
            leftover.unlink()
        whole = _open_if_intact(folder / _WHOLE)
        if whole is not None:
            yield StoredRange(0, whole.layout["bias"][1], whole)
        for path in sorted(folder.iterdir()):
            match = _PART.fullmatch(path.name)
            if match and whole is not None:
                path.unlink()  # killed after joining, before removing the ranges
            elif match and (bundle := _open_if_intact(path)) is not None:
                yield StoredRange(int(match[1]), int(match[2]), bundle)


def _open_if_intact(path: Path) -> Bundle | None:
    """Open a file, or remove it if it is damaged."""
    try:
        return open_bundle(path)
    except FileNotFoundError:
        return None
    except (DataError, json.JSONDecodeError) as error:
        logger.warning("%s It is made again.", error)
        path.unlink(missing_ok=True)
        return None


def _join(path: Path, ranges: list[StoredRange]) -> Bundle:
    """Write the arrays of a whole tree, as `longleaf.weights.join.join_ranges` would join them in memory."""
    bundles = [stored.bundle for stored in ranges]
    facts: Facts = {}
    for bundle in bundles:
        for name, number in bundle.meta["facts"].items():
            facts[name] = facts.get(name, 0) + number
    layout: Layout = {}
    for name, (dtype, _) in bundles[0].layout.items():
        layout[name] = dtype, joined_length(name, [bundle.layout[name][1] for bundle in bundles])
    read = {name: pieces(name, _read_each(bundles, name), len(bundles)) for name in layout}
    return write_bundle(path, {"first_node": 0, "facts": facts}, layout, read)


def _read_each(bundles: list[Bundle], name: str) -> Iterator[npt.NDArray[Any]]:
    for bundle in bundles:
        yield bundle.read(name)
