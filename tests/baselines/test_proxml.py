"""ProXML reaches the minimum of its published objective; plain proximal gradient steps are the reference."""

import numpy as np
import pytest
import scipy.sparse as sp
from liblinear.liblinearutil import train
from sklearn.base import clone

import longleaf as ll
from tests.helpers import handmade
from tests.helpers.training import texts, unit_rows

SETTINGS = {"random_state": 1, "n_jobs": 1, "weight_bits": 32, "tolerance": 1e-5, "max_epochs": 20000}


def objective(x, y, w, cost):
    return np.abs(w).sum() + (cost * np.maximum(0, 1 - y * (x @ w)) ** 2).sum()


def proximal_gradient(x, y, cost, steps=4000):
    """Minimise by soft-thresholded gradient steps with Nesterov's momentum, the published way."""
    step = 1 / (2 * cost.max() * np.linalg.norm(x, 2) ** 2)
    w = z = np.zeros(x.shape[1])
    t = 1.0
    for _ in range(steps):
        gradient = -2 * x.T @ (cost * y * np.maximum(0, 1 - y * (x @ z)))
        moved = z - step * gradient
        following = np.sign(moved) * np.maximum(np.abs(moved) - step, 0)
        t, before = (1 + np.sqrt(1 + 4 * t * t)) / 2, t
        z = following + (before - 1) / t * (following - w)
        w = following
    return w


def problems(model, X, rows, bias=1.0):
    """Give label, rows with their bias feature, sides and all weights of every label."""
    tree, weights = model.trees_[0], model.weights_[0]
    W = handmade.decode(weights, X.shape[1])
    x = np.column_stack([unit_rows(X), np.full(X.shape[0], bias)])
    for node, label in enumerate(tree.label):
        if label >= 0:
            y = np.array([1.0 if label in row else -1.0 for row in rows])
            yield int(label), x, y, np.append(W[:, node], weights["bias"][node] / bias).astype(float)


@pytest.mark.native
def test_a_classifier_is_done_when_its_gap_is_within_the_tolerance():
    X, rows = texts(n_rows=150, n_features=60, n_labels=20)
    epochs = []
    for tolerance in (0.3, 0.001):
        model = ll.ProXML(C=8.0, positive_weight=1.0, **(SETTINGS | {"tolerance": tolerance})).fit(X, rows)
        assert model.training_[0]["unfinished"] == 0
        epochs.append(model.training_[0]["epochs"])
        for label, x, y, w in problems(model, X, rows):
            best = objective(x, y, proximal_gradient(x, y, np.full(150, 8.0)), 8.0)
            assert objective(x, y, w, 8.0) <= best / (1 - tolerance) + 1e-6, label
    assert epochs[0] < epochs[1]


@pytest.mark.native
def test_a_training_that_may_not_go_on_says_so(caplog):
    X, rows = texts(n_labels=3)
    model = ll.ProXML(C=64.0, tolerance=1e-6, max_epochs=2, random_state=1).fit(X, rows)
    assert model.training_[0]["unfinished"] == 3
    assert "stopped at max_epochs=2" in caplog.text


@pytest.mark.native
@pytest.mark.parametrize("positive_weight", ["propensity", 3.0])
def test_the_minimum_is_that_of_proximal_gradient_steps(positive_weight):
    X, rows = texts(n_rows=80, n_features=40, n_labels=4)
    model = ll.ProXML(C=2.0, positive_weight=positive_weight, **SETTINGS).fit(X, rows)
    q = ll.inverse_propensity(rows)
    for label, x, y, w in problems(model, X, rows):
        weight = q[label] if positive_weight == "propensity" else positive_weight
        cost = 2.0 * np.where(y > 0, weight, 1.0)
        best = objective(x, y, proximal_gradient(x, y, cost), cost)
        assert objective(x, y, w, cost) == pytest.approx(best, rel=1e-4), label


@pytest.mark.native
def test_a_row_of_weight_two_counts_twice_and_the_bias_feature_has_its_value():
    X, rows = texts(n_rows=60, n_features=30, n_labels=3)
    twice = np.arange(60) % 3 == 0
    model = ll.ProXML(positive_weight=1.0, bias=2.0, **SETTINGS).fit(X, rows, sample_weight=1.0 + twice)
    for label, x, y, w in problems(model, X, rows, bias=2.0):
        best = objective(x, y, proximal_gradient(x, y, 1.0 + twice), 1.0 + twice)
        assert objective(x, y, w, 1.0 + twice) == pytest.approx(best, rel=1e-4), label


@pytest.mark.native
def test_a_label_of_every_row_reaches_its_minimum_too():
    X, rows = texts(n_rows=60, n_features=30, n_labels=4)
    rows = [sorted({0, *row}) for row in rows]
    model = ll.ProXML(**SETTINGS).fit(X, rows)
    label, x, y, w = next(iter(problems(model, X, rows)))
    assert label == 0
    cost = np.full(60, ll.inverse_propensity(rows)[0])
    assert objective(x, y, w, cost) == pytest.approx(
        objective(x, y, proximal_gradient(x, y, cost), cost), rel=1e-3
    )


