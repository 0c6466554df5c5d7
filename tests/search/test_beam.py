"""Beam search is Algorithm 2, the union rule is the paper's ensemble, and the portable kernels agree."""

import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

import longleaf as ll
from tests import reference
from tests.helpers import handmade
from tests.helpers.data import ROOT
from tests.helpers.searching import GAINS, LOSSES, SHAPES, brute_force, check_top, make_gain, problems, same


@given(problems(), GAINS, st.sampled_from([1, 4, 1000]), st.integers(0, 99))
def test_a_beam_as_wide_as_the_tree_is_exact(problem, kind, k, seed):
    gain = make_gain(kind, seed, problem.n_labels)
    top = problem.model.top_k(problem.X, k=k, gain=gain, search="beam", beam=2000)
    check_top(top, brute_force(problem, gain), k)


@given(
    st.integers(0, 2**32), SHAPES, LOSSES, st.sampled_from([1, 2, 3, 7]), st.sampled_from(["plain", "zeros"])
)
@example(3484, "balanced", "log", 2, "plain")  # leaves beside inner nodes, late in a level
def test_a_beam_of_any_width_is_algorithm_2(seed, shape, loss, beam, kind):
    problem = handmade.random_problem(seed, [shape], 25, loss)
    gain = make_gain(kind, seed, 25)
    top = problem.model.top_k(problem.X, k=4, gain=gain, search="beam", beam=beam)
    scores = brute_force(problem, gain)
    tree, W, bias = problem.parts[0]
    for row, x in enumerate(problem.rows()):
        eta = reference.node_probabilities(loss, W, bias, x)
        labels, closest = reference.beam_search(tree, eta, gain, 4, beam)
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
    problem = handmade.random_problem(seed, [shape], 25, "log")
    same(problem.model.top_k(problem.X, k=k), problem.model.top_k(problem.X, k=k, ensemble="union"))


@pytest.mark.parametrize("options", [{}, {"search": "beam"}, {"ensemble": "union"}])
@pytest.mark.parametrize("n_trees", [1, 2])
def test_a_tree_that_is_a_single_leaf_is_always_sure(options, n_trees):
    tree = ll.LabelTree.from_parents([-1], [2])
    part = (tree, np.zeros((4, 1), np.float32), np.zeros(1, np.float32))
    top = handmade.estimator([part] * n_trees, 3).top_k(np.ones((1, 4)), k=2, **options)
    assert top.labels.tolist() == [[2, -1]]
    assert top.scores.tolist() == [[1.0, 0.0]]


ANSWERS = """
import sys
import numpy as np
from tests.helpers import handmade
from longleaf import _core
from tests.helpers.searching import make_gain

answers = {"simd": np.array(_core.simd())}
for loss in ("log", "squared-hinge"):
    problem = handmade.random_problem(7, ["balanced", "flat"], 300, loss, n_rows=50)
    top = problem.model.top_k(problem.X, k=5, gain=make_gain("plain", 1, 300))
    answers |= {loss + "-labels": top.labels, loss + "-scores": top.scores}
np.savez(sys.argv[1], **answers)
"""


def test_the_portable_kernels_give_the_same_answers(tmp_path):
    answers = []
    for simd in ("baseline", ""):
        path = tmp_path / f"kernels-{simd}.npz"
        environment = os.environ | {"LONGLEAF_SIMD": simd, "PYTHONPATH": str(ROOT)}
        subprocess.run([sys.executable, "-c", ANSWERS, path], env=environment, check=True, timeout=300)
        answers.append(np.load(path))
    baseline, best = answers
    assert str(baseline["simd"]) == "kernels_baseline"
    for loss in ("log", "squared-hinge"):
        np.testing.assert_array_equal(baseline[f"{loss}-labels"], best[f"{loss}-labels"])
        np.testing.assert_allclose(baseline[f"{loss}-scores"], best[f"{loss}-scores"], rtol=1e-5)
