"""What the tests of the searches share: random problems, gains of all kinds, comparisons."""

import numpy as np
from hypothesis import strategies as st

from tests import reference
from tests.helpers import handmade

LINKS = st.sampled_from([reference.LOG, reference.HINGE_2, reference.HINGE_3])
SHAPES = st.sampled_from(["balanced", "unbalanced", "chain", "flat"])
GAINS = st.sampled_from([None, "plain", "ties", "zeros", "huge"])
SMALLEST = 1e-37  # below this a 32-bit float has few digits


@st.composite
def problems(draw, most_trees=4):
    """Draw a hand-made model and rows; now and then a single label, or families wider than a chunk."""
    shapes = draw(st.lists(SHAPES, min_size=1, max_size=most_trees))
    n_labels = draw(st.one_of(st.integers(1, 25), st.just(1), st.sampled_from([257, 300, 600])))
    if n_labels > 100:  # chains of hundreds underflow, and deep trees take the reference long
        shapes = ["flat" if shape in ("chain", "unbalanced") else shape for shape in shapes[:2]]
    scale = draw(st.sampled_from([0.5, 2.0, 8.0]))
    return handmade.random_problem(draw(st.integers(0, 2**32)), shapes, n_labels, draw(LINKS), scale=scale)


def make_gain(kind, seed, n_labels):
    """Make a gain per label of a named kind; None for none."""
    rng = np.random.default_rng(seed)
    if kind is None:
        return None
    if kind == "ties":
        return rng.choice([1.0, 2.0, 4.0], n_labels)
    if kind == "zeros":
        return rng.choice([0.0, 1.0, 3.0], n_labels)
    if kind == "huge":
        return 10.0 ** rng.uniform(-30, 30, n_labels)
    return rng.uniform(0.5, 20, n_labels)


def twins(problem):
    """Give every odd label the classifier of the even one before it: as siblings they score the same."""
    parts = [(tree, W.copy(), bias.copy()) for tree, W, bias in problem.parts]
    for tree, W, bias in parts:
        leaf = {int(label): node for node, label in enumerate(tree.label) if label >= 0}
        for label in leaf:
            first = leaf.get(label - label % 2, leaf[label])
            W[:, leaf[label]], bias[leaf[label]] = W[:, first], bias[first]
    model = handmade.estimator(parts, problem.n_labels, problem.link)
    return handmade.Problem(problem.link, parts, problem.n_labels, problem.X, model)


def brute_force(problem, gain):
    """Return the score of every label, [rows, labels]."""
    gain = np.ones(problem.n_labels) if gain is None else gain
    return problem.label_probabilities().mean(axis=1) * gain


def check_top(top, scores, k, rtol=1e-4):
    """The answer holds the k best scores, and every label has its own score."""
    for labels, found, row in zip(top.labels, top.scores, scores, strict=True):
        expected = np.sort(row[row > 0])[::-1][:k]
        n = len(expected)
        assert (labels[:n] >= 0).all()
        assert (labels[n:] == -1).all()
        assert (found[n:] == 0).all()
        assert len(set(labels[:n])) == n
        np.testing.assert_allclose(found[:n], expected, rtol=rtol, atol=SMALLEST)
        np.testing.assert_allclose(found[:n], row[labels[:n]], rtol=rtol, atol=SMALLEST)
        assert (np.diff(found[:n]) <= 0).all()


def same(a, b):
    """Two answers agree bit for bit."""
    np.testing.assert_array_equal(a.labels, b.labels)
    np.testing.assert_array_equal(a.scores.view(np.int32), b.scores.view(np.int32))
    np.testing.assert_array_equal(a.evaluations, b.evaluations)
