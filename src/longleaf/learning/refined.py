"""Refined labels that go on learning, as their trees do.

The trees, updated before, rank the new rows, so that labels meet new hard negatives as well as new rows of
their own; what a classifier has learned holds it back as it does in a tree (`longleaf.learning.update`).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from longleaf.learning.transplant import carry, put_back
from longleaf.learning.tree_edits import holders, leaf_of_label, subtree_of, with_leaves
from longleaf.learning.update import UpdateBatch, press_of_the_past
from longleaf.training.refined import MARGIN, refined_trainer
from longleaf.training.solver import NodeTrainer, SolverSettings
from longleaf.trees.label_tree import LabelTree
from longleaf.weights.chunks import WeightedTree, ranges

Ints = npt.NDArray[np.int64]


def learn_refined(
    refined: WeightedTree, ranking: WeightedTree, batch: UpdateBatch, settings: SolverSettings, seed: int
) -> WeightedTree:
    """Add the labels that are new, and update every group that the rows concern.

    Parameters
    ----------
    refined : WeightedTree
    ranking : WeightedTree
        The first tree of the model, which has learned from the rows.
    batch : UpdateBatch
    settings : SolverSettings
        As `longleaf.training.refined.refined_settings` returns them.
    seed : int
    """
    refined = _with_missing(refined, ranking, batch)
    trainer = _trainer(refined, ranking, batch, settings, seed)
    weights, _ = trainer.train(
        threads=batch.threads,
        initial=(refined.forest(batch.data.rows.n_features, batch.link), 0),
        past=press_of_the_past(batch),
    )
    return WeightedTree(refined.tree, weights)


def relearn_refined(
    refined: WeightedTree,
    ranking: WeightedTree,
    labels: Ints,
    batch: UpdateBatch,
    settings: SolverSettings,
    seed: int,
) -> WeightedTree:
    """Train the groups of some labels again, from nothing; the batch has all rows."""
    refined = _with_missing(refined, ranking, batch)
    leaves = leaf_of_label(refined.tree, batch.data.labels.shape[1])[labels]
    subtree = subtree_of(refined.tree, holders(refined.tree, leaves[leaves >= 0]))
    whole = _trainer(refined, ranking, batch, settings, seed)
    sizes = np.diff(whole.node_indptr)[subtree.nodes]
    trainer = NodeTrainer(
        whole.rows,
        subtree.tree,
        settings,
        seed,
        np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
        whole.node_rows[ranges(whole.node_indptr[subtree.nodes], sizes)],
        whole.costs[subtree.nodes],
        whole.positive_weight[subtree.nodes],
        whole.row_weight,
    )
    trained, _ = trainer.train(threads=batch.threads)
    return WeightedTree(refined.tree, put_back(refined.tree, refined.weights, subtree, trained))


def _trainer(
    refined: WeightedTree, ranking: WeightedTree, batch: UpdateBatch, settings: SolverSettings, seed: int
) -> NodeTrainer:
    options = {"link": batch.link, "seed": seed, "threads": batch.threads}
    settings = replace(settings, weight_bits=batch.settings.weight_bits)
    return refined_trainer(ranking, batch.data, settings, **options, tree=refined.tree)


def _with_missing(refined: WeightedTree, ranking: WeightedTree, batch: UpdateBatch) -> WeightedTree:
    """Return a classifier to each label of the trees that has none, in the group of a sibling there."""
    n_labels = batch.data.labels.shape[1]
    leaf = leaf_of_label(refined.tree, n_labels)
    new = np.setdiff1d(ranking.tree.labels, refined.tree.labels).astype(np.int64)
    if not len(new):
        return refined
    edited = with_leaves(refined.tree, new, _groups(refined.tree, leaf, ranking.tree, new))
    bias = np.full(edited.tree.n_nodes, MARGIN, np.float32)
    size = batch.data.rows.n_features
    return WeightedTree(edited.tree, carry(refined.tree, refined.weights, edited, bias, size, batch.threads))


def _groups(tree: LabelTree, leaf: Ints, ranking: LabelTree, new: Ints) -> Ints:
    """Return the group of the nearest label, in the order of the leaves, that has one."""
    labels = ranking.labels.astype(np.int64)
    place = np.empty(len(leaf), np.int64)
    place[labels] = np.arange(len(labels))
    known = np.flatnonzero(leaf[labels] >= 0)
    after = np.searchsorted(known, place[new])
    nearest = known[np.clip(after, 0, len(known) - 1)]
    before = known[np.maximum(after - 1, 0)]
    closer = np.abs(before - place[new]) < np.abs(nearest - place[new])
    sibling = labels[np.where(closer, before, nearest)]
    return np.asarray(tree.parent[leaf[sibling]], np.int64)
