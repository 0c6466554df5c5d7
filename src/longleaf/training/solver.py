"""Which rows train which node, at what cost; weights out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from longleaf import _core
from longleaf._validation import Rows, check_choice, check_count, check_number
from longleaf.training.positive_weight import MOST_WEIGHT, inverse_priors, positive_factors
from longleaf.trees.label_tree import LabelTree

LOSSES = {"log": 0, "squared-hinge": 1}
"""Names of the losses, and what native code calls them."""

LOGISTIC_LINK = 0
"""What native code calls the logistic function; any other link is the power of a hinge."""

MOST_HINGE_POWER = 10

COST_SCALES = ("none", "log", "linear")
"""How a node's cost may grow as its rows become fewer."""

MOST_COST = 1e30
"""The solver works with 32-bit floats; products of more would be infinite."""

MOST_BIAS = 10.0
"""Rows have length 1: beside a larger bias they hardly count, and training does not get to its end."""

MOST_THRESHOLD = 1e15
"""Native code takes no larger weight."""


def link_of(loss: str, hinge_power: int) -> int:
    """Say how margins become probabilities, as native code calls it."""
    check_choice(loss, "loss", LOSSES)
    power = check_count(hinge_power, "hinge_power", high=MOST_HINGE_POWER)
    return LOGISTIC_LINK if loss == "log" else power


def check_cost(value: object, name: str = "C") -> float:
    """Return the cost of an error."""
    return check_number(value, name, low=0, high=MOST_WEIGHT, open_low=True)


def check_bias(value: object, name: str = "bias") -> float:
    """Return the value of the bias feature."""
    return check_number(value, name, low=-MOST_BIAS, high=MOST_BIAS)


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
    label_inverse_propensity: npt.NDArray[np.float64] | None = None  # [labels], 1 / p, for `positive_factors`
    margin: float = 0.0  # that every row starts from
    l1: bool = False  # whether |w|_1 stands for |w|^2 / 2; squared hinge on a flat tree only


@dataclass(frozen=True, eq=False)
class NodeTrainer:
    """All that the training of one tree's nodes needs; any range of whole units can be trained by itself.

    What comes out depends on the unit's own rows and on the costs, not on which units are trained together,
    in what order or by how many threads.
    """

    rows: Rows
    tree: LabelTree
    settings: SolverSettings
    seed: int
    node_indptr: npt.NDArray[np.int64]  # the rows of node v are node_rows[node_indptr[v]:node_indptr[v + 1]]
    node_rows: npt.NDArray[np.int32]
    costs: npt.NDArray[np.float32]  # [nodes]
    positive_weight: npt.NDArray[np.float64]  # [nodes], of an error on a positive row, as a multiple of costs
    row_weight: npt.NDArray[np.float32] | None = None
    positive_factor: npt.NDArray[np.float32] | None = None  # [entries of node_rows]

    @classmethod
    def prepare(
        cls,
        rows: Rows,
        Y: sp.csr_array,
        tree: LabelTree,
        settings: SolverSettings,
        *,
        seed: int,
        row_weight: npt.NDArray[np.float32] | None = None,
    ) -> Self:
        """Find the rows and the cost of every node."""
        indptr, members = node_rows(tree, Y)
        inverse = settings.label_inverse_propensity
        return cls(
            rows,
            tree,
            settings,
            seed,
            indptr,
            members,
            node_costs(tree, np.diff(indptr), settings),
            positive_weights(tree, np.diff(indptr), settings),
            row_weight,
            None if inverse is None else positive_factors(tree, Y, inverse),
        )

    def units(self) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.float64]]:
        """Return where units begin (nodes in order, then the number of nodes) and what each costs."""
        return _core.training_units(self.node_indptr, self.tree.first_child, self.tree.label)

    def train(
        self,
        first_node: int = 0,
        last_node: int | None = None,
        *,
        threads: int,
        progress: Callable[[float], None] | None = None,
        initial: tuple[_core.Forest, int] | None = None,
        past: npt.NDArray[np.float32] | None = None,
    ) -> tuple[_core.WeightArrays, dict[str, int]]:
        """Train the nodes of some units, all by default; return their weight arrays and what it took.

        With ``initial``, a model's forest and which of its trees this is, training goes on from its weights
        and stays near them; ``past`` [features + 1] says how much presses on each feature's weight, and last
        on the bias, from old rows, for what there is of the feature in these.
        """
        forest, number = initial or (None, 0)
        nothing = np.zeros(0, np.float32)
        return _core.train_nodes(
            *self.rows.csr,
            self.rows.n_features,
            self.rows.scale,
            self.node_indptr,
            self.node_rows,
            nothing if self.positive_factor is None else self.positive_factor,
            self.tree.first_child,
            self.tree.label,
            _check_costs(self.costs * self.positive_weight),
            self.costs,
            nothing if self.row_weight is None else self.row_weight,
            first_node=first_node,
            last_node=self.tree.n_nodes if last_node is None else last_node,
            initial=forest,
            initial_tree=number,
            past=nothing if past is None else past,
            loss=LOSSES[self.settings.loss],
            l1=self.settings.l1,
            tolerance=self.settings.tolerance,
            max_epochs=self.settings.max_epochs,
            threshold=self.settings.threshold,
            bias=self.settings.bias,
            margin=self.settings.margin,
            weight_bits=self.settings.weight_bits,
            seed=self.seed,
            threads=threads,
            progress=progress,
        )


def node_costs(
    tree: LabelTree, node_sizes: npt.NDArray[np.int64], settings: SolverSettings
) -> npt.NDArray[np.float32]:
    """Return the cost C of each node's classifier, by the number of rows that it is trained on.

    With ``n`` rows in all and ``m`` at the node's parent: C, C * (1 + log(n / m)), or C * n / m.
    """
    costs = np.full(tree.n_nodes, settings.C)
    if settings.C_scale != "none":
        ratio = node_sizes[0] / np.maximum(node_sizes[np.maximum(tree.parent, 0)], 1)
        costs *= ratio if settings.C_scale == "linear" else 1 + np.log(ratio)
    return _check_costs(costs)


def positive_weights(
    tree: LabelTree, node_sizes: npt.NDArray[np.int64], settings: SolverSettings
) -> npt.NDArray[np.float64]:
    """Return what an error on a positive row costs at each node, as a multiple of one on a negative row."""
    weights = np.full(tree.n_nodes, settings.positive_weight)
    if settings.inverse_prior:
        weights *= inverse_priors(tree, node_sizes)
    if settings.label_weight is not None:
        leaves = tree.label >= 0
        weights[leaves] *= settings.label_weight[tree.label[leaves]]
    return weights


def node_rows(tree: LabelTree, Y: sp.csr_array) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int32]]:
    """List the rows with a label below each node, every row at the root: ``rows[indptr[v]:indptr[v + 1]]``.

    The rows of a node's parent train its classifier; its own rows are the positive ones.
    """
    return _core.node_rows(
        Y.indptr.astype(np.int64, copy=False),
        Y.indices.astype(np.int32, copy=False),
        Y.shape[1],
        tree.first_child,
        tree.label,
    )


def _check_costs(costs: npt.NDArray[np.floating]) -> npt.NDArray[np.float32]:
    highest = float(costs.max())
    if highest > MOST_COST:
        raise ValueError(
            f"C, scaled and times positive_weight, must be at most {MOST_COST:g}; got {highest:g}."
        )
    return costs.astype(np.float32)
