"""Search by utilities finds what is worth the most by brute force, labels of probability 0 included."""

import pickle
import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import longleaf as ll
from longleaf.search import TopK
from tests.helpers import handmade, refined
from tests.helpers.searching import problems, same, twins
from tests.helpers.utilities import KINDS, LIMITS, check_best, make_utility
from tests.search.test_refined import refined_problems, rows_of
from tests.search.test_score_map import Fused, fused

pytestmark = pytest.mark.native

KS = st.sampled_from([1, 2, 5, 1000])
SEEDS = st.integers(0, 2**32)


@given(problems(), KINDS, LIMITS, KS, SEEDS)
def test_the_best_of_all_labels_are_found(problem, kind, limits, k, seed):
    utility = make_utility(np.random.default_rng(seed), kind, limits, problem.n_labels)
    probability = problem.label_probabilities().mean(axis=1)
    check_best(problem.model.top_k(problem.X, k=k, utility=utility), utility, probability, k)


@given(fused(), KINDS, LIMITS, KS, SEEDS)
def test_the_best_by_mapped_probabilities_are_found_overrides_included(case, kind, limits, k, seed):
    utility = make_utility(np.random.default_rng(seed), kind, limits, case.problem.n_labels)
    check_best(case.search(k=k, utility=utility), utility, case.mapped, k, rtol=5e-4)


@given(refined_problems(), KINDS, LIMITS, KS, SEEDS)
def test_the_best_of_refined_labels_are_found(case, kind, limits, k, seed):
    problem, overrides = case
    utility = make_utility(np.random.default_rng(seed), kind, limits, problem.n_labels)
    probability = refined.by_brute_force(problem.model, problem.X, overrides)
    top = problem.model.top_k(rows_of(problem, overrides), k=k, utility=utility)
    check_best(top, utility, probability, k, rtol=2e-3)


@given(fused(), KINDS, LIMITS, KS, SEEDS)
def test_rows_together_and_on_threads_get_the_bits_of_rows_alone(case, kind, limits, k, seed):
    case = Fused(twins(case.problem), case.score_map, case.overrides, case.mapped)
    utility = make_utility(np.random.default_rng(seed), kind, limits, case.problem.n_labels)
    for search in ({}, {"search": "beam", "beam": 2}, {"search": "auto", "beam": 3}, {"ensemble": "union"}):
        together = case.search(k=k, utility=utility, **search)
        same_bits(together, case.one_by_one(k=k, utility=utility, **search))
        same_bits(together, case.search(k=k, utility=utility, n_jobs=3, **search))


@given(fused(), KINDS, LIMITS, SEEDS)
def test_a_utility_that_was_replaced_in_part_is_like_one_made_at_once(case, kind, limits, seed):
    rng, n_labels = np.random.default_rng(seed), case.problem.n_labels
    utility = make_utility(rng, kind, limits, n_labels)
    if utility.a.ndim == 0 and utility.b.ndim == 0:
        utility = ll.Utility(np.full(n_labels, utility.a))
    for _ in range(3):
        before = case.search(k=4, utility=utility)
        labels = rng.integers(0, n_labels, rng.integers(1, 4))
        changed = utility.replace(
            labels, a=rng.uniform(-1, 5, len(labels)), b=rng.uniform(-1, 1), mask=bool(rng.random() < 0.7)
        )
        groups, quota = changed.quotas or (None, None)
        at_once = ll.Utility(changed.a, changed.b, changed.mask, groups=groups, quota=quota)
        same_bits(case.search(k=4, utility=changed), case.search(k=4, utility=at_once))
        same(before, case.search(k=4, utility=utility))  # the old one is as it was
        utility = changed


@given(problems(), SEEDS)
def test_gains_are_the_utilities_without_a_constant(problem, seed):
    gain = np.random.default_rng(seed).uniform(0.5, 20, problem.n_labels)
    by_gain = problem.model.top_k(problem.X, k=3, gain=gain)
    by_utility = problem.model.top_k(problem.X, k=3, utility=ll.Utility(gain))
    np.testing.assert_allclose(by_gain.scores, by_utility.scores, rtol=1e-4, atol=1e-30)


@given(problems(), KINDS, SEEDS, st.booleans())
def test_thresholds_leave_out_what_is_worth_less(problem, kind, seed, per_label):
    rng = np.random.default_rng(seed)
    utility = make_utility(rng, kind, "none", problem.n_labels)
    probability = problem.label_probabilities().mean(axis=1)
    values = np.float64(utility.a) * probability + np.float64(utility.b)
    threshold = np.quantile(values, rng.uniform(0.3, 1, problem.n_labels if per_label else None))
    if np.isclose(values, threshold, rtol=1e-3, atol=1e-3 * np.abs(values).max()).any():
        return  # rounding decides there
    top = problem.model.top_k(problem.X, k=1000, utility=utility, threshold=threshold)
    for labels, value in zip(top.labels, values, strict=True):
        assert set(labels[labels >= 0]) == set(np.flatnonzero(value >= threshold))


def test_subtrees_without_an_allowed_label_are_never_entered():
    problem = handmade.random_problem(1, ["balanced"], 64)
    everything = problem.model.top_k(problem.X, k=64, utility=ll.Utility(np.ones(64)))
    mask = np.arange(64) == int(everything.labels[0, 30])
    tree = problem.parts[0][0]
    node, path = int(np.flatnonzero(tree.label == everything.labels[0, 30])[0]), 0
    while node:
        node = int(np.flatnonzero(tree.first_child[:-1] <= node)[-1])
        path += int(tree.first_child[node + 1] - tree.first_child[node])
    top = problem.model.top_k(problem.X[[0]], k=5, utility=ll.Utility(mask=mask))
    assert top.labels[0].tolist() == [everything.labels[0, 30], -1, -1, -1, -1]
    assert top.evaluations[0] <= path


