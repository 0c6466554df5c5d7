"""What positive rows weigh in training: by name, per label, and per row and node of a tree.

Given labels of which some were never observed, label j with propensity ``p_j`` (`longleaf.propensity`), and a
tree, an error on a row that is positive at a node should cost more, because such rows are too few. With ``z``
the truth about a row and a node (does it have a label below?), the unbiased estimate of the 0-1 loss of the
node's classifier weighs positive rows by ``2 E[z] - 1``, where ``E[z]`` is an unbiased estimate of ``z``
(Qaraei et al., WWW 2021, for single labels). At the leaf of a observed label ``E[z] = 1 / p_j``; elsewhere

    E[z] = 1 - prod_j (1 - 1 / p_j)   over the labels below it that are *observed* at this row,

which is unbiased if labels are lost independently, but alternates: at most 1, and as a rule negative, for an
even number of labels, 1 or more for an odd one. It is clipped to ``[1, max_j 1 / p_j]`` of these labels.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from longleaf._validation import check_number
from longleaf.trees.label_tree import LabelTree

PROPENSITY, BALANCED, INVERSE_PRIOR = "propensity", "propensity-balanced", "inverse-prior"
"""Names that ``positive_weight`` may have; each estimator says which ones it knows."""

BALANCE = 0.9
"""Beta of the class-balanced weights, as in the code of PW-DiSMEC's authors."""

MOST_WEIGHT = 1e10
"""Of the cost of an error: C, ``positive_weight`` and ``sample_weight`` each; their products may be more."""

Floats = npt.NDArray[np.float64]
Column = npt.NDArray[Any]


def check_positive_weight(value: object, names: Sequence[str], name: str = "positive_weight") -> float:
    """Return a weight as a number above 0, and 1 for one of the names."""
    if not isinstance(value, str):
        return check_number(value, name, low=0, high=MOST_WEIGHT, open_low=True)
    if value not in names:
        known = ["a number above 0", *(f'"{choice}"' for choice in names)]
        choices = f"{', '.join(known[:-1])} or {known[-1]}" if names else known[0]
        raise ValueError(f"{name} must be {choices}; got {value!r:.80}.")
    return 1.0


def balanced_share(counts: npt.NDArray[np.int64]) -> Floats:
    """Return ``(1 - beta) / (1 - beta^n)`` for labels of n rows: 1 for a single row, down to 1 - beta.

    Cui et al., "Class-balanced loss based on effective number of samples", CVPR 2019: rows of a label
    overlap, and n of them count as ``(1 - beta^n) / (1 - beta)`` different ones.
    """
    return np.asarray((1.0 - BALANCE) / (1.0 - BALANCE ** np.maximum(counts, 1).astype(np.float64)))


def inverse_priors(tree: LabelTree, counts: npt.NDArray[np.int64]) -> Floats:
    """Return how many training rows each node's classifier has for each positive row.

    On the path to a label these multiply to its inverse prior in all rows. 1 at the root.
    """
    of_parent = counts[np.maximum(tree.parent, 0)]
    return np.asarray(of_parent / np.maximum(counts, 1), np.float64)


def positive_factors(tree: LabelTree, Y: sp.csr_array, inverse_propensity: Floats) -> npt.NDArray[np.float32]:
    """Return ``2 E[z] - 1``, clipped, for every node and row that has a label below it.

    Parameters
    ----------
    tree : LabelTree
    Y : csr_array [rows, labels]
        The observed labels.
    inverse_propensity : float64 array [labels]
        The inverse propensity of each, at least 1.

    Returns
    -------
    float32 array [entries]
        In the order of `longleaf.training.solver.node_rows`; 1 at the root, which has no classifier.
    """
    estimate, most = relevance_estimates(tree, Y, inverse_propensity)
    return np.asarray(2.0 * np.clip(estimate, 1.0, most) - 1.0, np.float32)


def relevance_estimates(
    tree: LabelTree, Y: sp.csr_array, inverse_propensity: Floats
) -> tuple[Floats, Floats]:
    """Return ``E[z]`` before it is clipped, and the highest inverse propensity among its labels.

    Goes up the tree level by level: a level's entries are those of its leaves, and those of the level below
    with the children of a node made one.
    """
    observed = _observed_at_leaves(tree, Y, inverse_propensity)
    parent, depth = tree.parent.astype(np.int64), tree.depth
    levels: list[_Entries] = []
    for level in range(int(depth.max()), 0, -1):
        entries = observed.where(depth[observed.node] == level)
        if levels:
            entries = entries.join(levels[-1]._replace(node=parent[levels[-1].node]))
        levels.append(entries.merged())
    at_root = np.ones(Y.shape[0])
    return (
        np.concatenate([at_root, *(entries.estimate() for entries in reversed(levels))]),
        np.concatenate([at_root, *(entries.most for entries in reversed(levels))]),
    )


class _Entries(NamedTuple):
    """What is known of some nodes and rows: parallel arrays over the pairs that have a observed label."""

    node: Column
    row: Column
    labels: Column  # how many are observed below the node
    log_product: Column  # of (1 / p - 1) over them; a sum of logarithms cannot overflow
    most: Column  # the highest 1 / p of them

    def where(self, chosen: npt.NDArray[np.bool_]) -> _Entries:
        return _Entries(*(column[chosen] for column in self))

    def join(self, other: _Entries) -> _Entries:
        return _Entries(*(np.concatenate(pair) for pair in zip(self, other, strict=True)))

    def merged(self) -> _Entries:
        """Sort by node and row, and make the entries of one node and row one."""
        order = np.lexsort((self.row, self.node))
        node, row, *rest = (column[order] for column in self)
        changes = (np.diff(node, prepend=-1) != 0) | (np.diff(row, prepend=-1) != 0)
        first = np.flatnonzero(changes)
        labels, log_product, most = (
            function.reduceat(column, first)
            for function, column in zip((np.add, np.add, np.maximum), rest, strict=True)
        )
        return _Entries(node[first], row[first], labels, log_product, most)

    def estimate(self) -> Floats:
        """Return ``1 - prod (1 - 1 / p)``; infinite where that is beyond a float."""
        with np.errstate(over="ignore"):
            return np.asarray(1.0 - np.where(self.labels % 2, -1.0, 1.0) * np.exp(self.log_product))


def _observed_at_leaves(tree: LabelTree, Y: sp.csr_array, inverse_propensity: Floats) -> _Entries:
    leaf = np.full(Y.shape[1], -1, np.int64)
    leaf[tree.labels] = np.flatnonzero(tree.label >= 0)
    row = np.repeat(np.arange(Y.shape[0]), np.diff(Y.indptr))
    with np.errstate(divide="ignore"):  # log 0, of a label that is always observed, is -inf as it should be
        of_entry = inverse_propensity[Y.indices].astype(np.float64)
        log_excess = np.log(of_entry - 1.0)
    observed = _Entries(
        leaf[Y.indices],
        row,
        np.ones(len(row), np.int64),
        log_excess,
        inverse_propensity[Y.indices].astype(np.float64),
    )
    return observed.where(observed.node >= 0)
