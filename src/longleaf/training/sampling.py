"""What the training of a tree will cost, from a sample of its units that is trained for real."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from longleaf import _core
from longleaf.training.solver import NodeTrainer
from longleaf.weights import layout

LEAST_RUNS = 4
LEAST_RUN_COST = 2000.0
"""Units are trained in runs of at least this cost: a call has a price of its own."""

LEAST_LEVEL_COST = 20_000.0
"""A level that costs no more than this is trained whole: a fraction of a second."""

NODE_BYTES = 12
"""Of a node: its first child, its label and its bias."""

GROWING = ("words", "bytes")
"""The arrays that grow with the weights; the sizes of all others follow from the tree."""

Floats = npt.NDArray[np.float64]


class Clock:
    """Seconds that work takes, or would take if nothing else ran: never more than its processor time."""

    def __init__(self) -> None:
        self._begun = time.perf_counter(), time.process_time()

    def seconds(self) -> float:
        """Return the time since the clock was made."""
        return min(time.perf_counter() - self._begun[0], time.process_time() - self._begun[1])


@dataclass(frozen=True)
class TreeEstimate:
    """What each unit of a tree will take: seconds of one thread, bytes of packed weights, kept weights."""

    seconds: Floats
    packed: Floats
    weights: Floats
    trained: float
    """The share of the tree's cost that was trained to find out."""


def estimate_tree(trainer: NodeTrainer, share: float, random: np.random.Generator) -> TreeEstimate:
    """Train about ``share`` of a tree, spread over its levels, and extrapolate within each level.

    A level's units are drawn in runs. Where a single unit costs more than the level's share, as at the root,
    it is trained on some of its rows, and on half of these: time is taken to grow with the rows, and the
    weights as they did from the half to the whole sample.
    """
    first, cost = trainer.units()
    level = trainer.tree.depth[np.maximum(first[:-1], 1)]
    found = np.zeros((3, len(cost)))
    spent = 0.0
    for depth in np.unique(level):
        units = np.flatnonzero(level == depth)
        allowed = max(share * cost[units].sum(), LEAST_LEVEL_COST)
        mean = cost[units].mean()
        if mean > allowed:
            found[:, units], used = _from_fewer_rows(trainer, units, allowed, random)
        else:
            found[:, units], used = _from_runs(trainer, units, allowed, random)
        spent += used
    return TreeEstimate(found[0], found[1], found[2], spent / cost.sum())


def _from_runs(
    trainer: NodeTrainer, units: npt.NDArray[Any], allowed: float, random: np.random.Generator
) -> tuple[Floats, float]:
    first, cost = trainer.units()
    length = int(np.clip(np.ceil(LEAST_RUN_COST / cost[units].mean()), 1, len(units)))
    starts = np.arange(0, len(units), length)
    wanted = int(np.clip(np.ceil(allowed / (length * cost[units].mean())), LEAST_RUNS, len(starts)))
    wanted = min(wanted, len(starts))
    measure = _measures(first, cost)
    total, used = np.zeros(3), np.zeros(3)
    for start in random.choice(starts, wanted, replace=False):
        run = units[start : start + length]
        total += _train(trainer, int(first[run[0]]), int(first[run[-1] + 1]))
        used += measure[:, run].sum(axis=1)
    return (total / used)[:, None] * measure[:, units], float(used[0])


def _from_fewer_rows(
    trainer: NodeTrainer, units: npt.NDArray[Any], allowed: float, random: np.random.Generator
) -> tuple[Floats, float]:
    first, cost = trainer.units()
    unit = int(random.choice(units))
    share = min(1.0, allowed / cost[unit])
    begin, end = int(first[unit]), int(first[unit + 1])
    half = _train(thinned(trainer, share / 2, end, random), begin, end)
    whole = _train(thinned(trainer, share, end, random), begin, end)
    power = np.clip(np.log2(np.maximum(whole, 1e-9) / np.maximum(half, 1e-9)), 0.0, 1.0)
    power[0] = 1.0
    measure = _measures(first, cost)
    grown = whole * share**-power / measure[:, unit]
    return grown[:, None] * measure[:, units], 1.5 * share * cost[unit]


def _measures(first: npt.NDArray[np.int32], cost: Floats) -> Floats:
    """Return what seconds, bytes and weights of the units of one level go with.

    Time goes with the cost, rows times blocks of children. More rows bring ever fewer new words, so
    weights go with its root: the geometric mean of cost and children fits units of very different sizes
    (on EURLEX57K's dev set, 19 % off a unit instead of 68 %).
    """
    size = np.sqrt(cost * np.diff(first))
    return np.array([cost, size, size])


def thinned(trainer: NodeTrainer, share: float, end: int, random: np.random.Generator) -> NodeTrainer:
    """Leave out all but a share of the rows; for the nodes before ``end`` and their parents."""
    size = trainer.node_indptr[end]
    kept = (random.random(trainer.rows.n_rows) < share)[trainer.node_rows[:size]]
    indptr = np.append(0, np.cumsum(kept))[np.minimum(trainer.node_indptr, size)]
    factor = trainer.positive_factor
    return replace(
        trainer,
        node_rows=trainer.node_rows[:size][kept],
        node_indptr=indptr,
        positive_factor=None if factor is None else factor[:size][kept],
    )


def _train(trainer: NodeTrainer, first: int, last: int) -> Floats:
    """Train some nodes on one thread; return seconds, bytes of the arrays that grow, and weights."""
    clock = Clock()
    weights, _ = trainer.train(first, last, threads=1)
    seconds = clock.seconds()
    return np.array(
        [seconds, sum(weights[name].nbytes for name in GROWING), weights["weights"].sum()], np.float64
    )


def fixed_bytes(trainer: NodeTrainer) -> int:
    """Return the bytes of a saved tree that do not grow with its weights."""
    children = np.diff(trainer.tree.first_child)
    chunks = int(np.ceil(children / layout.CHUNK_WIDTH).sum())
    packed = layout.fixed_bytes(chunks, trainer.rows.n_features, trainer.settings.weight_bits)
    return packed + NODE_BYTES * trainer.tree.n_nodes


def estimate_centroid_entries(
    csr: _core.CsrArrays,
    n_features: int,
    scale: npt.NDArray[np.float32],
    rows_of_labels: tuple[npt.NDArray[np.int64], npt.NDArray[np.int32]],
    random: np.random.Generator,
) -> tuple[int, float]:
    """Say how many numbers the centroids of all labels have, and how long they take, from 1,000 labels.

    A label's centroid has no more numbers than its rows together, and no more than there are features.
    """
    indptr, members = rows_of_labels
    row_size = np.diff(csr[0])
    before = np.append(0, np.cumsum(row_size[members]))
    entries = np.diff(before[indptr])
    most = np.minimum(entries, n_features)
    chosen = np.sort(random.choice(len(most), min(len(most), 1000), replace=False))
    sizes = np.diff(indptr)[chosen]
    picked = np.repeat(indptr[chosen] - np.append(0, np.cumsum(sizes)[:-1]), sizes) + np.arange(sizes.sum())
    clock = Clock()
    sampled = _core.label_centroids(
        *csr, n_features, scale, np.append(0, np.cumsum(sizes)), members[picked].astype(np.int32), 1
    )
    seconds = clock.seconds()
    found = len(sampled[1]) / max(int(most[chosen].sum()), 1)
    return int(most.sum() * found), seconds * entries.sum() / max(int(entries[chosen].sum()), 1)
