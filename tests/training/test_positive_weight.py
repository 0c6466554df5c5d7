"""Weights of positive rows per row and node, against products taken label by label."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

import longleaf as ll
from longleaf.datasets import lose_labels
from longleaf.training.positive_weight import inverse_priors, positive_factors, relevance_estimates
from longleaf.training.solver import node_rows
from tests import reference
from tests.helpers.training import TIGHT, WHOLE, fit_tree, node_problems, texts
from tests.reference import parents

COSTS = {"log": 16.0, "squared-hinge": 1.0}


def indicator(rows, n_labels):
    return np.array([[label in row for label in range(n_labels)] for row in rows], np.float32)


def drawn_labels(n_rows=60, n_labels=13, seed=0, share=0.2):
    random = np.random.default_rng(seed)
    return sp.csr_array((random.random((n_rows, n_labels)) < share).astype(np.float32))


def slow_estimates(tree, Y, worth):
    """Give E[z] and the highest worth by (node, row): up from every leaf, one label at a time."""
    parent, found = parents(tree), {}
    for row, indicator in enumerate(Y.toarray()):
        found[0, row] = []
        for leaf, label in enumerate(tree.label):
            node = leaf
            while label >= 0 and indicator[label] and node > 0:
                found.setdefault((node, row), []).append(worth[label])
                node = parent[node]
    return {
        place: (1 - np.prod([1 - q for q in noted]), max(noted)) if place[0] else (1, 1)
        for place, noted in found.items()
    }


TREES = {
    "flat": ll.LabelTree.flat(range(13)),
    "binary": ll.LabelTree.complete(range(13), arity=2, max_leaf=1),
    "wide": ll.LabelTree.complete(range(13), arity=3, max_leaf=4),
    "leaves on all levels": ll.LabelTree.huffman(range(13), 2.0 ** np.arange(13)),
    "without some labels": ll.LabelTree.complete([1, 5, 3, 12, 9], arity=2, max_leaf=2),
}


@pytest.mark.parametrize("name", TREES)
def test_estimates_are_products_over_the_noted_labels_in_the_order_of_node_rows(name):
    tree, Y = TREES[name], drawn_labels()
    worth = np.random.default_rng(1).uniform(1, 9, 13)
    indptr, rows = node_rows(tree, Y)
    places = list(zip(np.repeat(np.arange(tree.n_nodes), np.diff(indptr)), rows, strict=True))
    slow = slow_estimates(tree, Y, worth)
    assert set(places) == set(slow)
    want = np.array([slow[place] for place in places])
    estimate, most = relevance_estimates(tree, Y, worth)
    np.testing.assert_allclose(estimate, want[:, 0], rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(most, want[:, 1])
    clipped = np.clip(want[:, 0], 1, want[:, 1])
    np.testing.assert_allclose(positive_factors(tree, Y, worth), 2 * clipped - 1, rtol=1e-6)


def test_a_case_by_hand():
    tree = ll.LabelTree.complete(range(4), arity=2, max_leaf=2)  # nodes 0; 1, 2; 3 to 6 with labels 0 to 3
    worth = np.array([2.0, 3.0, 4.0, 1.0])
    Y = sp.csr_array([[1, 1, 0, 0], [0, 1, 1, 0], [0, 0, 1, 1]])
    factors = [
        *[1, 1, 1],  # the root
        *[1, 5],  # labels 0, 1: rows 0 (both: 1 - (-1)(-2) = -1, clipped to 1) and 1 (label 1 alone: 3)
        *[7, 1],  # labels 2, 3: rows 1 (label 2 alone: 4) and 2 (both: 1 - (-3)(0) = 1)
        *[3, 5, 5, 7, 7, 1],  # the leaves
    ]
    assert positive_factors(tree, Y, worth).tolist() == factors


def test_three_labels_are_clipped_to_the_highest_worth():
    tree = ll.LabelTree.complete(range(6), arity=2, max_leaf=3)
    Y = sp.csr_array([[1, 1, 1, 0, 0, 0]])
    estimate, most = relevance_estimates(tree, Y, np.full(6, 5.0))
    assert (estimate[1], most[1]) == (pytest.approx(1 + 4**3), 5)
    assert positive_factors(tree, Y, np.full(6, 5.0))[1] == 9


@pytest.mark.parametrize(("n_labels", "factor"), [(1200, 1), (1201, 17)])
def test_a_row_with_very_many_labels_does_not_overflow(n_labels, factor):
    below_one_node = np.concatenate([[-1, 0], np.ones(n_labels, int), [0]])
    tree = ll.LabelTree.from_parents(below_one_node, np.arange(-2, n_labels + 1).clip(-1))
    Y, worth = sp.csr_array(np.ones((1, n_labels + 1))), np.full(n_labels + 1, 9.0)
    assert positive_factors(tree, Y, worth)[1] == factor
    worth[0] = 1.0  # always noted: whatever else, the row truly has a label below
    assert positive_factors(tree, Y, worth)[1] == 1
    assert relevance_estimates(tree, Y, worth)[0][1] == 1


def test_the_estimate_is_unbiased_before_it_is_clipped():
    tree = ll.LabelTree.complete(range(4), arity=2, max_leaf=2)
    complete = np.repeat(np.array([[1, 1, 0, 1]]), 40000, axis=0)
    p = np.array([0.4, 0.6, 0.5, 0.8])
    noted = lose_labels(complete, p, random_state=1)
    indptr, _ = node_rows(tree, sp.csr_array(noted))
    estimate, _ = relevance_estimates(tree, sp.csr_array(noted), 1 / p)
    for node, truth in ((1, 1), (2, 1), (3, 1), (4, 1), (5, 0), (6, 1)):
        total = estimate[indptr[node] : indptr[node + 1]].sum()
        assert total / len(complete) == pytest.approx(truth, abs=0.02)


# ------------------------------------------------------------ trained trees


def weighted_minimum(loss, x, y, cost):
    """Give scikit-learn's weights and bias; its LIBLINEAR takes a cost per row."""
    tight = {"C": 1.0, "tol": 1e-8, "max_iter": 10000}
    solver = (
        LogisticRegression(solver="liblinear", **tight) if loss == "log" else LinearSVC(dual=False, **tight)
    )
    solver.fit(x, y, sample_weight=cost)
    return solver.coef_[0], float(solver.intercept_[0])


