"""Trees that split rows by nDCG: sides and orders in turn, growing by a given separator, ranking."""

import numpy as np

MOST_ROUNDS = 50
MIXED = (1 << 64) - 1


def best_sides(worth, sides):
    """Find orders and sides in turn: each order by what its rows' labels are worth.

    worth dense [rows, labels]; gives the sides and, of each round, the sum of the rows' gains.
    """
    totals = []
    for _ in range(MOST_ROUNDS):
        orders = []
        for side in (True, False):
            sums = np.zeros(worth.shape[1])
            for line, on in zip(worth, sides, strict=True):
                sums += line * (on == side)
            ranked = sorted(range(len(sums)), key=lambda label: (-sums[label], label))
            orders.append([label for label in ranked if sums[label] > 0])
        gains = [[dcg(order, line) for order in orders] for line in worth]
        sides = [on if abs(a - b) < 1e-12 else a > b for on, (a, b) in zip(sides, gains, strict=True)]
        totals.append(sum(a if on else b for on, (a, b) in zip(sides, gains, strict=True)))
        if len(totals) > 1 and totals[-1] - totals[-2] <= 1e-6:
            break
    return np.array(sides, bool), totals


def dcg(order, line):
    """Give the gain of one order of labels to one row of what labels are worth."""
    return sum(line[label] / np.log2(2 + place) for place, label in enumerate(order))


def lots(seed, node, n):
    """Draw the sides that a node begins with: the high bits of splitmix64, as in native/base/random.h."""

    def mix(z):
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 & MIXED
        z = (z ^ (z >> 27)) * 0x94D049BB133111EB & MIXED
        return z ^ (z >> 31)

    golden = 0x9E3779B97F4A7C15
    state = mix(seed) ^ mix((node * golden + 1) & MIXED)
    return np.array([mix((state + i * golden) & MIXED) >> 63 for i in range(1, n + 1)], bool)


def grow_ndcg_tree(x, worth, seed, separate, max_leaf, max_labels):
    """Grow one tree, the parts of a node before those of the next.

    x dense [rows, features]; ``separate(held, sides)`` gives weights and bias for some rows. Gives for each
    node (children, weights, bias) or, for a leaf, what each label is worth on average, the best ones kept.
    """
    nodes, waiting = [], [np.arange(len(x))]
    for node, held in enumerate(waiting):  # grows while it is walked
        above = np.zeros(len(held), bool)
        if len(held) > max_leaf:
            sides, _ = best_sides(worth[held], lots(seed, node, len(held)).tolist())
            if sides.any() and not sides.all():
                weights, bias = separate(held, sides)
                above = x[held] @ weights + bias > 0
        if above.all() or not above.any():
            mean = worth[held].mean(axis=0)
            mean[np.argsort(-mean, kind="stable")[max_labels:]] = 0.0
            nodes.append(mean)
            continue
        nodes.append(((len(waiting), len(waiting) + 1), weights, bias))
        waiting += [held[~above], held[above]]
    return nodes


def rank_by_ndcg_trees(x, unit, trees, means, alpha, gamma):
    """Score every label for one row; -inf for those that no leaf holds. trees as `grow_ndcg_tree` gives.

    x is the row as the trees see it, unit the row at unit length.
    """
    share = np.zeros(len(means))
    for nodes in trees:
        node = nodes[0]
        while isinstance(node, tuple):
            children, weights, bias = node
            node = nodes[children[int(x @ weights + bias > 0)]]
        share += node / len(trees)
    v = np.exp(gamma / 2 * ((unit - means) ** 2).sum(axis=1))
    with np.errstate(divide="ignore"):
        return alpha * np.log(share) + (1 - alpha) * np.log(1 / (1 + v))
