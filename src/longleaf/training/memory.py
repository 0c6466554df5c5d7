"""What memory training takes: an account of its arrays, largest first, by the phase that holds them.

The sizes are those of `native/trees/` and `native/train/`; the sum is compared with what
was measured in `docs/experiments/2026-11-planned-and-measured.md`. Everything is in bytes.
"""

from __future__ import annotations

import ctypes
import re
import sys
from dataclasses import dataclass
from pathlib import Path

from longleaf import _core

UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
ENTRY_BYTES = 8
"""A feature's number and its value."""

ROW_BYTES = _core.ROW_BYTES + _core.ROW_LANE_BYTES * _core.LANES
"""What coordinate descent keeps for a row besides its features: places, sides, moves and duals."""

SPILL_SHARE = 32
"""On their way to disk, weights are no more than a tree's divided by this."""

WEIGHT_ENTRY_BYTES = _core.ENTRY_BYTES + 16 + _core.ENTRY_BYTES
"""A kept weight until its unit is packed: the entry, its key while entries are sorted, the sorted entry."""


def parse_memory(text: str | int) -> int:
    """Read a limit such as ``4G``, ``500M`` or a number of bytes: powers of 1000, or of 1024 with an ``i``.

    Examples
    --------
    >>> parse_memory("4G"), parse_memory("1.5Gi"), parse_memory(1000)
    (4000000000, 1610612736, 1000)
    """
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KMGT]?)(I?)B?", str(text).strip().upper())
    if match is None or (match[3] and not match[2]) or float(match[1]) == 0:
        raise ValueError(f"memory must be a size above 0 such as 4G or 500M; got {text!r}.")
    unit = 1024 ** "KMGT".index(match[2]) * 1024 if match[3] else UNITS[match[2]]
    return int(float(match[1]) * unit)


def resident_bytes() -> int:
    """Return the memory that the process holds now; 0 where the system does not say."""
    try:
        status = Path("/proc/self/status").read_text()
    except OSError:
        return 0
    match = re.search(r"^VmRSS:\s+(\d+) kB", status, re.MULTILINE)
    return int(match[1]) * 1024 if match else 0


def release_unused() -> None:
    """Give back what was freed: the C library keeps up to 64 MB for each thread that has ended, in case."""
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
        if trim is not None:
            trim(0)


LIST_ENTRIES = 70
"""Of each row in the lists of refined labels."""
RANKING_BYTES = 16_384 * 400 * 8.0
CALIBRATION_BYTES = 1e8
"""Most of it buffers of linear algebra."""


@dataclass(frozen=True)
class UnitSize:
    """How large a unit is: its rows, their entries, the features among them, the weights that are kept."""

    rows: int
    entries: int
    features: int
    weights: int


@dataclass(frozen=True)
class Sizes:
    """What the account needs to know of a training.

    Attributes
    ----------
    rows, features, labels, label_entries : int
        Of the data.
    centroid_entries, clustered : int
        Numbers in the labels' centroids, 0 if none are made; labels that are clustered.
    arity : int
        Clusters that one is split into.
    nodes, node_rows : int
        Of one tree: its nodes, and rows of all nodes together.
    trees : int
    tree_bytes : float
        The packed weights of one tree.
    units : list of UnitSize
        The largest, in falling order; as many as there may be threads.
    refined : bool
        Whether labels are refined.
    """

    rows: int
    features: int
    labels: int
    label_entries: int
    centroid_entries: int
    clustered: int
    arity: int
    nodes: int
    node_rows: int
    trees: int
    tree_bytes: float
    units: list[UnitSize]
    refined: bool = False


@dataclass(frozen=True)
class ExecutionPlan:
    """How a training is run: its threads, whether weights go to disk, and whether working copies do."""

    threads: int
    spill: bool = False
    scratch: bool = False


def account(sizes: Sizes, execution: ExecutionPlan) -> dict[str, int]:
    """Return what each phase of training adds to the memory that the process holds at its beginning."""
    rows = 12 * sizes.rows + (8 * sizes.rows + 8 * sizes.label_entries)
    phases = {
        "clustering": int(rows + _clustering(sizes, execution)) if sizes.centroid_entries else 0,
        "training": int(rows + _training(sizes, execution)),
    }
    return phases | ({"refining": int(rows + _refining(sizes, execution))} if sizes.refined else {})


def _clustering(sizes: Sizes, execution: ExecutionPlan) -> float:
    by_label = 5 * sizes.label_entries + 12 * sizes.clustered
    centroids = ENTRY_BYTES * sizes.centroid_entries + 8 * sizes.clustered
    sums = 8 * sizes.features * execution.threads
    copies = (
        ENTRY_BYTES * sizes.centroid_entries * (1 + (min(execution.threads, sizes.arity) - 1) / sizes.arity)
    )
    lanes = -(-sizes.arity // _core.LANES) * _core.LANES
    if sizes.arity == 2:
        centres = 4 * 4 * sizes.features + 12 * sizes.clustered
    else:
        centres = 4 * lanes * (sizes.features + sizes.clustered) + 20 * sizes.clustered
    return by_label + centroids + sums + copies + centres


def _training(sizes: Sizes, execution: ExecutionPlan) -> float:
    lists = 4 * sizes.node_rows + 24 * sizes.nodes + 4 * sizes.features
    largest = sizes.units[: execution.threads]
    places = sum(_workplace(unit, sizes, execution) for unit in largest)
    entries = sum(WEIGHT_ENTRY_BYTES * unit.weights for unit in largest)
    # the last tree is held twice while it is joined, once in pieces that have grown by doubling
    finished = (sizes.trees + 1.5) * sizes.tree_bytes
    if execution.spill:
        finished = 2 * sizes.tree_bytes / SPILL_SHARE
    return lists + places + max(entries, finished)


def _refining(sizes: Sizes, execution: ExecutionPlan) -> float:
    """Return what refined labels take besides the trees: rankings, lists of rows, the calibration."""
    lists = LIST_ENTRIES * 12 * sizes.rows + 16 * sizes.labels
    trees = 0.0 if execution.spill else sizes.trees * sizes.tree_bytes
    return trees + 2.5 * sizes.tree_bytes + max(RANKING_BYTES, CALIBRATION_BYTES) + lists


def _workplace(unit: UnitSize, sizes: Sizes, execution: ExecutionPlan) -> float:
    everywhere = 4 * sizes.features + 4 * sizes.rows
    if execution.scratch:
        return everywhere + _core.ROW_BYTES * unit.rows + 8 * unit.features  # the lanes' share is in files
    row_bytes = ENTRY_BYTES * unit.entries + ROW_BYTES * unit.rows
    return everywhere + row_bytes + (8 + 4 * _core.LANES) * unit.features
