"""The node classifiers solve LIBLINEAR's problem, on the rows and sides that the tree gives them."""

from itertools import chain

import numpy as np
import pytest
import scipy.sparse as sp

import longleaf as ll
from longleaf.training.solver import node_rows
from tests import reference
from tests.helpers import handmade
from tests.helpers.data import shared
from tests.helpers.training import TIGHT, fit_tree, liblinear, node_problems, texts, unit_rows

pytestmark = pytest.mark.native

LOSSES = ["log", "squared-hinge"]
C = {"log": 16.0, "squared-hinge": 1.0}
FAMILIES = {
    "two siblings": (ll.LabelTree.flat(range(2)), 2),
    "eight siblings": (ll.LabelTree.flat(range(8)), 8),
    "eleven siblings": (ll.LabelTree.flat(range(11)), 11),
    "packed binary families": (ll.LabelTree.complete(range(11), arity=2, max_leaf=2), 11),
    "two bands of binary subtrees": (ll.LabelTree.complete(range(20), arity=2, max_leaf=1), 20),
    "ragged bands": (ll.LabelTree.huffman(range(20), 1.2 ** np.arange(20)), 20),
    "a chain": (ll.LabelTree.huffman(range(8), 2.0 ** np.arange(8)), 8),
}


def two_sided(problems):
    """Leave out nodes whose rows are all on one side: LIBLINEAR needs both."""
    return [problem for problem in problems if len(set(problem[3])) == 2]


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("family", FAMILIES)
def test_a_tight_tolerance_reaches_liblinears_minimum(family, loss):
    tree, n_labels = FAMILIES[family]
    X, rows = texts(n_labels=n_labels)
    model = fit_tree(X, rows, tree, loss=loss, **TIGHT)
    problems = two_sided(node_problems(model, X, rows))
    assert len(problems) >= n_labels - 2
    for node, _, x, y, w, bias in problems:
        ours = reference.objective(loss, x, y, w, bias, C[loss])
        theirs = reference.objective(loss, x, y, *liblinear(loss, x, y, C[loss]), C[loss])
        assert abs(ours - theirs) <= 1e-4 * theirs, f"node {node}: {ours} against {theirs}"


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("family", FAMILIES)
def test_the_default_tolerance_is_no_more_than_a_hundredth_worse_than_liblinears(family, loss):
    tree, n_labels = FAMILIES[family]
    X, rows = texts(n_labels=n_labels)
    model = fit_tree(X, rows, tree, loss=loss)
    for node, _, x, y, w, bias in two_sided(node_problems(model, X, rows)):
        ours = reference.objective(loss, x, y, w, bias, C[loss])
        theirs = reference.objective(loss, x, y, *liblinear(loss, x, y, C[loss], eps=0.1), C[loss])
        assert ours <= 1.01 * theirs, f"node {node}: {ours} against {theirs}"


@pytest.mark.parametrize("loss", LOSSES)
def test_rows_beyond_the_cache_are_solved_as_well(loss):
    """They are laid and visited in another order than the rows of small families."""
    n_labels = 17  # more than there are lanes
    rng = np.random.default_rng(0)
    topics = rng.dirichlet(np.full(500, 0.05), n_labels)
    rows = [sorted(set(rng.integers(n_labels, size=2).tolist())) for _ in range(2200)]
    counts = [rng.poisson(200 * topics[labels].mean(axis=0)) for labels in rows]
    X = sp.csr_array((np.log1p(counts) + rng.uniform(0.1, 0.5, (2200, 500))).astype(np.float32))
    assert X.nnz > 1 << 20
    model = fit_tree(X, rows, ll.LabelTree.flat(range(n_labels)), loss=loss)
    for node, _, x, y, w, bias in two_sided(node_problems(model, X, rows))[::5]:
        ours = reference.objective(loss, x, y, w, bias, C[loss])
        best = reference.objective(loss, x, y, *liblinear(loss, x, y, C[loss], eps=1e-3), C[loss])
        assert ours <= 1.01 * best, f"node {node}: {ours} against {best}"


