"""PfastreXML, against its own formulas written out with loops over rows and labels."""

import copy
import pickle
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone

import longleaf as ll
from longleaf import _core
from longleaf._validation import check_features
from tests import reference
from tests.helpers.training import texts, unit_rows

pytestmark = pytest.mark.native

SETTINGS = {"n_trees": 4, "max_leaf": 5, "random_state": 3}


def sparse(rows):
    return sp.csr_matrix(np.asarray(rows, float))


def native_sides(held, worth, begun):
    Y = sparse(held)
    begun = np.asarray(begun, np.uint8)
    return _core.ndcg_sides(Y.indptr.astype(np.int64), Y.indices, worth, begun).astype(bool)


def separator(X, sides, C, bias, seed, normalize=False):
    """Give the native separator's weights and bias, an error costing C over its side's share of the rows."""
    rows = check_features(X, normalize=normalize)
    cost = {
        f"cost_{name}": C * len(sides) / max(np.count_nonzero(side), 1)
        for name, side in (("off", ~sides), ("on", sides))
    }
    feature, weight, b = _core.separate(
        *rows.csr,
        rows.n_features,
        rows.scale,
        sides.astype(np.uint8),
        bias=bias,
        tolerance=0.005,
        max_epochs=20,
        seed=seed,
        **cost,
    )
    weights = np.zeros(rows.n_features)
    weights[feature] = weight
    return weights, b


@pytest.mark.parametrize("seed", range(5))
def test_sides_and_orders_are_those_of_the_slow_way(seed):
    rng = np.random.default_rng(seed)
    held, worth = rng.random((40, 9)) < 0.3, rng.uniform(1, 6, 9)
    held = held[held.any(axis=1)]
    begun = np.random.RandomState(seed).rand(len(held)) < 0.5
    expected, totals = reference.best_sides(held * worth, begun.tolist())
    np.testing.assert_array_equal(native_sides(held, worth, begun), expected)
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
    weights, bias = separator(x[:, :-1], sides, 4.0, 1.0, seed=1)
    assert objective(np.append(weights, bias)) <= 1.01 * objective(w)


def leaf_of(tree, x):
    node = 0
    while tree.children[node][0] >= 0:
        line = tree.place[node]
        weights = np.zeros(len(x))
        held = slice(*tree.weight_indptr[line : line + 2])
        weights[tree.weight_indices[held]] = tree.weight_data[held]
        margin = x @ weights + tree.bias[line]
        node = tree.children[node][int(margin > 0)]
    return tree.place[node]


def tree_rows(model, X):
    """Give the rows as the model's trees see them."""
    return unit_rows(X) if model.normalize else X.toarray()


@pytest.mark.parametrize("normalize", [False, True])
def test_ranking_is_the_published_formula(normalize):
    X, rows = texts(n_rows=120, n_labels=8)
    rows = [row or [7] for row in rows]
    model = ll.PfastreXML(alpha=0.7, gamma=5.0, normalize=normalize, **SETTINGS).fit(X, rows)
    x, q = unit_rows(X), ll.inverse_propensity(rows)
    Y = np.array([[label in row for label in range(8)] for row in rows])
    leaves = np.array([[leaf_of(tree, line) for line in tree_rows(model, X)] for tree in model.trees_])
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
    for tree in model.trees_:
        sizes = np.bincount([leaf_of(tree, line) for line in tree_rows(model, X)])
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


@given(st.integers(0, 2**32), st.integers(1, 40), st.integers(1, 12))
def test_sides_of_any_rows_are_those_of_the_slow_way(seed, n_rows, n_labels):
    rng = np.random.default_rng(seed)
    held, worth = rng.random((n_rows, n_labels)) < rng.random(), rng.uniform(1, 6, n_labels)
    begun = rng.random(n_rows) < 0.5
    expected, _ = reference.best_sides(held * worth, begun.tolist())
    np.testing.assert_array_equal(native_sides(held, worth, begun), expected)


def slow_forest(model, X, rows, n_labels):
    """Grow the model's trees the slow way, around its own separators; give them, and the label means."""
    x = tree_rows(model, X)
    Y = np.array([[label in row for label in range(n_labels)] for row in rows])
    seeds = np.random.RandomState(model.random_state).randint(2**31 - 1, size=model.n_trees)
    trees = [
        reference.grow_ndcg_tree(
            x,
            Y * ll.inverse_propensity(rows),
            int(seed),
            lambda held, sides, seed=int(seed): separator(
                X[held], sides, model.C, model.bias, seed, model.normalize
            ),
            model.max_leaf,
            model.max_labels,
        )
        for seed in seeds
    ]
    return trees, Y.T / Y.sum(axis=0)[:, None] @ unit_rows(X)


