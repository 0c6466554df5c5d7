"""Search among refined labels finds the top k of a brute force: nominations, classifiers, maps."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import longleaf as ll
from longleaf.search import Overrides
from longleaf.search.rows import RecordRows
from tests.helpers import refined
from tests.helpers.searching import GAINS, check_top, make_gain, problems

pytestmark = pytest.mark.native

NOMINEES = st.sampled_from([1, 3, 1000])
RTOL = 2e-3  # a nominee's probability is a sum of 32-bit floats, and its map may be steep


@st.composite
def refined_problems(draw):
    problem = draw(problems(most_trees=3))
    probability = problem.label_probabilities()
    assume(not ((probability > 0) & (probability < 1e-200)).any())  # the reference could not tell them apart
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    refined.refine(problem, rng, draw(NOMINEES))
    overrides = None
    if draw(st.booleans()):
        chosen = rng.random((problem.X.shape[0], problem.n_labels)) < 0.2
        labels = np.nonzero(chosen)[1]
        slope, offset = rng.uniform(0, 1.5, len(labels)), rng.uniform(-6, 4, len(labels))
        indptr = np.concatenate([[0], np.cumsum(chosen.sum(axis=1))])
        overrides = Overrides(indptr, labels, slope, offset, float(rng.uniform(0, 2)))
    return problem, overrides


def rows_of(problem, overrides):
    return problem.X if overrides is None else RecordRows(problem.X, overrides)


@given(refined_problems(), GAINS, st.sampled_from([1, 2, 5, 1000]), st.integers(0, 99))
def test_the_top_k_equal_a_brute_force_over_all_labels(case, kind, k, seed):
    problem, overrides = case
    gain = make_gain(kind, seed, problem.n_labels)
    scores = refined.by_brute_force(problem.model, problem.X, overrides)
    scores = scores * (1.0 if gain is None else gain)
    X = rows_of(problem, overrides)
    check_top(problem.model.top_k(X, k, gain=gain), scores, k, RTOL)
    wide = problem.model.top_k(X, k, gain=gain, search="beam", beam=10_000)
    check_top(wide, scores, k, RTOL)


@given(refined_problems())
def test_rows_by_themselves_and_threads_change_no_bit(case):
    problem, overrides = case
    whole = problem.model.top_k(rows_of(problem, overrides), 5)
    threads = problem.model.top_k(rows_of(problem, overrides), 5, n_jobs=3)
    alone = [
        problem.model.top_k(
            problem.X[[row]] if overrides is None else RecordRows(problem.X[[row]], overrides.take([row])), 5
        )
        for row in range(problem.X.shape[0])
    ]
    for other in (threads, ll.search.TopK.concatenate(alone)):
        np.testing.assert_array_equal(other.labels, whole.labels)
        np.testing.assert_array_equal(other.scores, whole.scores)


@given(refined_problems(), st.integers(0, 99))
def test_probabilities_of_pairs_in_any_order_are_those_of_the_search(case, seed):
    problem, overrides = case
    X, n_rows = rows_of(problem, overrides), problem.X.shape[0]
    rows, labels = np.divmod(np.arange(n_rows * problem.n_labels), problem.n_labels)
    order = np.random.default_rng(seed).permutation(len(rows))
    found = np.zeros((n_rows, problem.n_labels))
    found[rows[order], labels[order]] = problem.model.probability(X, rows[order], labels[order])
    expected = refined.by_brute_force(problem.model, problem.X, overrides)
    np.testing.assert_allclose(found, expected, rtol=RTOL, atol=1e-7)
    top = problem.model.top_k(X, problem.n_labels)
    row, place = np.nonzero(top.labels >= 0)
    np.testing.assert_array_equal(found[row, top.labels[row, place]], top.probabilities[row, place])


@given(refined_problems())
def test_the_union_rule_lets_every_tree_nominate_k(case):
    problem, overrides = case
    X = rows_of(problem, overrides)
    score_map = problem.model.score_map_
    union = problem.model.top_k(X, 2, ensemble="union")
    problem.model.score_map_ = type(score_map)(
        score_map.slope, score_map.offset, score_map.refined, 2, score_map.evidence, score_map.result
    )
    mean = problem.model.top_k(X, 2)
    np.testing.assert_array_equal(union.labels, mean.labels)


def test_a_refined_model_without_a_map_is_refused():
    rng = np.random.default_rng(1)
    problem = refined.handmade.random_problem(1, ["balanced"], 20)
    refined.refine(problem, rng, 5)
    problem.model.score_map_ = None
    with pytest.raises(ValueError, match="must have a score map"):
        problem.model.top_k(problem.X, 1)