@pytest.mark.native
def test_more_than_one_chunk_of_labels_keeps_every_weight_in_its_place():
    n = 300
    X = np.eye(n, dtype=np.float32)
    model = ll.ProXML(C=4.0, random_state=1, n_jobs=2).fit(X, [[label] for label in range(n)])
    np.testing.assert_array_equal(model.top_k(X, 1).labels[:, 0], np.arange(n))


@pytest.mark.native
def test_the_model_is_sparse_saved_cloned_and_the_same_for_any_threads(tmp_path):
    X, rows = texts(n_labels=5)
    one, two = (ll.ProXML(random_state=1, n_jobs=jobs).fit(X, rows) for jobs in (1, 2))
    np.testing.assert_array_equal(one.top_k(X, 3).scores, two.top_k(X, 3).scores)
    assert np.mean(handmade.decode(one.weights_[0], X.shape[1]) == 0) > 0.5
    one.save(tmp_path / "model.ll")
    again = ll.load(tmp_path / "model.ll")
    assert isinstance(again, ll.ProXML)
    np.testing.assert_array_equal(again.top_k(X, 3, tail=1.0).labels, one.top_k(X, 3, tail=1.0).labels)
    assert clone(again).get_params() == again.get_params()


def relative_gap(x, y, w, cost):
    """Give the duality gap as a share of the objective; 2 C slack is scaled to a point of the dual."""
    dual = 2 * cost * np.maximum(0, 1 - y * (x @ w))
    dual /= max(1.0, np.abs(x.T @ (dual * y)).max())
    primal = objective(x, y, w, cost)
    return (primal - (dual - dual**2 / (4 * cost)).sum()) / primal


@pytest.mark.native
@pytest.mark.parametrize("tolerance", [0.1, 0.01, 1e-4])
@pytest.mark.parametrize("bias", [0.0, 1.0])
def test_the_gap_at_the_end_is_what_was_asked_for(tolerance, bias):
    X, rows = texts(n_rows=300, n_features=400, n_labels=12)
    settings = SETTINGS | {"tolerance": tolerance, "bias": bias}
    model = ll.ProXML(C=8.0, positive_weight=5.0, **settings).fit(X, rows)
    assert model.training_[0]["unfinished"] == 0
    tree, weights = model.trees_[0], model.weights_[0]
    W, x = handmade.decode(weights, X.shape[1]), np.column_stack([unit_rows(X), np.full(300, bias)])
    for node in np.flatnonzero(tree.label >= 0):
        y = np.array([1.0 if tree.label[node] in row else -1.0 for row in rows])
        w = np.append(W[:, node], weights["bias"][node] / (bias or 1)).astype(float)
        assert relative_gap(x, y, w, 8.0 * np.where(y > 0, 5.0, 1.0)) <= tolerance + 1e-5, tree.label[node]


@pytest.mark.native
def test_features_without_a_weight_have_none_in_liblinears_answer():
    X, rows = texts(n_rows=300, n_features=400, n_labels=6)
    model = ll.ProXML(C=1.0, positive_weight=1.0, **(SETTINGS | {"tolerance": 1e-6})).fit(X, rows)
    for label, x, y, w in problems(model, X, rows):
        answer = train(y, sp.csr_matrix(x), "-s 5 -c 1 -e 1e-7 -q")
        side = answer.get_labels()[0]  # the one that LIBLINEAR's weights are for
        best = side * np.array([answer.get_decfun_coef(f + 1) for f in range(x.shape[1])])
        assert objective(x, y, w, 1.0) == pytest.approx(objective(x, y, best, 1.0), rel=1e-7), label
        assert not best[w == 0].any(), label


def test_more_weights_than_one_block_holds_reach_the_minimum_in_turns():
    rng = np.random.default_rng(0)
    X = sp.csr_array(sp.random(2000, 1500, 0.02, random_state=rng, dtype=np.float32))
    rows = [[int(label)] for label in rng.integers(0, 2, 2000)]
    model, again = (
        ll.ProXML(C=5.0, positive_weight=1.0, **(SETTINGS | {"tolerance": 0.01, "n_jobs": jobs})).fit(X, rows)
        for jobs in (1, 2)
    )
    assert model.training_[0]["unfinished"] == 0
    np.testing.assert_array_equal(model.weights_[0]["bytes"], again.weights_[0]["bytes"])
    for label, x, y, w in problems(model, X, rows):
        assert np.count_nonzero(w) > 512, label
        assert relative_gap(x, y, w, np.full(2000, 5.0)) <= 0.01 + 1e-4, label


@pytest.mark.native
def test_a_label_of_one_row_among_many_and_one_of_no_word_reach_their_minimum():
    X, rows = texts(n_rows=120, n_features=60, n_labels=3)
    X = sp.csr_array(X.multiply(np.arange(120)[:, None] > 0))  # row 0 has no word
    rows = [[3], [4], *rows[2:]]
    model = ll.ProXML(C=2.0, positive_weight=30.0, **SETTINGS).fit(X, rows)
    for label, x, y, w in problems(model, X, rows):
        assert relative_gap(x, y, w, 2.0 * np.where(y > 0, 30.0, 1.0)) <= 2e-5, label
