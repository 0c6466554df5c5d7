"""Trees that go on learning: new rows, new labels, families trained again.

Problem: a trained tree with weights ``w0``, and new rows. Training again on old and new rows together would
minimise ``|w|^2 / 2 + sum of C loss`` at each node. The old rows are gone; what they taught is ``w0``, and
how firmly they hold a weight there is the curvature of their loss: ``C`` times the sum of squares of its
feature over those of them that press on it. So each classifier on the path of a new row becomes the
minimiser of

    sum over features f of (1 + PRESSING C s_f) (w_f - w0_f)^2 / 2  +  sum over new rows of C loss(y w.x),

``s_f`` being the sum of squares of f over the old rows of the node's parent. It is not known any more. But
the new rows of the parent have such a sum, and the model knows how much of f there was in all rows: taken
is the former, times how much of f the old rows had for what the new ones have. The bias is a feature of all
rows. Every classifier that has no new row at its parent stays as it is, byte by byte.

Source: the Laplace approximation with a diagonal Hessian, as in algorithm 3 of Chapelle and Li (2011), "An
empirical evaluation of Thompson sampling", and in elastic weight consolidation (Kirkpatrick et al. 2017).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from longleaf.learning.placement import place_labels, split_clusters
from longleaf.learning.transplant import carry, put_back
from longleaf.learning.tree_edits import (
    Subtree,
    holders,
    leaf_of_label,
    subtree_of,
    with_leaves,
    without_labels,
)
from longleaf.training.data import TrainingData, feature_mass
from longleaf.training.solver import NodeTrainer, SolverSettings
from longleaf.training.store import Facts
from longleaf.trees.label_tree import LabelTree
from longleaf.weights.chunks import WeightedTree

Ints = npt.NDArray[np.int64]

PRESSING = 0.3
"""The share of the old rows that press on the weights: docs/experiments/2026-11-learning-stream.md."""


@dataclass(frozen=True, eq=False)
class UpdateBatch:
    """Rows to learn from, and how.

    Attributes
    ----------
    data : TrainingData
        Labels have a column for every label of the model.
    label_counts, feature_mass, n_rows
        Of all rows that the model has learned from, these included; costs follow the labels' counts, and
        the features' mass may be unknown.
    settings : SolverSettings
    link, threads : int
    max_leaf : int, optional
        Clusters of more labels are split; None for never.
    arity : int
    """

    data: TrainingData
    label_counts: npt.NDArray[np.int64]
    feature_mass: npt.NDArray[np.int64] | None
    n_rows: int
    settings: SolverSettings
    link: int
    threads: int
    arity: int
    max_leaf: int | None


def learn(weighted: WeightedTree, batch: UpdateBatch, seed: int) -> tuple[WeightedTree, Facts]:
    """Place the labels that have no leaf, then update every classifier on the paths of the rows."""
    weighted = add_missing(weighted, batch)
    weighted, facts = update(weighted, batch, seed)
    if batch.max_leaf is not None:
        weighted = split_clusters(
            weighted,
            batch.data.rows.n_features,
            arity=batch.arity,
            max_leaf=batch.max_leaf,
            link=batch.link,
            seed=seed,
            threads=batch.threads,
        )
    return weighted, facts


def relearn(
    weighted: WeightedTree, labels: Ints, batch: UpdateBatch, seed: int
) -> tuple[WeightedTree, Facts]:
    """Train the families on the paths of some labels from nothing; the batch has all rows."""
    weighted = add_missing(weighted, batch)
    leaves = leaf_of_label(weighted.tree, batch.data.labels.shape[1])[labels]
    subtree = subtree_of(weighted.tree, holders(weighted.tree, leaves[leaves >= 0]))
    return train_subtree(weighted, subtree, batch, seed)


def forget(weighted: WeightedTree, labels: Ints, n_features: int, threads: int) -> WeightedTree:
    """Take the leaves of labels out of the tree; all other probabilities stay as they are."""
    edited = without_labels(weighted.tree, labels)
    if edited.tree.n_nodes == weighted.tree.n_nodes:
        return weighted
    none = np.zeros(edited.tree.n_nodes, np.float32)
    return WeightedTree(
        edited.tree, carry(weighted.tree, weighted.weights, edited, none, n_features, threads)
    )


def add_missing(weighted: WeightedTree, batch: UpdateBatch) -> WeightedTree:
    """Return a leaf to each label of the rows that has none."""
    rows, Y = batch.data.rows, batch.data.labels
    occurring = np.unique(Y.indices).astype(np.int64)
    new = occurring[leaf_of_label(weighted.tree, Y.shape[1])[occurring] < 0]
    if not len(new):
        return weighted
    parents = place_labels(weighted, rows, Y, new, link=batch.link, threads=batch.threads)
    edited = with_leaves(weighted.tree, new, parents)
    bias = np.zeros(edited.tree.n_nodes, np.float32)
    added = np.flatnonzero(edited.origin < 0)
    bias[added] = starting_bias(weighted, parents)[np.searchsorted(new, edited.tree.label[added])]
    weights = carry(weighted.tree, weighted.weights, edited, bias, rows.n_features, batch.threads)
    return WeightedTree(edited.tree, weights)


def starting_bias(weighted: WeightedTree, parents: Ints) -> npt.NDArray[np.float32]:
    """Return a new leaf below each parent its siblings' median bias: no old row of theirs has its label."""
    tree, bias = weighted.tree, weighted.weights["bias"]
    found = {}
    for parent in np.unique(parents):
        children = np.arange(tree.first_child[parent], tree.first_child[parent + 1])
        found[int(parent)] = np.median(bias[children[tree.label[children] >= 0]])
    return np.array([found[int(parent)] for parent in parents], np.float32)