@pytest.mark.parametrize("loss", LOSSES)
def test_real_rows_give_liblinears_solutions(loss):
    X, Y = ll.load_xmlc(shared("delicious/delicious_train.txt"))
    X, Y = X[:600], sp.csr_array(Y[:600])[:, :40]
    rows = [Y.indices[Y.indptr[i] : Y.indptr[i + 1]].tolist() for i in range(600)]
    tree = ll.LabelTree.complete(np.unique(Y.indices), arity=4, max_leaf=12)
    by_tolerance = {}
    for name, settings in (("tight", TIGHT), ("default", {})):
        model = fit_tree(X, rows, tree, loss=loss, **settings)
        by_tolerance[name] = two_sided(node_problems(model, X, rows))
    for tight, default in list(zip(*by_tolerance.values(), strict=True))[::4]:
        _, _, x, y, w, bias = tight
        best = reference.objective(loss, x, y, *liblinear(loss, x, y, C[loss]), C[loss])
        assert abs(reference.objective(loss, x, y, w, bias, C[loss]) - best) <= 1e-4 * best
        theirs = reference.objective(loss, x, y, *liblinear(loss, x, y, C[loss], eps=0.1), C[loss])
        assert reference.objective(loss, x, y, *default[4:], C[loss]) <= 1.01 * theirs


@pytest.mark.parametrize("loss", LOSSES)
def test_positive_weight_is_liblinears_class_weight(loss):
    X, rows = texts(n_labels=5)
    model = fit_tree(X, rows, ll.LabelTree.flat(range(5)), loss=loss, positive_weight=7.0, **TIGHT)
    for _, _, x, y, w, bias in node_problems(model, X, rows):
        cost = np.where(y > 0, 7.0, 1.0) * C[loss]
        theirs = reference.objective(loss, x, y, *liblinear(loss, x, y, C[loss], "-B 1 -w1 7"), cost)
        assert reference.objective(loss, x, y, w, bias, cost) == pytest.approx(theirs, rel=1e-4)


@pytest.mark.parametrize("loss", LOSSES)
def test_a_row_of_weight_three_counts_as_three_rows(loss):
    X, rows = texts(n_labels=5)
    weight = np.random.default_rng(1).integers(0, 4, X.shape[0])
    tree = ll.LabelTree.complete(range(5), max_leaf=2)
    model = fit_tree(X, rows, tree, loss=loss, sample_weight=weight, **TIGHT)
    for _, held, x, y, w, bias in node_problems(model, X, rows):
        times = weight[held]
        if len(set(y[times > 0])) < 2:
            continue
        repeated = liblinear(loss, np.repeat(x, times, axis=0), np.repeat(y, times), C[loss])
        theirs = reference.objective(loss, x, y, *repeated, times * C[loss])
        assert reference.objective(loss, x, y, w, bias, times * C[loss]) == pytest.approx(theirs, rel=1e-4)


@pytest.mark.parametrize("scale", ["log", "linear"])
def test_c_grows_as_nodes_have_fewer_rows(scale):
    X, rows = texts(n_labels=8)
    tree = ll.LabelTree.complete(range(8), max_leaf=2)
    model = fit_tree(X, rows, tree, loss="log", C=2.0, C_scale=scale, **TIGHT)
    for node, held, x, y, w, bias in two_sided(node_problems(model, X, rows)):
        ratio = len(rows) / len(held)
        cost = 2.0 * (ratio if scale == "linear" else 1 + np.log(ratio))
        theirs = reference.objective("log", x, y, *liblinear("log", x, y, cost), cost)
        assert reference.objective("log", x, y, w, bias, cost) == pytest.approx(theirs, rel=1e-4), node


@pytest.mark.parametrize("loss", LOSSES)
def test_no_bias_feature_is_no_bias(loss):
    X, rows = texts(n_labels=5)
    model = fit_tree(X, rows, ll.LabelTree.flat(range(5)), loss=loss, bias=0.0, **TIGHT)
    assert (model.weights_[0]["bias"] == 0).all()
    for _, _, x, y, w, _ in node_problems(model, X, rows):
        theirs = reference.objective(loss, x, y, liblinear(loss, x, y, C[loss], "")[0], 0.0, C[loss])
        assert reference.objective(loss, x, y, w, 0.0, C[loss]) == pytest.approx(theirs, rel=1e-4)


def test_a_bias_feature_of_two_is_a_feature_of_two():
    X, rows = texts(n_labels=4)
    tree = ll.LabelTree.flat(range(4))
    model = fit_tree(X, rows, tree, bias=2.0, **TIGHT)
    with_two = sp.csr_array(np.hstack([unit_rows(X), np.full((X.shape[0], 1), 2.0)]))
    other = fit_tree(with_two, rows, tree, bias=0.0, normalize=False, **TIGHT)
    np.testing.assert_allclose(
        2 * handmade.decode(other.weights_[0], X.shape[1] + 1)[-1], model.weights_[0]["bias"], atol=0.02
    )


