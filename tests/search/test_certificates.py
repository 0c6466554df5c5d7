"""Searches that end early say where their answers are exact all the same, and what they can have missed."""

import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import longleaf as ll
from longleaf.datasets import load_sample
from tests.helpers import handmade
from tests.helpers.searching import GAINS, make_gain, problems, same, twins
from tests.helpers.utilities import make_utility
from tests.search.test_refined import refined_problems, rows_of
from tests.search.test_score_map import Fused, fused

pytestmark = pytest.mark.native

KS = st.sampled_from([1, 2, 5, 1000])
EARLY = st.sampled_from(
    [
        {"search": "beam", "beam": 1},
        {"search": "beam", "beam": 3},
        {"epsilon": 0.01},
        {"epsilon": 0.5},
        {"max_nodes": 1},
        {"max_nodes": 30},
        {"max_nodes": 30, "search": "beam", "beam": 2},
        {"max_nodes": 30, "search": "auto", "beam": 2, "epsilon": 0.1},
        {"deadline_ms": 1e-3},
        {"ensemble": "union"},
        {"ensemble": "union", "search": "beam", "beam": 2},
    ]
)
OBJECTIVES = st.sampled_from(["gain", "gain", "utility"])


def objective(name, kind, seed, n_labels):
    if name == "gain":
        return {"gain": make_gain(kind, seed, n_labels)}
    return {"utility": make_utility(np.random.default_rng(seed), "plain", "none", n_labels)}


def check_certificate(found, exact, rtol):
    """What says that it is exact is worth as much, and no gap is too small."""
    assert exact.exact.all()
    assert not exact.gap.any()
    right = found.exact
    sure = exact.scores[right]
    np.testing.assert_allclose(
        found.scores[right], sure, rtol=rtol, atol=rtol * abs(sure).max(initial=0) + 1e-37
    )
    assert not found.gap[right].any()
    last = np.where(found.labels[:, -1] >= 0, found.scores[:, -1], 0.0)
    for row in np.flatnonzero(~right):
        gained = np.setdiff1d(exact.labels[row][exact.labels[row] >= 0], found.labels[row])
        best = max((float(exact.scores[row][exact.labels[row] == j][0]) for j in gained), default=-np.inf)
        assert found.gap[row] >= (best - last[row]) * (1 - rtol) - 1e-37


@given(problems(), OBJECTIVES, GAINS, KS, EARLY, st.integers(0, 99))
def test_certificates_are_true(problem, name, kind, k, early, seed):
    ask = objective(name, kind, seed, problem.n_labels)
    exact = problem.model.top_k(problem.X, k=k, **ask)
    check_certificate(problem.model.top_k(problem.X, k=k, **ask, **early), exact, 1e-4)


@given(fused(), OBJECTIVES, GAINS, KS, EARLY, st.integers(0, 99))
def test_certificates_of_mapped_probabilities_are_true(case, name, kind, k, early, seed):
    if early.get("ensemble") == "union":
        return  # it takes each tree's own best mapped labels, and says nothing of the others
    ask = objective(name, kind, seed, case.problem.n_labels)
    check_certificate(case.search(k=k, **ask, **early), case.search(k=k, **ask), 5e-4)


@given(refined_problems(), OBJECTIVES, GAINS, KS, EARLY, st.integers(0, 99))
def test_certificates_of_refined_labels_are_true(case, name, kind, k, early, seed):
    problem, overrides = case
    if early.get("ensemble") == "union":
        return  # each tree nominates k then, which is another model
    ask = objective(name, kind, seed, problem.n_labels)
    X = rows_of(problem, overrides)
    exact = problem.model.top_k(X, k=k, **ask)
    check_certificate(problem.model.top_k(X, k=k, **ask, **early), exact, 2e-3)


