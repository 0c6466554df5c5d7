"""How the training of all trees is cut into tasks, and what memory a task needs.

A task is a range of units (see `NodeTrainer` in `longleaf.training.solver`) and trains on the rows of their
families. Tasks are small enough that all threads have several, and that each fits on the smallest worker
where that can be; a unit that does not fit there is a task of its own and goes where it fits.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from longleaf import _core
from longleaf.training.cluster.blocks import Ints, Sizes
from longleaf.trees.label_tree import LabelTree

MEMORY_SHARE = 0.5
"""What a task may use of its share of a worker's memory; partitions and what Dask moves have the rest."""

TASKS_PER_THREAD = 6
"""More would move more rows, fewer would leave threads idle at the end."""

ROW_BYTES = _core.ROW_LANE_BYTES * _core.LANES + 48
"""Of the solver, per row: side, dual and step of the classifiers that are trained together, and more."""

WEIGHT_BYTES = 4 * _core.LANES + 24
"""Of the solver, per feature in use: the weights of these classifiers and their place."""


@dataclass(frozen=True, eq=False)
class NodeTask:
    """A range of nodes of a tree, trained by one task."""

    tree: int
    first_node: int
    last_node: int
    families: Ints  # the nodes whose rows it needs
    work: float
    need: float  # bytes


def row_bytes(held: Sizes) -> float:
    """Return the bytes of checked rows and their labels."""
    return 8.0 * held.entries + 24.0 * held.rows + 8.0 * held.label_entries


def plan_tasks(
    number: int, tree: LabelTree, node_sizes: Ints, total: Sizes, target: float, memory: float
) -> list[NodeTask]:
    """Cut one tree.

    Parameters
    ----------
    number : int
        Which tree it is.
    node_sizes : int64 array [2, nodes]
        The rows of each node, and their entries.
    total : Sizes
        Of all rows.
    target : float
        What a task may cost at most, unless it is one unit.
    memory : float
        The bytes that it may need at most, unless it is one unit.
    """
    planner = _Planner(number, tree, node_sizes, total)
    units = len(planner.starts) - 1
    begin, tasks = 0, []
    for end in range(1, units + 1):
        if end < units:
            work = planner.cum_cost[end + 1] - planner.cum_cost[begin]
            if work <= target and planner.need(begin, end + 1) <= memory:
                continue
        tasks.append(planner.task(begin, end))
        begin = end
    return tasks


def unit_costs(tree: LabelTree, node_sizes: Ints) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.float64]]:
    """Return where units begin, then the number of nodes, and what each costs."""
    indptr = np.append(np.int64(0), np.cumsum(node_sizes[0]))
    return _core.training_units(indptr, tree.first_child, tree.label)


class _Planner:
    """What ranges of a tree's units cost and need."""

    def __init__(self, number: int, tree: LabelTree, node_sizes: Ints, total: Sizes) -> None:
        self.number, self.total, self.nodes = number, total, tree.n_nodes
        self.starts, costs = unit_costs(tree, node_sizes)
        self.cum_cost = _from_zero(costs)
        parent, inner = tree.parent, np.diff(tree.first_child) > 0
        self.inner = inner
        self.first_family = parent[np.maximum(self.starts[:-1], 1)]
        self.last_family = parent[self.starts[1:] - 1]
        held = np.where(inner, node_sizes, 0)
        self.cum_rows, self.cum_entries = _from_zero(held[0]), _from_zero(held[1])
        spans = list(pairwise(range(len(self.starts))))
        self.workplace = np.array([self._workplace(*self._held(*span)) for span in spans])

    def _held(self, begin: int, end: int) -> tuple[float, float]:
        """Bound the rows, and their entries, of units from ``begin`` to before ``end``."""
        first, last = self.first_family[begin], self.last_family[end - 1] + 1
        rows = min(float(self.cum_rows[last] - self.cum_rows[first]), self.total.rows)
        return rows, min(float(self.cum_entries[last] - self.cum_entries[first]), self.total.entries)

    def _workplace(self, rows: float, entries: float) -> float:
        """Return what the solver needs for one unit: its rows renumbered, and the weights."""
        features = min(entries, self.total.features)
        return 16.0 * entries + ROW_BYTES * rows + WEIGHT_BYTES * features

    def need(self, begin: int, end: int) -> float:
        """Return the bytes of units: rows as they come and put together, the largest workplace, the tree."""
        rows, entries = self._held(begin, end)
        share = rows / max(self.total.rows, 1)
        label_entries = int(share * self.total.label_entries)
        data = row_bytes(Sizes(int(rows), 0, 0, int(entries), label_entries))
        whole = 40.0 * self.nodes + 16.0 * self.total.features
        return 2.0 * data + float(self.workplace[begin:end].max()) + whole

    def task(self, begin: int, end: int) -> NodeTask:
        """Make a task of units from ``begin`` to before ``end``."""
        first, last = int(self.first_family[begin]), int(self.last_family[end - 1])
        families = first + np.flatnonzero(self.inner[first : last + 1])
        work = float(self.cum_cost[end] - self.cum_cost[begin])
        nodes = int(self.starts[begin]), int(self.starts[end])
        return NodeTask(self.number, *nodes, families, work, self.need(begin, end))


def _from_zero(values: npt.NDArray[np.int64 | np.float64]) -> npt.NDArray[np.float64]:
    return np.append(0.0, np.cumsum(values, dtype=np.float64))
