"""The union rule is the paper's ensemble."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests import reference
from tests.helpers import handmade
from tests.helpers.searching import GAINS, SHAPES, make_gain, problems, same

pytestmark = pytest.mark.native


@given(problems(), GAINS, st.sampled_from([1, 3, 6]), st.integers(0, 99))
def test_the_union_rule_is_the_papers_ensemble(problem, kind, k, seed):
    gain = make_gain(kind, seed, problem.n_labels)
    weight = np.ones(problem.n_labels) if gain is None else gain
    probabilities = problem.label_probabilities()
    for row in probabilities:
        for tree in row:  # a tree's k-th and next label must be told apart
            ordered = np.sort(tree * weight)[::-1]
            assume(len(ordered) <= k or ordered[k] == 0 or ordered[k] < ordered[k - 1] * (1 - 1e-4))
    top = problem.model.top_k(problem.X, k=k, gain=gain, ensemble="union")
    for row, by_tree in enumerate(probabilities):
        expected = reference.union_top(by_tree, weight, k)
        mean = by_tree.mean(axis=0) * weight
        found = top.labels[row][top.labels[row] >= 0]
        assert len(found) == len(expected)
        np.testing.assert_allclose(mean[found], mean[expected], rtol=1e-4, atol=1e-37)
        np.testing.assert_allclose(top.scores[row][: len(found)], mean[expected], rtol=1e-4, atol=1e-37)


@given(st.integers(0, 2**32), SHAPES, st.sampled_from([1, 4]))
def test_the_union_rule_of_one_tree_is_its_own_search(seed, shape, k):
    problem = handmade.random_problem(seed, [shape], 25)
    same(problem.model.top_k(problem.X, k=k), problem.model.top_k(problem.X, k=k, ensemble="union"))