def assert_minima(model, X, rows, loss, cost_of):
    """Check every node of a tree against scikit-learn, with costs by (node, rows, sides)."""
    checked = 0
    for node, held, x, y, w, bias in node_problems(model, X, rows):
        if len(set(y)) < 2:
            continue
        cost = cost_of(node, held, y)
        best = reference.objective(loss, x, y, *weighted_minimum(loss, x, y, cost), cost)
        assert reference.objective(loss, x, y, w, bias, cost) == pytest.approx(best, rel=1e-4), node
        checked += 1
    assert checked > 10


@pytest.mark.parametrize("loss", COSTS)
def test_propensity_weighs_each_positive_row_of_a_node_by_the_labels_noted_below(loss):
    X, rows = texts(n_labels=11)
    tree = ll.LabelTree.complete(range(11), arity=2, max_leaf=3)
    model = fit_tree(X, rows, tree, loss=loss, positive_weight="propensity", propensity=(0.6, 2.6), **TIGHT)
    worth = np.array(reference.inverse_propensity(rows, 11, 0.6, 2.6))
    slow = slow_estimates(model.trees_[0], sp.csr_array(indicator(rows, 11)), worth)

    def cost_of(node, held, y):
        factor = [
            2 * np.clip(slow[node, row][0], 1, slow[node, row][1]) - 1 if side > 0 else 1
            for row, side in zip(held, y, strict=True)
        ]
        return COSTS[loss] * np.array(factor)

    assert_minima(model, X, rows, loss, cost_of)


@pytest.mark.parametrize("loss", COSTS)
def test_inverse_prior_weighs_by_the_rows_of_a_node_for_one_positive(loss):
    X, rows = texts(n_labels=11)
    tree = ll.LabelTree.complete(range(11), arity=2, max_leaf=3)
    model = fit_tree(X, rows, tree, loss=loss, positive_weight="inverse-prior", **TIGHT)
    assert_minima(
        model, X, rows, loss, lambda _, held, y: COSTS[loss] * np.where(y > 0, len(held) / np.sum(y > 0), 1)
    )


def test_inverse_priors_multiply_to_that_of_the_label():
    tree, Y = TREES["leaves on all levels"], drawn_labels(n_rows=300)
    weight = inverse_priors(tree, np.diff(node_rows(tree, Y)[0]))
    counts, parent = np.asarray(Y.sum(axis=0)), parents(tree)
    for leaf in np.flatnonzero(tree.label >= 0):
        product, node = 1.0, leaf
        while node > 0:
            product, node = product * weight[node], parent[node]
        assert product == pytest.approx(300 / counts[tree.label[leaf]])


def test_a_flat_tree_by_propensity_is_br_by_propensity():
    X, rows = texts(n_labels=11)
    settings = {
        "C": 1.0,
        "loss": "squared-hinge",
        "positive_weight": "propensity",
        "bias": 1.0,
        "random_state": 1,
        **WHOLE,
    }
    one = ll.PLT(tree=ll.LabelTree.flat(range(11)), n_trees=1, C_scale="none", **settings).fit(X, rows)
    other = ll.BR(**settings).fit(X, rows)
    np.testing.assert_allclose(one.weights_[0]["bias"], other.weights_[0]["bias"], atol=0.02)
    np.testing.assert_array_equal(one.top_k(X, 1).labels, other.top_k(X, 1).labels)


@pytest.mark.parametrize("name", ["propensity", "inverse-prior"])
def test_a_weighted_tree_is_the_same_by_any_threads_and_after_saving(tmp_path, name):
    X, rows = texts(n_rows=300, n_labels=11)
    settings = {"arity": 3, "max_leaf": 2, "n_trees": 2, "random_state": 1, "positive_weight": name}
    one, other = (ll.PLT(n_jobs=n_jobs, **settings).fit(X, rows) for n_jobs in (1, 2))
    one.save(tmp_path / "model.ll")
    again = ll.load(tmp_path / "model.ll")
    assert again.positive_weight == clone(one).positive_weight == name
    assert again.origin_["settings"]["positive_weight"] == name
    want = one.top_k(X, 3)
    for model in (other, again, pickle.loads(pickle.dumps(one))):
        np.testing.assert_array_equal(model.top_k(X, 3).labels, want.labels)
        np.testing.assert_array_equal(model.top_k(X, 3).scores, want.scores)
    plain = ll.PLT(**(settings | {"positive_weight": 1.0})).fit(X, rows)
    rarity = [np.mean(1 / one.label_counts_[model.top_k(X, 1).labels[:, 0]]) for model in (plain, one)]
    assert rarity[1] > rarity[0]
