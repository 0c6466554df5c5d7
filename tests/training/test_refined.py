"""Refined labels: which rows train them, what they are worth, and that they go wherever a model goes."""

import importlib
import math
import pickle

import numpy as np
import pytest
import scipy.sparse as sp

import longleaf as ll
from longleaf import _core
from longleaf.calibration import fit_curve
from longleaf.datasets import make_hierarchy
from longleaf.explain import explain_row
from longleaf.metrics import calibration, evaluate
from longleaf.search.candidates import Candidates
from longleaf.search.score_map import LIMIT, curve_at
from longleaf.training.data import held_out_rows, is_trained_twice
from longleaf.training.refined import GROUP, refined_tree
from longleaf.training.run import run
from tests.helpers import refined as helpers


def data(n=1500, labels=300, seed=1):
    return make_hierarchy(n, 800, labels, random_state=seed)


def make_model():
    return ll.PLT(n_trees=2, max_leaf=20, arity=4, random_state=1, n_jobs=1)


@pytest.fixture(scope="module")
def model():
    return make_model().fit(*data())


def same(one, other, X):
    a, b = one.top_k(X, 5, tail=0.5), other.top_k(X, 5, tail=0.5)
    np.testing.assert_array_equal(a.labels, b.labels)
    np.testing.assert_array_equal(a.scores, b.scores)


@pytest.mark.parametrize("n", [1, 2, GROUP, GROUP + 1, 40, 333])
def test_groups_are_consecutive_labels_and_never_one_alone(n):
    tree = ll.LabelTree.complete(np.random.default_rng(1).permutation(n), arity=3, max_leaf=5)
    groups = refined_tree(tree)
    assert groups.labels.tolist() == tree.labels.tolist()
    sizes = np.diff(groups.first_child)[np.unique(groups.parent[groups.label >= 0])]
    assert sizes.max() <= GROUP
    assert sizes.min() >= min(n, 2)


def test_a_group_has_the_rows_that_hold_or_rank_its_labels():
    tree = refined_tree(ll.LabelTree.flat(np.arange(20)))
    Y = sp.csr_array(np.eye(20, dtype=np.float32)[[0, 19, 5]])
    ranked = np.array([[0, 1], [3, 19], [-1, -1]], np.int32)
    indptr, rows = _core.ranked_rows(
        Y.indptr.astype(np.int64),
        Y.indices.astype(np.int32),
        20,
        ranked.ravel(),
        tree.first_child,
        tree.label,
    )
    held = {v: rows[indptr[v] : indptr[v + 1]].tolist() for v in range(tree.n_nodes)}
    leaf = {int(label): node for node, label in enumerate(tree.label) if label >= 0}
    assert held[0] == []
    assert held[tree.parent[leaf[0]]] == [0, 1, 2]
    assert held[tree.parent[leaf[19]]] == [1]
    assert [held[leaf[label]] for label in (0, 1, 5, 19)] == [[0], [], [2], [1]]


def test_the_probabilities_of_a_trained_model_are_those_of_a_brute_force(model):
    X = data()[0][:6]
    expected = helpers.by_brute_force(model, sp.csr_array(X))
    found = model.predict_proba(X)
    np.testing.assert_allclose(found, expected, rtol=5e-3, atol=1e-6)
    assert ((found > 0).sum(axis=1) >= 100).all()


def test_refined_labels_are_better_and_can_be_believed():
    X, Y = data(5500, 400)
    X, Y, X_test, Y_test = X[:4000], Y[:4000], X[4000:], Y[4000:]
    trees, both = (ll.PLT(random_state=1, refine=refine).fit(X, Y) for refine in (False, True))
    q = ll.inverse_propensity(Y)
    scores = [evaluate(Y_test, one.top_k(X_test, 5), inverse_propensity=q, k=5) for one in (trees, both)]
    assert scores[1]["psp@5"] > scores[0]["psp@5"]
    eces = [calibration(Y_test, one.top_k(X_test, 5), k=5).ece for one in (trees, both)]
    assert eces[1] < min(4.0, eces[0])


def test_small_data_presets_and_refine_false_have_trees_alone():
    X, Y = data()
    assert ll.PLT(n_trees=1, random_state=1).fit(X[:400], Y[:400]).refined_ is None
    assert ll.PLT(n_trees=1, refine=False, random_state=1).fit(X, Y).refined_ is None
    assert ll.PLT.paper().refine is False
    with pytest.raises(ValueError, match="refine must be"):
        ll.PLT(refine="yes").fit(X, Y)


def test_threads_saving_and_pickling_change_no_bit(model, tmp_path):
    X, Y = data()
    threads = ll.PLT(n_trees=2, max_leaf=20, arity=4, random_state=1, n_jobs=3).fit(X, Y)
    same(model, threads, X)
    model.save(tmp_path / "m.ll")
    same(model, ll.load(tmp_path / "m.ll", verify=True), X)


