"""Coordinate ascent: each row gets the best set of labels, and the measure never falls."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import longleaf as ll
from longleaf.objectives.coordinate import Ascent
from longleaf.objectives.measures import MEASURES
from longleaf.objectives.rows import Counts, RowSet
from tests.helpers import handmade, refined
from tests.reference import objectives as slow

pytestmark = pytest.mark.native

SEEDS, NAMES = st.integers(0, 2**32), st.sampled_from(sorted(MEASURES))
CLOSE = 2e-6  # probabilities and utilities are 32-bit floats


def small_problem(seed, n_rows=6, n_labels=7, shapes=("balanced", "unbalanced")):
    return handmade.random_problem(seed, shapes, n_labels, n_rows=n_rows)


def ascent_of(problem, name, k):
    rows = RowSet.of(problem.model, problem.X, 1)
    return Ascent(rows, *start(rows.survey(k, MEASURES[name], None)))


def start(survey):
    top, counts = survey
    return top, counts.measure, counts.positives


@given(SEEDS, NAMES, st.integers(1, 3))
@settings(max_examples=40)
def test_a_step_finds_the_best_set_of_labels_of_a_row(seed, name, k):
    problem = small_problem(seed)
    probability = problem.label_probabilities().mean(axis=1).tolist()
    ascent = ascent_of(problem, name, k)
    ascent.search(np.arange(6))  # from anywhere; then with one row changed at a time
    for row in (3, 0, 3, 5):
        ascent.search(np.array([row]))
        chosen = ascent.labels.tolist()
        best = slow.best_of_row(name, probability, chosen, row, k)
        assert slow.expected(name, probability, chosen) == pytest.approx(best, abs=CLOSE)
        ascent._price(np.arange(problem.n_labels))


@given(SEEDS, NAMES, st.integers(1, 3))
@settings(max_examples=25)
def test_in_the_end_no_row_can_be_improved(seed, name, k):
    problem = small_problem(seed)
    probability = problem.label_probabilities().mean(axis=1).tolist()
    found = ll.optimize(problem.model, problem.X, k, measure=name, max_iter=100, tol=0)
    chosen = found.top.labels.tolist()
    for row in range(6):
        assert len(set(chosen[row])) == k
        best = slow.best_of_row(name, probability, chosen, row, k)
        assert slow.expected(name, probability, chosen) >= best - CLOSE
    assert found.value == pytest.approx(100 * slow.expected(name, probability, chosen), abs=1e-3)


@given(SEEDS, NAMES, st.sampled_from([1, 7, 64, 1000]))
@settings(max_examples=25)
def test_the_measure_never_falls_whatever_the_blocks(seed, name, block_rows):
    problem = small_problem(seed, n_rows=40, n_labels=12)
    ascent, rng = ascent_of(problem, name, 2), np.random.default_rng(seed)
    ascent.search(rng.permutation(40), block_rows)
    before = ascent.counts.value
    for _ in range(3):
        order = rng.permutation(40)
        for step in (ascent.search, ascent.settle):
            step(order, block_rows)
            assert ascent.counts.value >= before - 1e-12
            before = ascent.counts.value
    exact = Counts.of(ascent.counts.measure, ascent.top(), ascent.counts.positives)
    np.testing.assert_allclose(ascent.counts.total, exact.total, atol=1e-9)
    np.testing.assert_array_equal(ascent.counts.predicted, exact.predicted)


@given(SEEDS, st.sampled_from(["macro_recall", "macro_balanced_accuracy"]))
@settings(max_examples=25)
def test_linear_measures_are_as_large_as_can_be_after_one_search(seed, name):
    problem = small_problem(seed)
    found = ll.optimize(problem.model, problem.X, 2, measure=name, tol=0)
    assert found.history[-1] == pytest.approx(found.history[1], abs=1e-4)
    mixture = ll.optimize(problem.model, problem.X, 2, measure=name, method="frank-wolfe")
    assert mixture.value == pytest.approx(found.value, abs=1e-4)


@given(SEEDS, NAMES)
@settings(max_examples=15)
def test_refined_labels_are_expected_as_often_as_their_probabilities_say(seed, name):
    problem = small_problem(seed, n_labels=15)
    refined.refine(problem, np.random.default_rng(seed), nominees=3)
    probability = refined.by_brute_force(problem.model, problem.X)
    _, counts = RowSet.of(problem.model, problem.X, 1).survey(2, MEASURES[name], None)
    np.testing.assert_allclose(counts.positives, probability.sum(axis=0), rtol=2e-3, atol=1e-4)
    found = ll.optimize(problem.model, problem.X, 2, measure=name)
    value = slow.expected(name, probability.tolist(), found.top.labels.tolist())
    assert found.value == pytest.approx(100 * value, rel=5e-3, abs=1e-2)


def test_rare_labels_gain_where_they_are_never_predicted():
    problem = small_problem(3, n_rows=60, n_labels=20)
    probability = problem.label_probabilities().mean(axis=1).tolist()
    found = ll.optimize(problem.model, problem.X, 2, measure="coverage")
    plain = slow.expected("coverage", probability, problem.model.top_k(problem.X, 2).labels.tolist())
    assert found.history[0] == pytest.approx(100 * plain, abs=1e-3)
    assert found.value > found.history[0] + 1


def test_threads_do_not_change_the_answer():
    problem = small_problem(5, n_rows=80, n_labels=30)
    one, three = (ll.optimize(problem.model, problem.X, 3, n_jobs=n) for n in (1, 3))
    np.testing.assert_array_equal(one.top.labels, three.top.labels)
    assert one.history == three.history
