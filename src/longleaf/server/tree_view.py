"""Browsing the label trees: a node's words, its best labels and its children."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from longleaf._validation import check_features
from longleaf.explain.paths import node_terms, node_weights
from longleaf.explain.row import log_node_probability
from longleaf.explain.words import column_names, is_piece
from longleaf.search.rows import features_of
from longleaf.server.engine import Engine
from longleaf.server.reader import stop_if_abandoned
from longleaf.server.settings import Refusal
from longleaf.text.fields import Text
from longleaf.trees.label_tree import LabelTree

NOT_FOUND = 404
MOST_CHILDREN = 100
MOST_LABELS = 10
MOST_WORDS = 8
MOST_READ = 10 * MOST_WORDS
"""The strongest features that are read for them: most may be pieces of words."""
CHILD_LABELS = 3

Ints = npt.NDArray[np.int64]
Doubles = npt.NDArray[np.float64]


class TreeView:
    """The view of one node of a tree.

    Parameters
    ----------
    engine : Engine
    tree, node : int
        Index of the tree, and of its node; 0 is the root.
    text : str or mapping, optional
        A text or record; if given, children have their probabilities for it, and the best labels are those
        for it.
    """

    def __init__(self, engine: Engine, tree: int, node: int, text: Text | None = None) -> None:
        self.engine, self.text = engine, text
        self.number, self.node = tree, node
        self.tree: LabelTree = _item(engine.model.trees_, tree, "tree")
        if not 0 <= node < self.tree.n_nodes:
            raise Refusal(NOT_FOUND, f"node must be below {self.tree.n_nodes} in this tree; got {node}.")
        self.X = None if text is None or engine.is_blank(text) else engine.rows([text])

    def to_json(self) -> dict[str, Any]:
        """Return the view as JSON."""
        return {
            "tree": self.number,
            "trees": len(self.engine.model.trees_),
            "path": [self._brief(node) for node in self._ancestors()],
            **self._brief(self.node),
            "best": self._best(),
            "children": self._children(),
            "more_children": max(0, self._child_numbers().size - MOST_CHILDREN),
        }

    def _brief(self, node: int) -> dict[str, Any]:
        label = int(self.tree.label[node])
        below = labels_below(self.tree, node)
        return {
            "node": node,
            "labels": len(below),
            "label": self.engine.describe(label) if label >= 0 else None,
            "words": self._words(node),
        }

    def _words(self, node: int) -> list[tuple[str, float]]:
        """Return the features with the largest positive weights of a node."""
        if node == 0:
            return []
        features, values = node_terms(self.engine.model, self.number, node)
        order = np.argsort(-values, kind="stable")[:MOST_READ]
        order = order[values[order] > 0]
        tagger, n_words = self.engine.tagger, self.engine.suggester.n_words
        if n_words is not None:  # columns of meaning have no names
            order = order[features[order] < n_words]
        names = column_names(None if tagger is None else tagger.vectorizer_, features[order])
        named = list(zip(names, values[order].round(4).tolist(), strict=True))
        return ([pair for pair in named if not is_piece(pair[0])] or named)[:MOST_WORDS]

    def _best(self) -> list[dict[str, Any]]:
        below = labels_below(self.tree, self.node)
        if self.X is None:
            order = np.argsort(-self.engine.counts[below], kind="stable")[:MOST_LABELS]
            return [self.engine.describe(int(label)) for label in below[order]]
        gain = np.zeros(self.engine.model.n_labels_)
        gain[below] = 1
        top = self.engine.model.top_k(self.X, MOST_LABELS, gain=gain, n_jobs=1)
        found = zip(top.labels[0].tolist(), top.scores[0].tolist(), strict=True)
        return [self.engine.describe(label) | {"probability": p} for label, p in found if label >= 0]

    def _children(self) -> list[dict[str, Any]]:
        """Describe the children: the most probable for the text first, or the most frequent."""
        children = self._child_numbers()
        rows = np.array(
            [self.engine.counts[labels_below(self.tree, int(c))].sum() for c in children], np.int64
        )
        children = children[np.argsort(-rows, kind="stable")][:MOST_CHILDREN]
        chances = self._chances(children)
        if chances is not None:
            order = np.argsort(-chances, kind="stable")
            children, chances = children[order], chances[order]
        described = []
        for place, child in enumerate(children.tolist()):
            stop_if_abandoned()
            below = labels_below(self.tree, child)
            best = below[np.argsort(-self.engine.counts[below], kind="stable")[:CHILD_LABELS]]
            described.append(
                self._brief(child)
                | {"best": [self.engine.describe(int(label)) for label in best]}
                | ({} if chances is None else {"probability": float(chances[place])})
            )
        return described

    def _child_numbers(self) -> Ints:
        first, end = self.tree.first_child[self.node : self.node + 2]
        return np.arange(first, end, dtype=np.int64)

    def _chances(self, children: Ints) -> Doubles | None:
        """Return the probability of each child for the text, given that of the node."""
        if self.X is None:
            return None
        stop_if_abandoned()
        model = self.engine.model
        row = check_features(features_of(self.X), model.n_features_in_, normalize=model.normalize)
        values, features = row.data * row.scale[0], row.indices.astype(np.int64)
        bias = model.weights_[self.number]["bias"]
        margins = [
            bias[child] + node_weights(model, self.number, child, features) @ values
            for child in children.tolist()
        ]
        return np.exp(log_node_probability(np.array(margins), model._link))

    def _ancestors(self) -> list[int]:
        path, node = [], self.node
        while node > 0:
            node = int(np.searchsorted(self.tree.first_child, node, side="right")) - 1
            path.append(node)
        return path[::-1]


def labels_below(tree: LabelTree, node: int) -> Ints:
    """Return the labels of the leaves below a node, or its own if it is a leaf."""
    begin, end, found = node, node + 1, []
    while begin < end:  # the descendants of a node are a contiguous range on every level
        labels = tree.label[begin:end]
        found.append(labels[labels >= 0])
        begin, end = int(tree.first_child[begin]), int(tree.first_child[end])
    return np.concatenate(found).astype(np.int64)


def _item(items: list[Any], place: int, name: str) -> Any:
    if not 0 <= place < len(items):
        raise Refusal(NOT_FOUND, f"{name} must be below {len(items)}; got {place}.")
    return items[place]
