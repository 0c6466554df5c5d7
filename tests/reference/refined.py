"""Refined labels: which the trees nominate, and what becomes of their probability."""

import numpy as np


def nominate(probabilities, nominees):
    """Return the mean probability of each label over the trees that nominate it, and who is nominated.

    Each tree nominates its best labels; of equal ones the lower.
    """
    n_trees, n_labels = probabilities.shape
    mean, nominated = np.zeros(n_labels), np.zeros(n_labels, bool)
    for of_tree in probabilities:
        order = sorted(range(n_labels), key=lambda label: (-of_tree[label], label))
        for label in order[:nominees]:
            if of_tree[label] > 0:
                mean[label] += of_tree[label] / n_trees
                nominated[label] = True
    return mean, nominated


def log_h(margin):
    """Return what a refined classifier says."""
    return -(np.maximum(0.0, 1.0 - margin) ** 2)


def curve(points, place):
    """Return the value of a piecewise linear curve that goes on beyond its ends."""
    x, y = (list(map(float, one)) for one in points)
    piece = 0
    while piece + 2 < len(x) and place > x[piece + 1]:
        piece += 1
    return y[piece] + (place - x[piece]) * (y[piece + 1] - y[piece]) / (x[piece + 1] - x[piece])


def probability(p, said, slope, offset, refined, evidence, result):
    """Return the probability of one label."""
    p = min(max(p, 1e-6), 1 - 1e-6)
    z = slope * curve(evidence, np.log(p / (1 - p))) + offset + refined * said
    return float(np.exp(-np.logaddexp(0, -curve(result, z))))
