"""Exact search finds the top k of a brute force over all labels, for one tree and for ensembles."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import longleaf as ll
from tests import reference
from tests.helpers import handmade
from tests.helpers.searching import (
    GAINS,
    LINKS,
    SHAPES,
    brute_force,
    check_top,
    make_gain,
    problems,
    same,
    twins,
)

pytestmark = pytest.mark.native

KS = st.sampled_from([1, 2, 5, 10, 1000])


@given(problems(), GAINS, KS, st.integers(0, 99))
def test_the_top_k_equal_a_brute_force_over_all_labels(problem, kind, k, seed):
    gain = make_gain(kind, seed, problem.n_labels)
    check_top(problem.model.top_k(problem.X, k=k, gain=gain), brute_force(problem, gain), k)


@given(problems(), st.sampled_from([0.25, 1.0, 3.0]))
def test_the_tail_dial_is_a_gain_of_inverse_propensities_to_its_power(problem, tail):
    rng = np.random.default_rng(problem.n_labels)
    problem.model.label_counts_ = rng.integers(0, 1000, problem.n_labels)
    gain = (
        ll.propensity.inverse_propensity_from_counts(problem.model.label_counts_, 1000, a=0.5, b=0.4) ** tail
    )
    top = problem.model.top_k(problem.X, k=5, tail=tail, propensity=(0.5, 0.4))
    check_top(top, brute_force(problem, gain), 5)
    same(top, problem.model.top_k(problem.X, k=5, gain=gain))


@given(problems(), KS)
def test_unit_gains_are_no_gains(problem, k):
    plain = problem.model.top_k(problem.X, k=k)
    same(plain, problem.model.top_k(problem.X, k=k, gain=np.ones(problem.n_labels)))
    same(plain, problem.model.top_k(problem.X, k=k, tail=0.0))


@given(problems(), GAINS)
def test_gains_leave_no_state_behind(problem, kind):
    before = problem.model.top_k(problem.X, k=3)
    problem.model.top_k(problem.X, k=3, gain=make_gain(kind, 1, problem.n_labels))
    problem.model.top_k(problem.X, k=3, tail=1.0)
    same(before, problem.model.top_k(problem.X, k=3))


@given(problems(), GAINS, st.integers(0, 99), st.booleans())
def test_thresholds_leave_out_what_scores_less(problem, kind, seed, per_label):
    gain = make_gain(kind, seed, problem.n_labels)
    scores = brute_force(problem, gain)
    rng = np.random.default_rng(seed)
    shape = problem.n_labels if per_label else None
    threshold = np.quantile(scores, rng.uniform(0.3, 1.0, shape)) * (rng.random(shape) < 0.8)
    near = np.isclose(scores, threshold, rtol=1e-3, atol=0) & (scores > 0)
    assume(not near.any())  # rounding decides there
    top = problem.model.top_k(problem.X, k=4, gain=gain, threshold=threshold)
    check_top(top, np.where(scores >= threshold, scores, 0.0), 4)


@given(problems(most_trees=2))
def test_a_threshold_keeps_the_score_that_it_equals_and_nothing_less(problem):
    top = problem.model.top_k(problem.X, k=3)
    for row, (label, score) in enumerate(zip(top.labels[:, 0], top.scores[:, 0], strict=True)):
        assume(score > 1e-37)
        for threshold, kept in ((score, label), (np.nextafter(score, np.float32(np.inf)), -1)):
            found = problem.model.top_k(problem.X[[row]], k=1, threshold=float(threshold))
            assert found.labels[0, 0] == kept


@given(problems(), st.integers(0, 99))
def test_probability_equals_a_brute_force_for_any_pairs(problem, seed):
    rng = np.random.default_rng(seed)
    expected = problem.label_probabilities().mean(axis=1)
    rows = rng.integers(0, problem.X.shape[0], 30)
    labels = rng.integers(0, problem.n_labels, 30)
    found = problem.model.probability(problem.X, rows, labels)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, expected[rows, labels], rtol=1e-4, atol=1e-37)


@given(problems(), GAINS, st.integers(0, 99))
def test_the_order_of_the_rows_and_their_company_do_not_matter(problem, kind, seed):
    gain = make_gain(kind, seed, problem.n_labels)
    together = problem.model.top_k(problem.X, k=3, gain=gain)
    order = np.random.default_rng(seed).permutation(problem.X.shape[0])
    shuffled = problem.model.top_k(problem.X[order], k=3, gain=gain)
    for place, row in enumerate(order):
        alone = problem.model.top_k(problem.X[[row]], k=3, gain=gain)
        for answer, at in ((shuffled, place), (alone, 0)):
            np.testing.assert_array_equal(answer.labels[at], together.labels[row])
            np.testing.assert_array_equal(answer.scores[at], together.scores[row])
        assert shuffled.evaluations[place] == together.evaluations[row]


@given(problems(), GAINS, st.integers(0, 99), st.sampled_from([1, 5, 40]), st.booleans())
def test_rows_together_get_the_bits_of_rows_alone(problem, kind, seed, k, with_threshold):
    problem = twins(problem)
    options = {"k": k, "gain": make_gain(kind, seed, problem.n_labels)}
    if with_threshold:
        found = problem.model.top_k(problem.X, **options).scores
        options["threshold"] = float(np.median(found))
    for search in ({}, {"search": "beam", "beam": 2}, {"search": "beam", "beam": 7}):
        together = problem.model.top_k(problem.X, **options, **search)
        alone = handmade.one_by_one(problem.model, problem.X, **options, **search)
        np.testing.assert_array_equal(together.labels, alone.labels)
        np.testing.assert_array_equal(together.scores.view(np.int32), alone.scores.view(np.int32))


@pytest.mark.parametrize("n_trees", [1, 3])
@pytest.mark.parametrize("options", [{}, {"search": "beam", "beam": 2}, {"ensemble": "union"}])
def test_two_threads_give_the_bits_of_one(n_trees, options):
    problem = handmade.random_problem(3, ["balanced"] * n_trees, 200, n_rows=700)
    gain = make_gain("plain", 5, 200)
    one = problem.model.top_k(problem.X, k=5, gain=gain, n_jobs=1, **options)
    two = problem.model.top_k(problem.X, k=5, gain=gain, n_jobs=2, **options)
    same(one, two)


@given(st.integers(0, 2**32), SHAPES, LINKS, st.sampled_from([1, 3, 8]), st.booleans())
def test_a_star_expands_no_node_whose_bound_lies_below_the_kth_score(seed, shape, link, k, with_gain):
    problem = handmade.random_problem(seed, [shape], 20, link)
    gain = make_gain("plain" if with_gain else "ties", seed, 20)
    found = handmade.one_by_one(problem.model, problem.X, k=k, gain=gain)
    scores = brute_force(problem, gain)
    tree, W, bias = problem.parts[0]
    bound = reference.bounds(tree, gain)
    for row, x in enumerate(problem.rows()):
        cost = reference.node_costs(link, W, bias, x)
        key = reference.search.path_products(tree, np.exp(-cost)) * bound
        known = np.sort(scores[row][scores[row] > 0])[::-1]
        kth = known[k - 1] if len(known) >= k else 0.0
        inner = np.flatnonzero(tree.label < 0)
        # within rounding of the k-th score a node may or may not be expanded
        needed = sum(np.diff(tree.first_child)[v] for v in inner if key[v] > kth * (1 + 1e-4))
        allowed = sum(np.diff(tree.first_child)[v] for v in inner if key[v] > kth * (1 - 1e-4))
        assert needed <= found.evaluations[row] <= allowed


@given(st.integers(0, 2**32), SHAPES, LINKS, st.sampled_from([1, 3, 8, 30]))
def test_the_search_takes_the_evaluations_of_algorithm_1(seed, shape, link, k):
    problem = handmade.random_problem(seed, [shape], 20, link, scale=1.0)
    gain = make_gain("plain", seed, 20)
    found = handmade.one_by_one(problem.model, problem.X, k=k, gain=gain)
    tree, W, bias = problem.parts[0]
    bound = reference.bounds(tree, gain)
    for row, x in enumerate(problem.rows()):
        cost = reference.node_costs(link, W, bias, x)
        labels, evaluations = reference.a_star(tree, cost, gain, k)
        keys = np.sort(reference.search.path_products(tree, np.exp(-cost)) * bound)
        # An inner node shares its bound with the leaf below it that has it only if that leaf is certain.
        if (np.diff(keys) <= 1e-5 * keys[1:]).any():
            continue
        assert found.evaluations[row] == evaluations
        np.testing.assert_array_equal(found.labels[row][: len(labels)], labels)


def test_an_ensemble_need_not_look_at_everything():
    problem = handmade.random_problem(1, ["balanced"] * 3, 600, n_rows=50, scale=8.0)
    top = problem.model.top_k(problem.X, k=1)
    nodes = sum(tree.n_nodes - 1 for tree, _, _ in problem.parts)
    assert top.evaluations.max() <= nodes
    assert top.evaluations.mean() < nodes / 2


def test_a_label_of_gain_zero_is_never_returned():
    problem = handmade.random_problem(1, ["balanced", "chain"], 10)
    top = problem.model.top_k(problem.X, k=10, gain=np.zeros(10))
    assert (top.labels == -1).all()
    assert (top.scores == 0).all()


def test_a_search_of_no_rows_is_an_empty_answer():
    problem = handmade.random_problem(1, ["balanced"], 10)
    top = problem.model.top_k(problem.X[:0], k=3)
    assert top.labels.shape == top.scores.shape == (0, 3)
    assert problem.model.probability(problem.X, [], []).shape == (0,)


def test_scores_of_a_tree_worked_by_hand():
    # the root has an inner node (labels 0 and 1) and label 2; every margin is the bias
    tree = ll.LabelTree.from_parents([-1, 0, 0, 1, 1], [-1, -1, 2, 0, 1])
    bias = np.array([0, np.log(3), 0, 0, -np.log(3)], np.float32)  # probabilities 3/4, 1/2; 1/2, 1/4
    model = handmade.estimator([(tree, np.zeros((1, 5), np.float32), bias)], 3)
    labels, scores = model.top_k([[0.0]], k=3)
    assert labels.tolist() == [[2, 0, 1]]
    np.testing.assert_allclose(scores, [[1 / 2, 3 / 8, 3 / 16]], rtol=1e-6)
    labels, scores = model.top_k([[0.0]], k=2, gain=[1.0, 8.0, 1.0])
    assert labels.tolist() == [[1, 2]]
    np.testing.assert_allclose(scores, [[3 / 2, 1 / 2]], rtol=1e-6)
