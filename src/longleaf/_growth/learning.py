"""Trees that go on learning: new rows, new labels, families trained anew.

Problem: a trained tree with weights ``w0``, and new rows. Training anew on old and new rows together would
minimise ``|w|^2 / 2 + sum of C loss`` at each node. The old rows are gone; what they taught is ``w0``. So
each classifier on the path of a new row becomes the minimiser of

    |w - w0|^2 / 2 + sum over the new rows of its parent of  C loss(y w.x),

and every classifier that has no new row at its parent stays as it is, byte by byte. The bias is a weight like
any other, but of a feature that every old row had too: were it as free as the weight of a word that is new,
a batch of rows that all carry a label would give that label to everything. So it moves by the share of the
new rows among all: its feature's value is that of `fit` times the square root of the share.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from longleaf._fitting.trees import Facts, TrainingData
from longleaf._growth.placement import Grown, place_labels, split_clusters
from longleaf._growth.transplant import carry, part_weights, put_back
from longleaf._growth.tree_edits import Part, holders, leaf_of_label, part_of, with_leaves, without_labels
from longleaf.linear import NodeTrainer, SolverSettings
from longleaf.tree import LabelTree

Ints = npt.NDArray[np.int64]

UPDATE_COST = 4.0
"""C of an update, as a multiple of that of `fit`: measured on a stream, see docs/learning.md."""
START_BELOW = 0.3
"""How far below its siblings' median bias a new label's starts: they have rows in the past, it has none."""


@dataclass(frozen=True, eq=False)
class Lesson:
    """Rows to learn from, and how.

    Attributes
    ----------
    data : TrainingData
        Labels have a column for every label of the model.
    label_counts, n_rows
        Of all rows that the model has learned from, these included: costs follow them.
    settings : SolverSettings
    link, threads : int
    max_leaf : int, optional
        Clusters of more labels are split; None for never.
    arity : int
    """

    data: TrainingData
    label_counts: npt.NDArray[np.int64]
    n_rows: int
    settings: SolverSettings
    link: int
    threads: int
    arity: int
    max_leaf: int | None


def learn(grown: Grown, lesson: Lesson, seed: int) -> tuple[Grown, Facts]:
    """Place the labels that have no leaf, then update every classifier on the paths of the rows."""
    grown = add_missing(grown, lesson)
    Y = lesson.data.labels
    leaves = leaf_of_label(grown.tree, Y.shape[1])[np.unique(Y.indices)]
    part = part_of(grown.tree, holders(grown.tree, leaves[leaves >= 0]))
    grown, facts = train_part(grown, part, lesson, seed, stay=True)
    if lesson.max_leaf is not None:
        grown = split_clusters(
            grown,
            lesson.data.rows.n_features,
            arity=lesson.arity,
            max_leaf=lesson.max_leaf,
            link=lesson.link,
            seed=seed,
            threads=lesson.threads,
        )
    return grown, facts


def relearn(grown: Grown, labels: Ints, lesson: Lesson, seed: int) -> tuple[Grown, Facts]:
    """Train the families on the paths of some labels from nothing; the lesson has all rows."""
    grown = add_missing(grown, lesson)
    leaves = leaf_of_label(grown.tree, lesson.data.labels.shape[1])[labels]
    part = part_of(grown.tree, holders(grown.tree, leaves[leaves >= 0]))
    return train_part(grown, part, lesson, seed, stay=False)


def forget(grown: Grown, labels: Ints, n_features: int) -> Grown:
    """Take the leaves of labels out of the tree; all other probabilities stay as they are."""
    edited = without_labels(grown.tree, labels)
    if edited.tree.n_nodes == grown.tree.n_nodes:
        return grown
    none = np.zeros(edited.tree.n_nodes, np.float32)
    return Grown(edited.tree, carry(grown.tree, grown.weights, edited, none, n_features))


def add_missing(grown: Grown, lesson: Lesson) -> Grown:
    """Give a leaf to each label of the rows that has none."""
    rows, Y = lesson.data.rows, lesson.data.labels
    occurring = np.unique(Y.indices).astype(np.int64)
    new = occurring[leaf_of_label(grown.tree, Y.shape[1])[occurring] < 0]
    if not len(new):
        return grown
    parents = place_labels(grown, rows, Y, new, link=lesson.link, threads=lesson.threads)
    edited = with_leaves(grown.tree, new, parents)
    bias = np.zeros(edited.tree.n_nodes, np.float32)
    added = np.flatnonzero(edited.origin < 0)
    bias[added] = starting_bias(grown, parents)[np.searchsorted(new, edited.tree.label[added])]
    return Grown(edited.tree, carry(grown.tree, grown.weights, edited, bias, rows.n_features))


def starting_bias(grown: Grown, parents: Ints) -> npt.NDArray[np.float32]:
    """Give a bias for a new leaf below each parent, by its siblings: none of their old rows has its label."""
    tree, bias = grown.tree, grown.weights["bias"]
    found = {}
    for parent in np.unique(parents):
        children = np.arange(tree.first_child[parent], tree.first_child[parent + 1])
        found[int(parent)] = np.median(bias[children[tree.label[children] >= 0]]) - START_BELOW
    return np.array([found[int(parent)] for parent in parents], np.float32)


def train_part(grown: Grown, part: Part, lesson: Lesson, seed: int, *, stay: bool) -> tuple[Grown, Facts]:
    """Train the classifiers of a part of a tree, from nothing or so that they stay near what they are."""
    Y = lesson.data.labels
    leaf = leaf_of_label(grown.tree, Y.shape[1])
    place = np.where(leaf >= 0, part.place[np.maximum(leaf, 0)], -1)
    trainer = NodeTrainer.prepare(
        lesson.data.rows,
        _renumber(Y, place, part.tree.n_nodes),
        part.tree,
        lesson.settings,
        seed=seed,
        row_weight=lesson.data.row_weight,
    )
    initial = None
    if stay:
        part_forest = Grown(part.tree, part_weights(grown.weights, part)).forest(
            lesson.data.rows.n_features, lesson.link
        )
        initial = part_forest, 0
        costs = lifetime_costs(grown.tree, lesson.label_counts, lesson.n_rows, lesson.settings)
        costs *= UPDATE_COST
        bias = lesson.settings.bias * np.sqrt(lesson.data.rows.n_rows / lesson.n_rows)
        trainer = replace(
            trainer, costs=costs[part.nodes], settings=replace(lesson.settings, bias=float(bias))
        )
    trained, facts = trainer.train(threads=lesson.threads, initial=initial)
    return Grown(grown.tree, put_back(grown.tree, grown.weights, part, trained)), facts


def _renumber(Y: sp.csr_array, place: Ints, n_places: int) -> sp.csr_array:
    """Give the rows' places instead of their labels; labels of place -1 are left out."""
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
    """Give the cost of each node as `longleaf.linear.node_costs` does, for rows that are no longer there.

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