@given(fused(), OBJECTIVES, GAINS, KS, st.integers(1, 5), st.integers(0, 99), st.booleans())
def test_auto_is_exact_to_the_bit(case, name, kind, k, beam, seed, alone):
    case = Fused(twins(case.problem), case.score_map, case.overrides, case.mapped)
    ask = objective(name, kind, seed, case.problem.n_labels)
    search = case.one_by_one if alone else case.search
    auto = search(k=k, **ask, search="auto", beam=beam)
    exact = case.search(k=k, **ask)
    assert auto.exact.all()
    np.testing.assert_array_equal(auto.labels, exact.labels)
    np.testing.assert_array_equal(auto.scores.view(np.int32), exact.scores.view(np.int32))


@given(problems(), GAINS, KS, st.sampled_from([0.01, 0.2, 0.9]), st.integers(0, 99), st.booleans())
def test_no_score_falls_short_by_more_than_epsilon(problem, kind, k, epsilon, seed, auto):
    gain = make_gain(kind, seed, problem.n_labels)
    how = {"search": "auto", "beam": 2} if auto else {}
    exact = problem.model.top_k(problem.X, k=k, gain=gain)
    found = problem.model.top_k(problem.X, k=k, gain=gain, epsilon=epsilon, **how)
    assert (found.scores >= exact.scores * (1 - epsilon) * (1 - 1e-4) - 1e-37).all()
    assert (found.gap <= found.scores[:, -1] * epsilon / (1 - epsilon) * (1 + 1e-2) + 1e-37).all()


@pytest.mark.parametrize("options", [{}, {"utility": -1.0}])
def test_rows_that_may_miss_a_little_are_less_work(options):
    sample = load_sample()
    model = ll.PLT(refine=False, random_state=1).fit(sample.X_train, sample.Y_train)
    if options:
        options = {"utility": ll.Utility(1.0, options["utility"])}
    work = [
        model.top_k(sample.X_test, 5, epsilon=epsilon, **options).evaluations.sum()
        for epsilon in (0, 0.1, 0.9)
    ]
    assert work[0] >= work[1] >= work[2]
    np.testing.assert_array_equal(
        model.top_k(sample.X_test, 5, search="auto", **options).evaluations.sum(), work[0]
    )


def test_no_gap_says_that_a_probability_could_exceed_1():
    problem = handmade.random_problem(5, ["balanced"] * 3, 40)
    assert (problem.model.top_k(problem.X, k=3, max_nodes=1).gap <= 1).all()


def test_a_beam_that_drops_nothing_is_certain():
    problem = handmade.random_problem(5, ["balanced", "balanced"], 40)
    wide = problem.model.top_k(problem.X, k=3, search="beam", beam=1000)
    assert wide.exact.all()


def test_a_search_ends_at_its_most_nodes():
    problem = handmade.random_problem(5, ["balanced", "unbalanced"], 200, n_rows=20)
    widest = max(int(np.diff(tree.first_child).max()) for tree, _, _ in problem.parts)
    for n in (1, 50, 100):
        top = problem.model.top_k(problem.X, k=3, max_nodes=n)
        assert (top.evaluations <= n + 2 * widest).all()
        assert not top.exact.all()


def test_a_search_ends_at_its_deadline():
    problem = handmade.random_problem(5, ["balanced"] * 3, 600, n_rows=4000)
    begin = time.perf_counter()
    top = problem.model.top_k(problem.X, k=50, deadline_ms=1.0, n_jobs=1)
    assert time.perf_counter() - begin < 5
    assert not top.exact.all()
    few = problem.X[:4]
    same(problem.model.top_k(few, k=5, deadline_ms=1e8), problem.model.top_k(few, k=5, max_nodes=10**9))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"epsilon": 1.0}, r"epsilon must be at least 0 and at most 0\.999999; got 1\.0"),
        ({"epsilon": np.nan}, "epsilon must be"),
        ({"max_nodes": 0}, "max_nodes must be at least 1"),
        ({"deadline_ms": 0}, "deadline_ms must be"),
        ({"search": "best"}, "search must be one of exact, beam, auto; got 'best'"),
    ],
)
def test_limits_that_cannot_be_are_refused(options, message):
    problem = handmade.random_problem(5, ["balanced"], 10)
    with pytest.raises(ValueError, match=message):
        problem.model.top_k(problem.X, **options)
