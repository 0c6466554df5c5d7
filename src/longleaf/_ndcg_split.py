"""Splitting rows in two so that each part can be ranked well by one order of its labels.

The problem: at a node of a FastXML tree, find a sparse linear separator ``w``, sides ``d_i`` of the rows and
two orders ``r+``, ``r-`` of the labels that minimise

    |w|_1 + sum_i C / share(d_i) log(1 + exp(-d_i w·x_i)) - sum_i nDCG(r of the side of i, y_i).

Given are the rows' features and, for each of their labels, what it is worth: 1 in FastXML, the inverse
propensity in PfastreXML, which makes the gain the propensity-scored nDCG. It is done in two steps: orders and
sides in turn until the gain stands still, beginning with sides by lot; then ``w`` for those sides.
Sources: Prabhu and Varma, KDD 2014 (FastXML); Jain, Prabhu and Varma, KDD 2016 (PfastreXML).
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from longleaf import _core

MOST_ROUNDS = 50
ENOUGH = 1e-6
ROUNDING = 1e-12
MOST_EPOCHS, TOLERANCE = 20, 0.005

Matrix: TypeAlias = Any
"""csr_matrix of float64; the stubs lose track of it in products and slices."""

Sides = npt.NDArray[np.bool_]


def normalised_gains(Y: Matrix) -> Matrix:
    """Divide what a row's labels are worth by the discounts that its best order adds up to."""
    sizes = np.diff(Y.indptr)
    ideal = np.cumsum(_discounts(max(int(sizes.max(initial=0)), 1)))
    scale = 1.0 / ideal[np.maximum(sizes, 1) - 1]
    return sp.csr_matrix((Y.data * np.repeat(scale, sizes), Y.indices, Y.indptr), shape=Y.shape)


def best_sides(gains: Matrix, random: np.random.RandomState) -> Sides:
    """Give the sides at which orders and sides fit each other; a row that gains nothing stays where it is."""
    seen, columns = np.unique(gains.indices, return_inverse=True)  # a node has few of all the labels
    gains = sp.csr_matrix((gains.data, columns, gains.indptr), shape=(gains.shape[0], len(seen)))
    sides: Sides = random.rand(gains.shape[0]) < 0.5
    before = -np.inf
    for _ in range(MOST_ROUNDS):
        on, off = (gains @ _label_discounts(gains, part) for part in (sides, ~sides))
        sides = np.where(np.abs(on - off) <= ROUNDING, sides, on > off)
        total = float(np.where(sides, on, off).sum())
        if total - before <= ENOUGH:
            break
        before = total
    return sides


def separator(
    X: Matrix, sides: Sides, C: float, bias: float, seed: int
) -> tuple[npt.NDArray[np.float64], float] | None:
    """Give weights and bias of the l1-regularised logistic separator, or None where one side is empty.

    An error costs C over its side's share of the rows, as in the authors' code: it keeps splits even.
    """
    if sides.all() or not sides.any():
        return None
    feature, weight, b = _core.separate(
        X.indptr.astype(np.int64),
        X.indices.astype(np.int32),
        X.data.astype(np.float32),
        X.shape[1],
        sides.astype(np.uint8),
        cost_off=C * len(sides) / np.count_nonzero(~sides),
        cost_on=C * len(sides) / np.count_nonzero(sides),
        bias=bias,
        tolerance=TOLERANCE,
        max_epochs=MOST_EPOCHS,
        seed=seed,
    )
    weights = np.zeros(X.shape[1])
    weights[feature] = weight
    return weights, b


def _label_discounts(gains: Matrix, part: Sides) -> npt.NDArray[np.float64]:
    """Order the labels by what they are worth to some rows; give the discount of each label's place."""
    worth = gains.T @ part.astype(np.float64)
    places = np.empty(len(worth), np.int64)
    places[np.lexsort((np.arange(len(worth)), -worth))] = np.arange(len(worth))
    discounts: npt.NDArray[np.float64] = np.where(worth > 0, _discounts(len(worth))[places], 0.0)
    return discounts


def _discounts(n: int) -> npt.NDArray[np.float64]:
    discounts: npt.NDArray[np.float64] = 1.0 / np.log2(np.arange(n) + 2.0)
    return discounts