def test_rows_that_are_the_only_ones_of_a_label_are_never_kept_from_training():
    _, Y = data(2000, 900)
    Y = sp.csr_array(Y)
    held = held_out_rows(Y, 1)
    assert 0 < held.sum() <= 200
    counts = np.bincount(Y.indices, minlength=900)
    assert ((counts > 0) == (np.bincount(Y[~held].indices, minlength=900) > 0)).all()
    assert not held_out_rows(Y[:400], 1).any()
    assert is_trained_twice(2000)
    assert not is_trained_twice(40_000)


def test_all_labels_have_classifiers_and_counts_are_those_of_all_rows(model):
    X, Y = data()
    counts = np.bincount(sp.csr_array(Y).indices, minlength=300)
    assert model.label_counts_.tolist() == counts.tolist()
    assert model.n_rows_ == X.shape[0]
    assert sorted(model.refined_.tree.labels) == np.flatnonzero(counts).tolist()


def test_an_explanation_adds_up_to_the_probability(model):
    X = data()[0][:20]
    top = model.top_k(X, 3)
    for row in range(20):
        for label, probability in zip(top.labels[row], top.probabilities[row], strict=True):
            found = explain_row(model, X, int(label), row)
            assert math.exp(found.log_probability) == pytest.approx(probability, rel=1e-3)
            change = found.log_probability - found.log_baseline
            assert found.contributions.sum() == pytest.approx(change, abs=1e-4)
            assert sum(level.change for level in found.levels) == pytest.approx(change, abs=1e-4)


def test_models_go_on_learning_with_their_refined_labels():
    X, Y = data(1200)
    more, labels = data(300, seed=5)
    wider = sp.hstack([sp.csr_array(labels), sp.csr_array(np.ones((300, 1), np.float32))]).tocsr()
    model = ll.PLT(n_trees=2, max_leaf=20, arity=4, random_state=1, n_jobs=1).fit(X, Y)
    before = model.refined_.weights["bias"].copy()
    model.partial_fit(more, wider)
    assert 300 in model.refined_.tree.labels
    assert len(model.refined_.weights["bias"]) > len(before)
    assert (model.top_k(more, 3).labels == 300).any()
    model.remove_labels([300, 5])
    assert not np.isin(model.refined_.tree.labels, [300, 5]).any()
    assert not np.isin(model.top_k(more, 20).labels, [300, 5]).any()
    model.add_labels(2)
    assert model.predict_proba(more[:2]).shape == (2, model.n_labels_)
    np.testing.assert_allclose(
        model.predict_proba(more[:2]),
        helpers.by_brute_force(model, sp.csr_array(more[:2])),
        rtol=5e-3,
        atol=1e-6,
    )


def test_a_refit_of_some_labels_leaves_the_other_groups_as_they_are():
    X, Y = data()
    model = ll.PLT(n_trees=1, max_leaf=20, arity=4, random_state=1, n_jobs=1).fit(X, Y)
    before = helpers.margins(model, X)
    model.refit(X, Y, [7])
    after = helpers.margins(model, X)
    tree = model.refined_.tree
    leaf = {int(label): node for node, label in enumerate(tree.label) if label >= 0}
    group = tree.parent[leaf[7]]
    others = [label for label, node in leaf.items() if tree.parent[node] != group]
    np.testing.assert_array_equal(before[:, others], after[:, others])


def test_a_killed_training_has_the_same_refined_labels(tmp_path):
    X, Y = data()
    whole = make_model().fit(X, Y)

    def stop(share):
        if share > 0.93:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        make_model().fit(X, Y, checkpoint=tmp_path / "kept", progress=stop)
    same(whole, make_model().fit(X, Y, checkpoint=tmp_path / "kept"), X)


def test_training_within_a_limit_of_memory_refines_to_the_same_bits(tmp_path):
    X, Y = data()
    model = ll.PLT(n_trees=2, max_leaf=20, arity=4, random_state=1, n_jobs=1)
    limited = ll.PLT(**model.get_params()).fit(X, Y, memory="2G", scratch=tmp_path)
    same(model.fit(X, Y), limited, X)


def test_the_curve_is_the_rising_one_that_is_most_likely():
    rng = np.random.default_rng(1)
    z = rng.uniform(-5, 5, 20_000)
    truth = rng.random(len(z)) < 1 / (1 + np.exp(-(0.5 * z - 1)))
    points = fit_curve(z, truth)
    assert (np.diff(points) > 0).all()
    for place in (-4.0, 0.0, 4.0):
        assert curve_at(points, place) == pytest.approx(0.5 * place - 1, abs=0.3)
    assert curve_at(points, LIMIT) - curve_at(points, 5.5) == pytest.approx(LIMIT - 5.5, rel=0.01)


