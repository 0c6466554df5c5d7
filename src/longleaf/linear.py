"""Which rows train which node, at what cost; weights out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from longleaf import _core
from longleaf._positive_weight import inverse_priors
from longleaf._validation import Rows, check_choice, check_count
from longleaf.tree import LabelTree

LOSSES = {"log": 0, "squared-hinge": 1}
"""Names of the losses, and what native code calls them."""

LOGISTIC_LINK = 0
"""What native code calls the logistic function; any other link is the power of a hinge."""

MOST_HINGE_POWER = 10

COST_SCALES = ("none", "log", "linear")
"""How a node's cost may grow as its rows become fewer."""

MOST_COST = 1e30
"""The solver works with 32-bit floats; products of more would be infinite."""


def link_of(loss: str, hinge_power: int) -> int:
    """Say how margins become probabilities, as native code calls it."""
    check_choice(loss, "loss", LOSSES)
    power = check_count(hinge_power, "hinge_power", high=MOST_HINGE_POWER)
    return LOGISTIC_LINK if loss == "log" else power


@dataclass(frozen=True)
class SolverSettings:
    """How the node classifiers are trained; see `longleaf.PLT` for the words."""

    loss: str
    C: float
    tolerance: float
    max_epochs: int
    threshold: float
    bias: float
    positive_weight: float
    C_scale: str
    weight_bits: int
    inverse_prior: bool = False  # whether positive rows weigh by their share of a node's rows, too
    label_weight: npt.NDArray[np.float64] | None = None  # [labels], times positive_weight at the leaves
    label_worth: npt.NDArray[np.float64] | None = None  # [labels], 1 / p, for `positive_factors`


def node_costs(tree: LabelTree, Y: sp.csr_array, settings: SolverSettings) -> npt.NDArray[np.float32]:
    """Give the cost C of each node's classifier, by the number of rows that it is trained on.

    With ``n`` rows in all and ``m`` at the node's parent: C, C * (1 + log(n / m)), or C * n / m.
    """
    costs = np.full(tree.n_nodes, settings.C)
    if settings.C_scale != "none":
        counts = np.diff(node_rows(tree, Y)[0])
        ratio = Y.shape[0] / np.maximum(counts[np.maximum(tree.parent, 0)], 1)
        costs *= ratio if settings.C_scale == "linear" else 1 + np.log(ratio)
    capped: npt.NDArray[np.float64] = np.minimum(costs, np.finfo(np.float32).max)
    return capped.astype(np.float32)


def positive_weights(
    tree: LabelTree, Y: sp.csr_array, settings: SolverSettings
) -> npt.NDArray[np.float64]:
    """Give what an error on a positive row costs at each node, as a multiple of one on a negative row."""
    weights = np.full(tree.n_nodes, settings.positive_weight)
    if settings.inverse_prior:
        weights *= inverse_priors(tree, np.diff(node_rows(tree, Y)[0]))
    if settings.label_weight is not None:
        leaves = tree.label >= 0
        weights[leaves] *= settings.label_weight[tree.label[leaves]]
    return weights


def node_rows(tree: LabelTree, Y: sp.csr_array) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int32]]:
    """List the rows with a label below each node, every row at the root: ``rows[indptr[v]:indptr[v + 1]]``.

    The rows of a node's parent train its classifier; its own rows are the positive ones.
    """
    return _core.node_rows(
        Y.indptr.astype(np.int64), Y.indices.astype(np.int32), Y.shape[1], tree.first_child, tree.label
    )


def train_tree(
    rows: Rows,
    Y: sp.csr_array,
    tree: LabelTree,
    settings: SolverSettings,
    *,
    seed: int,
    threads: int,
    row_weight: npt.NDArray[np.float32] | None = None,
    progress: Callable[[float], None] | None = None,
) -> tuple[_core.WeightArrays, dict[str, int]]:
    """Train every node of a tree; give its weight arrays and what it took."""
    costs = node_costs(tree, Y, settings)
    positive = positive_weights(tree, Y, settings)
    highest = float(costs.max()) * max(1.0, float(positive.max()))
    if highest > MOST_COST:
        raise ValueError(
            f"C, scaled and times positive_weight, must be at most {MOST_COST:g}; got {highest:g}."
        )
    return _core.train_tree(
        *rows.csr,
        rows.n_features,
        rows.scale,
        Y.indptr.astype(np.int64),
        Y.indices.astype(np.int32),
        Y.shape[1],
        tree.first_child,
        tree.label,
        (costs * positive).astype(np.float32),
        costs,
        np.zeros(0, np.float32) if row_weight is None else row_weight,
        loss=LOSSES[settings.loss],
        tolerance=settings.tolerance,
        max_epochs=settings.max_epochs,
        threshold=settings.threshold,
        bias=settings.bias,
        weight_bits=settings.weight_bits,
        seed=seed,
        threads=threads,
        progress=progress,
    )