def test_two_threads_may_use_two_utilities_on_one_model():
    problem = handmade.random_problem(3, ["balanced", "unbalanced"], 300, n_rows=50)
    rng = np.random.default_rng(0)
    utilities = [make_utility(rng, "plain", "none", 300) for _ in range(4)]
    expected = [problem.model.top_k(problem.X, k=3, utility=u, n_jobs=1) for u in utilities]
    problem.model.__dict__.pop("_prepared")
    problem.model._prepare()
    wrong = []

    def ask(i):
        for _ in range(20):
            found = problem.model.top_k(problem.X, k=3, utility=utilities[i], n_jobs=1)
            if not np.array_equal(found.labels, expected[i].labels):
                wrong.append(i)

    threads = [threading.Thread(target=ask, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_nobody_can_change_a_utility():
    a = np.ones(3)
    utility = ll.Utility(a)
    a[0] = 5
    assert utility.a.tolist() == [1, 1, 1]
    with pytest.raises(ValueError, match="read-only"):
        utility.a[0] = 2


def test_a_utility_can_be_pickled_and_shown():
    utility = ll.Utility([1.0, 2.0], -0.5, [True, False], groups=[0, -1], quota=2)
    again = pickle.loads(pickle.dumps(utility))
    assert again.a.tolist() == [1.0, 2.0]
    assert again.mask.tolist() == [True, False]
    assert repr(again) == "Utility(a=[2 numbers], b=-0.5, mask=1 of 2 labels, quota=[1 numbers])"


def test_what_is_remembered_of_a_utility_goes_with_it():
    problem = handmade.random_problem(1, ["balanced"], 20)
    utility = ll.Utility(np.ones(20))
    for step in range(5):
        utility = utility.replace([step], a=2.0)
        problem.model.top_k(problem.X, k=2, utility=utility)
    assert len(problem.model._prepare()._utilities) == 1


def test_a_model_that_has_learned_takes_the_utilities_that_it_took():
    X, Y = [[1.0, 0.0], [0.9, 0.1], [0.0, 1.0]], [[0], [0, 1], [1]]
    model = ll.PLT(n_trees=1, random_state=1).fit(X, Y)
    utility = ll.Utility([1.0, 5.0])
    model.top_k(X, k=1, utility=utility)
    model.partial_fit([[0.0, 1.0]], [[1]])
    probability = model.predict_proba(X)
    check_best(model.top_k(X, k=1, utility=utility), utility, probability.astype(float), 1)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: ll.Utility([1, np.nan]),
            r"a must hold finite numbers from -1e\+30 to 1e\+30; got nan for label 1",
        ),
        (lambda: ll.Utility(1, np.inf), "b must hold finite numbers"),
        (lambda: ll.Utility("x"), "a must hold numbers; got 'x'"),
        (lambda: ll.Utility(np.ones((2, 2))), "a must be a number or 1-D, one number per label; got 2-D"),
        (lambda: ll.Utility([1, 2], [1, 2, 3]), "same number of labels throughout; a has 2, b has 3"),
        (lambda: ll.Utility(None), "a must hold numbers; got None"),
        (lambda: ll.Utility(mask=True), "mask must be a 1-D array of true and false, one per label; got 0-D"),
        (lambda: ll.Utility(mask=[1, 0]), "mask must be a 1-D array of true and false, one per label"),
        (lambda: ll.Utility(groups=[0, 1]), "groups and quota must be given together"),
        (lambda: ll.Utility(groups=[0, -2], quota=1), "groups must be from -1 to"),
        (lambda: ll.Utility(groups=[0, 3], quota=[1, 1]), "quota must have 4 numbers, one per group; got 2"),
        (lambda: ll.Utility(groups=[0, 0], quota=-1), "quota must be from 0 to"),
        (lambda: ll.Utility(1.0).replace([0], a=1), "a or b must be an array, one number per label"),
        (lambda: ll.Utility([1, 2]).replace([2], a=1), "labels must be from 0 to 1; got 2"),
        (
            lambda: ll.Utility([1, 2]).replace([0, 1], a=[1, 2, 3]),
            "a must have 2 entries, one per given label; got 3",
        ),
    ],
)
def test_a_utility_that_cannot_be_is_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_a_utility_must_fit_the_model_and_stand_alone():
    problem = handmade.random_problem(1, ["balanced"], 20)
    ask = problem.model.top_k
    with pytest.raises(ValueError, match="must have 20 numbers, one per label of the model; got 3"):
        ask(problem.X, utility=ll.Utility([1, 2, 3]))
    with pytest.raises(ValueError, match="utility must not be given together with tail or gain"):
        ask(problem.X, utility=ll.Utility(), tail=1.0)
    with pytest.raises(TypeError, match=r"utility must be a longleaf\.Utility; got list"):
        ask(problem.X, utility=[1.0] * 20)


def same_bits(a: TopK, b: TopK) -> None:
    np.testing.assert_array_equal(a.labels, b.labels)
    for name in ("scores", "probabilities"):
        np.testing.assert_array_equal(getattr(a, name).view(np.int32), getattr(b, name).view(np.int32))
