"""Probabilities of nodes and labels, and the searches of the paper, for one row at a time.

A model is a list of (tree, W, bias): W dense [features, nodes], bias [nodes]; the root's column is unused.
"""

import heapq
from typing import NamedTuple

import numpy as np


class Link(NamedTuple):
    """How a margin becomes a probability; the power is of the squared hinge, and 3 by default."""

    loss: str
    hinge_power: int = 3


LEAST = 1e-270
"""A probability that a double can hold, also after a gain was applied."""
LOG, HINGE_2, HINGE_3 = Link("log"), Link("squared-hinge", 2), Link("squared-hinge", 3)


def parents(tree):
    """Give the parent of each node, -1 at the root."""
    parent = [-1] * len(tree.label)
    for v in range(len(tree.label)):
        for child in range(tree.first_child[v], tree.first_child[v + 1]):
            parent[child] = v
    return parent


def node_costs(link, W, bias, x):
    """Return minus the log of each node's probability: a double holds it where it cannot hold that."""
    margin = x @ W.astype(float) + bias
    cost = np.logaddexp(0, -margin) if link.loss == "log" else np.maximum(0, 1 - margin) ** link.hinge_power
    cost[0] = 0.0
    return cost


def node_probabilities(link, W, bias, x):
    """Return the chance that each node holds a relevant label, given that its parent does; 1 at the root."""
    return np.exp(-node_costs(link, W, bias, x))


def path_products(tree, eta):
    """Give the product of the node probabilities from the root down to each node."""
    product = np.array(eta)
    for v, parent in enumerate(parents(tree)):
        if parent >= 0:
            product[v] *= product[parent]
    return product


def label_probabilities(link, model, x, n_labels):
    """Give the probability of each label in each tree, [trees, labels]; 0 only without a leaf."""
    result = np.zeros((len(model), n_labels))
    for t, (tree, W, bias) in enumerate(model):
        product = path_products(tree, node_probabilities(link, W, bias, x))
        for v, label in enumerate(tree.label):
            if label >= 0:
                result[t, label] = max(product[v], LEAST)
    return result


def mapped(probability, slope, offset):
    """What probabilities become by maps of a slope and an offset."""
    clipped = np.clip(probability, 1e-6, 1 - 1e-6)
    return np.exp(-np.logaddexp(0, -(slope * np.log(clipped / (1 - clipped)) + offset)))


def best(scores, k):
    """Give the k labels of the highest positive scores, the best first."""
    order = sorted(range(len(scores)), key=lambda label: (-scores[label], label))
    return [label for label in order if scores[label] > 0][:k]


def bounds(tree, gain):
    """Give the best gain below each node."""
    bound = np.zeros(len(tree.label))
    parent = parents(tree)
    for v in reversed(range(len(tree.label))):
        if tree.label[v] >= 0:
            bound[v] = gain[tree.label[v]]
        if parent[v] >= 0:
            bound[parent[v]] = max(bound[parent[v]], bound[v])
    return bound


def a_star(tree, cost, gain, k):
    """Algorithm 1, which also stops when the queue is empty.

    Give the labels, the best first, and how many node classifiers were evaluated. Nodes whose bound is 0
    have an infinite cost and are never queued.
    """
    bound = bounds(tree, gain)
    costs = cost_function(bound)
    queue, found, evaluations = [], [], 0
    if bound[0] > 0:
        heapq.heappush(queue, (costs(0, 0.0), 0, 0.0))
    while len(found) < k and queue:
        _, v, g = heapq.heappop(queue)
        if tree.label[v] >= 0:
            found.append(int(tree.label[v]))
            continue
        for child in range(tree.first_child[v], tree.first_child[v + 1]):
            evaluations += 1
            if bound[child] > 0:
                g_child = g + cost[child]
                heapq.heappush(queue, (costs(child, g_child), child, g_child))
    return found, evaluations


def cost_function(bound):
    """Give the estimated cost of a node from its own cost."""
    with np.errstate(divide="ignore"):
        log_bound = np.log(bound)
    return lambda v, g: g + log_bound[0] - log_bound[v]


def beam_search(tree, cost, gain, k, beam):
    """Algorithm 2, which keeps the nodes of the lowest cost (the paper's text says the highest).

    Leaves that lie above the lowest level are set aside until the end. Give the labels, the best first, and
    the smallest difference in cost between a node that was kept and one that was not: where it is tiny, the
    answer depends on rounding.
    """
    bound = bounds(tree, gain)
    costs = cost_function(bound)
    level = [(0.0, 0, 0.0)] if bound[0] > 0 else []
    leaves, closest = [], np.inf
    while level:
        leaves += [entry for entry in level if tree.label[entry[1]] >= 0]
        inner = sorted(entry for entry in level if tree.label[entry[1]] < 0)
        if len(inner) > beam:
            closest = min(closest, inner[beam][0] - inner[beam - 1][0])
        level = []
        for _, v, g in inner[:beam]:
            for child in range(tree.first_child[v], tree.first_child[v + 1]):
                if bound[child] > 0:
                    g_child = g + cost[child]
                    level.append((costs(child, g_child), child, g_child))
    return [int(tree.label[v]) for _, v, _ in sorted(leaves)[:k]], closest


def union_top(probabilities, gain, k):
    """Give the labels of the paper's ensemble: of the union of each tree's top k, those of the best mean."""
    union = {label for tree in probabilities for label in best(tree * gain, k)}
    mean = probabilities.mean(axis=0) * gain
    return best([score if label in union else 0.0 for label, score in enumerate(mean)], k)