def test_little_to_learn_from_changes_nothing():
    assert fit_curve(np.zeros(10), np.zeros(10, bool)).tolist() == [[-LIMIT, LIMIT]] * 2
    found = Candidates(*np.zeros((2, 0), np.int64), *np.zeros((2, 0), np.float32), True)
    assert len(found.rows) == 0


def test_dask_refines_to_the_same_bits():
    distributed = pytest.importorskip("distributed")
    spread = importlib.import_module("longleaf.distributed")
    X, Y = data()
    weight = np.random.default_rng(1).uniform(0.5, 2, X.shape[0])
    cluster = distributed.LocalCluster(
        n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None
    )
    with cluster, distributed.Client(cluster) as client:
        model = make_model().fit(X, Y, client=client)
        weighted = spread.fit(make_model(), X, Y, weight, client=client, partitions=3)
    same(model, make_model().fit(X, Y), X)
    same(weighted, make_model().fit(X, Y, weight), X)
    assert weighted.calibration_.slope == make_model().fit(X, Y, weight).calibration_.slope


def test_trees_that_are_there_can_be_refined_later():
    X, Y = data(3000)
    trees = ll.PLT(n_trees=2, max_leaf=20, arity=4, refine=False, random_state=1, n_jobs=1).fit(
        X[:2000], Y[:2000]
    )
    test = X[2500:], Y[2500:]
    before = calibration(test[1], trees.top_k(test[0], 5), k=5).ece
    with pytest.raises(ValueError, match="X_held_out must have"):
        trees.refine_labels(X[:2000], Y[:2000], X[2000:2500, :5], Y[2000:2500])
    assert trees.refined_ is None
    trees.refine_labels(X[:2000], Y[:2000], X[2000:2500], Y[2000:2500])
    assert calibration(test[1], trees.top_k(test[0], 5), k=5).ece < before
    expected = helpers.by_brute_force(trees, sp.csr_array(X[:5]))
    np.testing.assert_allclose(trees.predict_proba(X[:5]), expected, rtol=5e-3, atol=1e-6)


def test_no_rows_get_no_answers(model):
    X, _ = data()
    assert model.top_k(X[:0], 3).labels.shape == (0, 3)
    assert model.predict_proba(X[:0]).shape == (0, 300)
    assert model.predict(X[:0]).shape == (0, 300)


def test_a_training_that_fails_leaves_no_model(model, monkeypatch):
    X, Y = data()
    broken = ll.PLT(**model.get_params()).fit(X, Y)
    trained = []

    def run_once(*args, **options):
        if trained:
            raise KeyboardInterrupt
        trained.append(run(*args, **options))
        return trained[0]

    monkeypatch.setattr("longleaf.estimator.run", run_once)
    with pytest.raises(KeyboardInterrupt):
        broken.fit(X, Y)
    assert not broken.__sklearn_is_fitted__()
    assert broken.refined_ is None


def test_rows_that_teach_nothing_leave_trees_alone():
    X, Y = data()
    same_label = ll.PLT(n_trees=1, random_state=1).fit(X, [[0]] * X.shape[0])
    assert same_label.refined_ is None
    assert same_label.calibration_ is None
    assert same_label.top_k(X[:1], 1).scores[0, 0] > 0.99
    weight = held_out_rows(sp.csr_array(Y), 1).astype(
        float
    )  # all that counts is kept from the first training
    assert ll.PLT(n_trees=1, random_state=1).fit(X, Y, weight).top_k(X[:3], 1).labels.shape == (3, 1)
    single = [[i] for i in range(780)] + [[i] for i in range(20)]  # at most 20 rows can be kept
    assert ll.PLT(n_trees=1, random_state=1).fit(X[:800], single).calibration_ is None


def test_a_row_without_features_is_explained_by_nothing(model):
    X = sp.csr_matrix((1, 800), dtype=np.float32)
    for label in model.top_k(X, 20).labels[0].tolist():
        found = explain_row(model, X, label)
        assert found.log_probability == pytest.approx(found.log_baseline, abs=1e-6)


def test_asking_leaves_the_pickle_as_it_is():
    X, Y = data()
    model = ll.PLT(n_trees=1, random_state=1).fit(X, Y)
    before = pickle.dumps(model)
    model.top_k(X[:5], 2)
    assert pickle.dumps(model) == before
    same(model, pickle.loads(before), X)


def test_curves_of_a_model_that_do_not_rise_are_an_error(model, tmp_path):
    model.save(tmp_path / "m.ll")
    path = tmp_path / "m.ll" / "calibration" / "evidence.npy"
    np.save(path, np.array([-14.0, 0.0, 14.0, 1.0, 1.0, 1.0]))
    with pytest.raises(ll.ModelError, match="evidence must rise between"):
        ll.load(tmp_path / "m.ll")
