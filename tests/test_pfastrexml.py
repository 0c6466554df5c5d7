"""PfastreXML, against its own formulas written out with loops over rows and labels."""

import pickle
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

import longleaf as ll
from longleaf._ndcg_split import best_sides, normalised_gains, separator
from training import texts, unit_rows

SETTINGS = {"n_trees": 4, "max_leaf": 5, "random_state": 3}


def sparse(rows):
    return sp.csr_matrix(np.asarray(rows, float))


def ndcg(order, line):
    """Give the gain of one order of labels to one row of what labels are worth, best orders by count."""
    won = sum(line[label] / np.log2(2 + place) for place, label in enumerate(order))
    return won / sum(1 / np.log2(2 + place) for place in range(np.count_nonzero(line)))


def slow_sides(worth, sides):
    """Find orders and sides in turn: each order by what its rows' labels are worth after normalising."""
    ideal = [sum(1 / np.log2(2 + p) for p in range(np.count_nonzero(line))) for line in worth]
    totals = []
    for _ in range(50):
        orders = []
        for side in (True, False):
            sums = np.zeros(worth.shape[1])
            for line, best, on in zip(worth, ideal, sides, strict=True):
                sums += line / best * (on == side)
            ranked = sorted(range(len(sums)), key=lambda label: (-sums[label], label))
            orders.append([label for label in ranked if sums[label] > 0])
        gains = [[ndcg(order, line) for order in orders] for line in worth]
        sides = [on if abs(a - b) < 1e-12 else a > b for on, (a, b) in zip(sides, gains, strict=True)]
        totals.append(sum(a if on else b for on, (a, b) in zip(sides, gains, strict=True)))
        if len(totals) > 1 and totals[-1] - totals[-2] <= 1e-6:
            break
    return np.array(sides), totals


def test_a_rows_gains_are_divided_by_the_best_order_of_as_many_labels():
    gains = normalised_gains(sparse([[2.0, 0, 3.0], [0, 5.0, 0]])).toarray()
    np.testing.assert_allclose(gains, [[2 / (1 + 1 / np.log2(3)), 0, 3 / (1 + 1 / np.log2(3))], [0, 5, 0]])


@pytest.mark.parametrize("seed", range(5))
def test_sides_and_orders_are_those_of_the_slow_way(seed):
    rng = np.random.default_rng(seed)
    worth = (rng.random((40, 9)) < 0.3) * rng.uniform(1, 6, 9)
    worth = worth[worth.any(axis=1)]
    begun = np.random.RandomState(seed).rand(len(worth)) < 0.5
    expected, totals = slow_sides(worth, begun.tolist())
    found = best_sides(normalised_gains(sparse(worth)), np.random.RandomState(seed))
    np.testing.assert_array_equal(found, expected)
    assert all(later >= earlier - 1e-9 for earlier, later in pairwise(totals))


def test_the_separator_is_near_the_minimum_of_its_l1_problem():
    X, rows = texts(n_rows=80, n_features=30, n_labels=2)
    x = np.column_stack([unit_rows(X), np.ones(80)])
    sides = np.array([0 in row for row in rows])
    y = np.where(sides, 1.0, -1.0)
    cost = 4.0 / np.where(sides, sides.mean(), 1 - sides.mean())

    def objective(w):
        return np.abs(w).sum() + cost @ np.logaddexp(0, -y * (x @ w))

    w = np.zeros(x.shape[1])
    step = 4 / cost.max() / np.linalg.norm(x, 2) ** 2  # the curvature of log(1 + exp) is at most 1/4
    for _ in range(4000):
        moved = w + step * x.T @ (cost * y / (1 + np.exp(y * (x @ w))))
        w = np.sign(moved) * np.maximum(np.abs(moved) - step, 0)
    weights, bias = separator(sparse(x[:, :-1]), sides, 4.0, 1.0, seed=1)
    assert objective(np.append(weights, bias)) <= 1.01 * objective(w)
    assert separator(sparse(x[:, :-1]), np.ones(80, bool), 4.0, 1.0, seed=1) is None


def leaf_of(tree, x):
    node = 0
    while tree.children[node][0] >= 0:
        line = tree.place[node]
        margin = x @ tree.weights.toarray()[line] + tree.bias[line]
        node = tree.children[node][int(margin > 0)]
    return tree.place[node]


def test_ranking_is_the_published_formula():
    X, rows = texts(n_rows=120, n_labels=8)
    rows = [row or [7] for row in rows]
    model = ll.PfastreXML(alpha=0.7, gamma=5.0, **SETTINGS).fit(X, rows)
    x, q = unit_rows(X), ll.inverse_propensity(rows)
    Y = np.array([[label in row for label in range(8)] for row in rows])
    leaves = np.array([[leaf_of(tree, line) for line in x] for tree in model.trees_])
    top = model.top_k(X, k=3)
    for i in range(0, 120, 7):
        share = np.mean([(Y[leaves[t] == leaves[t, i]] * q).mean(axis=0) for t in range(4)], axis=0)
        mean = np.array([x[Y[:, label]].mean(axis=0) for label in range(8)])
        v = np.exp(5.0 / 2 * ((x[i] - mean) ** 2).sum(axis=1))
        with np.errstate(divide="ignore"):
            score = 0.7 * np.log(share) + 0.3 * np.log(1 / (1 + v))
        best = np.argsort(-score, kind="stable")[:3]
        best = best[np.isfinite(score[best])]
        np.testing.assert_allclose(top.scores[i, : len(best)], np.exp(score[best]), rtol=1e-4)
        np.testing.assert_array_equal(top.labels[i, : len(best)], best)
        assert (top.labels[i, len(best) :] == -1).all()


def test_leaves_are_small_unless_their_rows_cannot_be_parted():
    X, rows = texts(n_rows=200, n_labels=8)
    model = ll.PfastreXML(**SETTINGS).fit(X, [row or [0] for row in rows])
    x = unit_rows(X)
    for tree in model.trees_:
        sizes = np.bincount([leaf_of(tree, line) for line in x])
        assert sizes.sum() == 200
        assert len(sizes) > 4


def test_the_same_seed_gives_the_same_model_with_any_threads_and_after_pickling():
    X, rows = texts(n_labels=6)
    one, two = (ll.PfastreXML(n_jobs=jobs, **SETTINGS).fit(X, rows) for jobs in (1, 2))
    again = pickle.loads(pickle.dumps(one))
    for other in (two, again):
        np.testing.assert_array_equal(one.top_k(X).scores, other.top_k(X).scores)
    assert clone(one).get_params() == one.get_params()
    assert one.predict(X[:4]).shape == (4, 6)


@pytest.mark.parametrize(
    ("settings", "message"),
    [({"alpha": 1.5}, "alpha"), ({"n_trees": 0}, "n_trees"), ({"C": 0}, "C must be")],
)
def test_settings_out_of_range_are_refused(settings, message):
    X, rows = texts(n_labels=3)
    with pytest.raises(ValueError, match=message):
        ll.PfastreXML(**settings).fit(X, rows)