def update(weighted: WeightedTree, batch: UpdateBatch, seed: int) -> tuple[WeightedTree, Facts]:
    """Move the classifiers on the paths of the rows from where they are; families without rows are copied."""
    data, tree = batch.data, weighted.tree
    trainer = NodeTrainer.prepare(
        data.rows, data.labels, tree, batch.settings, seed=seed, row_weight=data.row_weight
    )
    costs = lifetime_costs(tree, batch.label_counts, batch.n_rows, batch.settings)
    weights, facts = replace(trainer, costs=costs).train(
        threads=batch.threads,
        initial=(weighted.forest(data.rows.n_features, batch.link), 0),
        past=press_of_the_past(batch),
    )
    return WeightedTree(tree, weights), facts


def train_subtree(
    weighted: WeightedTree, subtree: Subtree, batch: UpdateBatch, seed: int
) -> tuple[WeightedTree, Facts]:
    """Train the classifiers of a subtree from nothing."""
    data = batch.data
    leaf = leaf_of_label(weighted.tree, data.labels.shape[1])
    place = np.where(leaf >= 0, subtree.place[np.maximum(leaf, 0)], -1)
    trainer = NodeTrainer.prepare(
        data.rows,
        _renumber(data.labels, place, subtree.tree.n_nodes),
        subtree.tree,
        batch.settings,
        seed=seed,
        row_weight=data.row_weight,
    )
    trained, facts = trainer.train(threads=batch.threads)
    return WeightedTree(weighted.tree, put_back(weighted.tree, weighted.weights, subtree, trained)), facts


def press_of_the_past(batch: UpdateBatch) -> npt.NDArray[np.float32]:
    """Give, per feature and last for the bias, how many old rows press on it for each new row that has it."""
    rows = batch.data.rows
    share = (batch.n_rows - rows.n_rows) / rows.n_rows
    if batch.feature_mass is None:
        ratio = np.full(rows.n_features, share)
    else:
        new = feature_mass(rows)
        ratio = (batch.feature_mass - new) / np.maximum(new, 1)
    return (PRESSING * np.append(ratio, share)).astype(np.float32)


def _renumber(Y: sp.csr_array, place: Ints, n_places: int) -> sp.csr_array:
    """Return the rows' places instead of their labels; labels of place -1 are omitted."""
    row = np.repeat(np.arange(Y.shape[0]), np.diff(Y.indptr))
    column = place[Y.indices]
    kept = column >= 0
    ones = np.ones(int(kept.sum()), np.float32)
    result: sp.csr_array = sp.csr_array((ones, (row[kept], column[kept])), shape=(Y.shape[0], n_places))
    result.sum_duplicates()
    result.data[:] = 1
    return result


def lifetime_costs(
    tree: LabelTree, label_counts: npt.NDArray[np.int64], n_rows: int, settings: SolverSettings
) -> npt.NDArray[np.float32]:
    """Return the cost of each node as `node_costs` does, for rows that are no longer there.

    How many rows a node had is not known any more; the sum of its labels' counts is not far above it.
    """
    costs = np.full(tree.n_nodes, settings.C)
    if settings.C_scale != "none":
        parent, rows = tree.parent, np.where(tree.label >= 0, label_counts[tree.label], 0)
        for level in reversed(tree.levels()[1:]):
            np.add.at(rows, parent[level], rows[level])
        rows[0] = n_rows
        ratio = n_rows / np.clip(rows[np.maximum(parent, 0)], 1, n_rows)
        costs *= ratio if settings.C_scale == "linear" else 1 + np.log(ratio)
    return np.asarray(np.minimum(costs, np.finfo(np.float32).max), np.float32)
