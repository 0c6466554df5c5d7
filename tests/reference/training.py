"""Which rows train which node, and what its classifier minimises."""

import numpy as np

from tests.reference.search import parents


def node_targets(tree, rows):
    """Give for every node but the root the rows that train it and those among them that are positive.

    A node holds the rows that have a label below it, and the root holds all. A node is trained on the rows of
    its parent; its own are the positive ones.
    """
    parent = parents(tree)
    held = [set() for _ in tree.label]
    for row, labels in enumerate(rows):
        held[0].add(row)
        for leaf, label in enumerate(tree.label):
            if label >= 0 and label in labels:
                node = leaf
                while node >= 0:
                    held[node].add(row)
                    node = parent[node]
    return {v: (sorted(held[parent[v]]), sorted(held[v])) for v in range(1, len(tree.label))}


def objective(loss, X, y, w, bias, cost):
    """Give the primal objective; the weight of the bias feature (of value 1) is regularised like any other.

    X dense [rows, features]; y of +1 and -1; cost per row.
    """
    margin = y * (X @ w + bias)
    losses = np.logaddexp(0, -margin) if loss == "log" else np.maximum(0, 1 - margin) ** 2
    return 0.5 * (w @ w + bias * bias) + np.sum(cost * losses)