@pytest.mark.parametrize("loss", LOSSES)
def test_the_threshold_drops_exactly_the_small_weights(loss):
    X, rows = texts(n_labels=11)
    whole = fit_tree(X, rows, ll.LabelTree.flat(range(11)), loss=loss)
    pruned = fit_tree(X, rows, ll.LabelTree.flat(range(11)), loss=loss, threshold=0.3)
    dense = handmade.decode(whole.weights_[0], X.shape[1])
    dropped = np.abs(dense) < np.float32(0.3)
    assert dropped[:, 1:].any()
    assert not dropped[:, 1:].all()
    np.testing.assert_array_equal(
        handmade.decode(pruned.weights_[0], X.shape[1]), np.where(dropped, 0, dense)
    )
    np.testing.assert_array_equal(pruned.weights_[0]["bias"], whole.weights_[0]["bias"])


def test_eight_bits_keep_every_weight_within_a_few_percent():
    X, rows = texts(n_labels=11)
    settings = {"threshold": 0.1}
    exact = fit_tree(X, rows, ll.LabelTree.flat(range(11)), **settings)
    coded = fit_tree(X, rows, ll.LabelTree.flat(range(11)), weight_bits=8, **settings)
    a, b = (handmade.decode(model.weights_[0], X.shape[1]) for model in (exact, coded))
    np.testing.assert_array_equal(a == 0, b == 0)
    np.testing.assert_allclose(b, a, rtol=0.03)


@pytest.mark.parametrize("family", FAMILIES)
def test_nodes_hold_the_rows_of_the_reference(family):
    tree, n_labels = FAMILIES[family]
    X, rows = texts(n_labels=n_labels)
    Y = sp.csr_array(
        (
            np.ones(sum(map(len, rows))),
            (np.repeat(np.arange(len(rows)), [len(r) for r in rows]), list(chain.from_iterable(rows))),
        ),
        shape=(X.shape[0], n_labels),
    )
    indptr, held = node_rows(tree, Y)
    assert held[indptr[0] : indptr[1]].tolist() == list(range(len(rows)))
    for node, (_, positive) in reference.node_targets(tree, rows).items():
        assert held[indptr[node] : indptr[node + 1]].tolist() == positive


@pytest.mark.parametrize("loss", LOSSES)
def test_labels_that_all_rows_or_no_features_have_still_train(loss):
    X = sp.csr_array((6, 3), dtype=np.float32)
    model = ll.PLT(n_trees=1, loss=loss, bias=1.0, random_state=1)
    model.fit(X, [[0], [0, 1], [0], [0, 1], [0], [0, 1]])
    probability = model.probability(X[:1], [0, 0], [0, 1])
    assert probability[0] > 0.9
    assert 0.1 < probability[1] < 0.7


def test_more_than_sixteen_million_features_keep_their_weights():
    X, rows = texts(n_labels=11)
    wide = 2**24 + 1000
    columns = np.linspace(0, wide - 1, X.shape[1]).astype(np.int64)
    spread = sp.csr_array((X.data, columns[X.indices], X.indptr), shape=(X.shape[0], wide))
    tree = ll.LabelTree.flat(range(11))
    narrow_top = fit_tree(X, rows, tree).top_k(X, k=11)
    wide_top = fit_tree(spread, rows, tree).top_k(spread, k=11)
    np.testing.assert_array_equal(narrow_top.labels, wide_top.labels)
    np.testing.assert_array_equal(narrow_top.scores, wide_top.scores)


def test_rows_that_rest_do_not_have_all_others_visited_once_more():
    # a sum of two rows of its own side has nothing to do once these have moved: it rests in the second epoch
    pairs = np.kron(np.eye(20), [[1, 0], [0, 1], [1.2, 1.2]])
    labels = np.repeat(np.eye(2)[np.arange(20) % 2], 3, axis=0)
    settings = {"loss": "squared-hinge", "C": 10.0, "bias": 0.0, "normalize": False, "tolerance": 0.5}
    model = ll.PLT(n_trees=1, random_state=1, **settings).fit(pairs, labels)
    (facts,) = model.training_
    assert facts == {"epochs": 2, "row_visits": 2 * 60, "unfinished": 0}