@pytest.mark.parametrize(
    "settings", [{}, {"normalize": True}, {"C": 4.0, "max_labels": 2}, {"bias": 0.0, "max_leaf": 20}]
)
def test_trees_are_those_of_the_slow_way(settings):
    X, rows = texts(n_rows=200, n_labels=8)
    rows = [row or [7] for row in rows]
    model = ll.PfastreXML(**(SETTINGS | settings)).fit(X, rows)
    trees, _ = slow_forest(model, X, rows, 8)
    for tree, nodes in zip(model.trees_, trees, strict=True):
        assert len(tree.place) == len(nodes) > 3
        weights = sp.csr_matrix(
            (tree.weight_data, tree.weight_indices, tree.weight_indptr), (len(tree.bias), X.shape[1])
        )
        leaves = sp.csr_matrix((tree.leaf_data, tree.leaf_indices, tree.leaf_indptr))
        leaves.resize(leaves.shape[0], 8)
        for node, children, place in zip(nodes, tree.children, tree.place, strict=True):
            if isinstance(node, tuple):
                assert tuple(children) == node[0]
                np.testing.assert_array_equal(weights[[place]].toarray()[0], node[1])
                assert tree.bias[place] == np.float32(node[2])
            else:
                assert tuple(children) == (-1, -1)
                np.testing.assert_allclose(leaves[[place]].toarray()[0], node, rtol=1e-6)


def test_the_best_labels_are_those_of_scoring_all_the_slow_way():
    X, rows = texts(n_rows=300, n_labels=40)
    rows = [row or [7] for row in rows]
    n_labels = 1 + max(max(row) for row in rows)
    rows += [[label] for label in range(n_labels)]
    X = sp.vstack([X, X[:n_labels]], format="csr")
    model = ll.PfastreXML(gamma=8.0, **SETTINGS).fit(X, rows)
    trees, means = slow_forest(model, X, rows, n_labels)
    top = model.top_k(X, k=4)
    for i, (line, unit) in enumerate(zip(tree_rows(model, X), unit_rows(X), strict=True)):
        score = reference.rank_by_ndcg_trees(line, unit, trees, means, model.alpha, model.gamma)
        best = np.argsort(-score, kind="stable")[:4]
        best = best[np.isfinite(score[best])]
        assert top.evaluations[i] == np.isfinite(score).sum()
        np.testing.assert_allclose(top.scores[i, : len(best)], np.exp(score[best]), rtol=1e-4)
        np.testing.assert_allclose(score[top.labels[i, : len(best)]], score[best], atol=1e-4)


def test_rows_are_ranked_alone_as_they_are_in_a_batch():
    X, rows = texts(n_rows=80, n_labels=8)
    model = ll.PfastreXML(**SETTINGS).fit(X, rows)
    batch = model.top_k(X)
    for i in range(0, 80, 9):
        alone = model.top_k(X[[i]])
        np.testing.assert_array_equal(alone.labels[0], batch.labels[i])
        np.testing.assert_array_equal(alone.scores[0], batch.scores[i])
    assert model.top_k(X[:0]).labels.shape == (0, 5)


def test_progress_is_told_and_its_errors_stop_the_growing():
    X, rows = texts(n_labels=6)
    told = []
    ll.PfastreXML(**SETTINGS).fit(X, rows, progress=told.append)
    assert told == sorted(told)
    assert told[-1] == 1.0

    def refuse(share):
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        ll.PfastreXML(**SETTINGS).fit(X, rows, progress=refuse)


@pytest.mark.parametrize(
    ("name", "value"),
    [("children", [[0, 1]]), ("place", [9999]), ("leaf_indices", [99]), ("weight_indptr", [0, 5])],
)
def test_a_damaged_tree_is_refused(name, value):
    X, rows = texts(n_labels=6)
    model = ll.PfastreXML(**SETTINGS).fit(X, rows)
    array = getattr(model.trees_[1], name)
    damaged = array.copy()
    damaged[-len(value) :] = value
    setattr(model.trees_[1], name, damaged if name != "weight_indptr" else np.array(value, array.dtype))
    with pytest.raises(ValueError, match="must"):
        model.top_k(X)


def test_settings_are_checked_again_when_the_model_is_asked():
    model = ll.PfastreXML(n_trees=1, random_state=1).fit([[1.0, 0.0], [0.0, 1.0]], [[0], [1]])
    for change, message in (
        ({"alpha": 5}, "alpha must be at least 0 and at most 1"),
        ({"gamma": None}, "gamma must be"),
    ):
        with pytest.raises(ValueError, match=message):
            clone_with(model, change).top_k([[1.0, 0.0]], k=1)


def clone_with(model, change):
    return copy.deepcopy(model).set_params(**change)
