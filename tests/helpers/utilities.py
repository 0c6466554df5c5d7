"""Random utilities, and the labels that are worth the most by brute force."""

import numpy as np
from hypothesis import strategies as st

import longleaf as ll

KINDS = st.sampled_from(["plain", "gains", "costs", "ties", "huge", "one number"])
LIMITS = st.sampled_from(["none", "none", "mask", "quotas", "mask and quotas", "nothing allowed"])


def make_utility(rng, kind, limits, n_labels):
    """Make a utility of a named kind."""
    a, b = rng.uniform(-1, 3, n_labels), rng.uniform(-0.2, 0.2, n_labels)
    if kind == "gains":
        a, b = rng.uniform(0.5, 20, n_labels), 0.0
    elif kind == "costs":
        a, b = 1.0, -rng.uniform(0, 0.5, n_labels)
    elif kind == "ties":
        a, b = rng.choice([0.0, 1.0, 2.0], n_labels), rng.choice([-1.0, 0.0], n_labels)
    elif kind == "huge":
        a, b = a * 1e20, b * 1e20
    elif kind == "one number":
        a, b = 2.0, 0.0
    mask, groups, quota = None, None, None
    if "mask" in limits:
        mask = rng.random(n_labels) < rng.choice([0.1, 0.5, 0.9])
    if limits == "nothing allowed":
        mask = np.zeros(n_labels, bool)
    if "quotas" in limits:
        groups = rng.integers(-1, 4, n_labels)
        quota = rng.integers(0, 3, 4) if rng.random() < 0.7 else 1
    return ll.Utility(a, b, mask, groups=groups, quota=quota)


def worth(utility, probability):
    """Return what every label is worth, [rows, labels]; -inf where it is not allowed."""
    n_labels = probability.shape[1]
    value = np.float64(utility.a) * probability + np.float64(utility.b) + np.zeros(n_labels)
    return value if utility.mask is None else np.where(utility.mask, value, -np.inf)


def best(utility, value, k):
    """Return the k labels that are worth the most and keep to the quotas, one after the other."""
    groups, quota = utility.quotas or (np.full(len(value), -1), np.zeros(0, int))
    left, chosen = list(quota), []
    for label in sorted(np.flatnonzero(value > -np.inf), key=lambda j: (-value[j], j)):
        if len(chosen) == k:
            break
        group = groups[label]
        if group >= 0:
            if left[group] <= 0:
                continue
            left[group] -= 1
        chosen.append(label)
    return chosen


def check_best(top, utility, probability, k, rtol=1e-4):
    """The answer is worth what the best labels are worth, and every label what it is worth itself."""
    values = worth(utility, probability)
    size = np.abs(np.float64(utility.a)) * probability.max(initial=0) + np.abs(np.float64(utility.b))
    atol = rtol * float(np.max(size, initial=0)) + 1e-30
    for row, value in enumerate(values):
        labels = best(utility, value, k)
        n = len(labels)
        found = top.labels[row]
        assert (found[:n] >= 0).all()
        assert (found[n:] == -1).all()
        assert (top.scores[row][n:] == 0).all()
        assert len(set(found[:n])) == n
        np.testing.assert_allclose(top.scores[row][:n], value[labels], rtol=rtol, atol=atol)
        np.testing.assert_allclose(top.scores[row][:n], value[found[:n]], rtol=rtol, atol=atol)
        np.testing.assert_allclose(
            top.probabilities[row][:n], probability[row][found[:n]], rtol=10 * rtol, atol=1e-5
        )
        assert len(best(utility, np.where(np.isin(range(len(value)), found[:n]), value, -np.inf), k)) == n
