"""Beam search is Algorithm 2."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import longleaf as ll
from tests import reference
from tests.helpers import handmade
from tests.helpers.searching import GAINS, LINKS, SHAPES, brute_force, check_top, make_gain, problems

pytestmark = pytest.mark.native


@given(problems(), GAINS, st.sampled_from([1, 4, 1000]), st.integers(0, 99))
def test_a_beam_as_wide_as_the_tree_is_exact(problem, kind, k, seed):
    gain = make_gain(kind, seed, problem.n_labels)
    top = problem.model.top_k(problem.X, k=k, gain=gain, search="beam", beam=2000)
    check_top(top, brute_force(problem, gain), k)


@given(
    st.integers(0, 2**32), SHAPES, LINKS, st.sampled_from([1, 2, 3, 7]), st.sampled_from(["plain", "zeros"])
)
@example(3484, "balanced", reference.LOG, 2, "plain")  # leaves beside inner nodes, late in a level
def test_a_beam_of_any_width_is_algorithm_2(seed, shape, link, beam, kind):
    problem = handmade.random_problem(seed, [shape], 25, link)
    gain = make_gain(kind, seed, 25)
    top = problem.model.top_k(problem.X, k=4, gain=gain, search="beam", beam=beam)
    scores = brute_force(problem, gain)
    tree, W, bias = problem.parts[0]
    for row, x in enumerate(problem.rows()):
        cost = reference.node_costs(link, W, bias, x)
        labels, closest = reference.beam_search(tree, cost, gain, 4, beam)
        if closest < 1e-4:  # rounding decides
            continue
        found = top.labels[row][top.labels[row] >= 0]
        assert len(found) == len(labels)
        np.testing.assert_allclose(scores[row][found], scores[row][labels], rtol=1e-4)
        np.testing.assert_allclose(top.scores[row][: len(labels)], scores[row][labels], rtol=1e-4, atol=1e-37)


@given(problems(), GAINS, st.integers(1, 5))
def test_a_beam_of_an_ensemble_gives_every_label_its_own_score(problem, kind, beam):
    gain = make_gain(kind, 1, problem.n_labels)
    top = problem.model.top_k(problem.X, k=3, gain=gain, search="beam", beam=beam)
    scores = brute_force(problem, gain)
    for row in range(len(scores)):
        found = top.labels[row][top.labels[row] >= 0]
        assert len(set(found)) == len(found)
        np.testing.assert_allclose(top.scores[row][: len(found)], scores[row][found], rtol=1e-4, atol=1e-37)


@pytest.mark.parametrize("options", [{}, {"search": "beam"}, {"ensemble": "union"}])
@pytest.mark.parametrize("n_trees", [1, 2])
def test_a_tree_that_is_a_single_leaf_is_always_sure(options, n_trees):
    tree = ll.LabelTree.from_parents([-1], [2])
    part = (tree, np.zeros((4, 1), np.float32), np.zeros(1, np.float32))
    top = handmade.estimator([part] * n_trees, 3).top_k(np.ones((1, 4)), k=2, **options)
    assert top.labels.tolist() == [[2, -1]]
    assert top.scores.tolist() == [[1.0, 0.0]]
