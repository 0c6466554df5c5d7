"""Frank-Wolfe: each step is the best one by the slope, and mixtures predict what their seed says."""

import itertools
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import longleaf as ll
from longleaf.objectives.measures import MEASURES
from longleaf.objectives.mixture import best_share, steepest
from longleaf.objectives.rows import Counts, RowSet
from tests.objectives.test_coordinate import SEEDS, small_problem
from tests.reference import objectives as slow

pytestmark = pytest.mark.native

SMOOTH = st.sampled_from([name for name, measure in MEASURES.items() if measure.slope])


@given(SEEDS, SMOOTH, st.integers(1, 3))
@settings(max_examples=30)
def test_a_step_is_the_best_one_by_the_slope(seed, name, k):
    problem = small_problem(seed)
    probability = problem.label_probabilities().mean(axis=1)
    rows = RowSet.of(problem.model, problem.X, 1)
    _, counts = rows.survey(k, MEASURES[name], None)
    utility = steepest(counts)
    by_hits, by_predicted = MEASURES[name].slope(counts.sums)
    worth = by_hits * probability + by_predicted
    for row, labels in enumerate(rows.search(k, utility).labels):
        best = max(
            sum(worth[row, list(chosen)]) for chosen in itertools.combinations(range(problem.n_labels), k)
        )
        assert sum(worth[row, labels]) == pytest.approx(best, rel=1e-4, abs=1e-5)


@given(SEEDS, SMOOTH)
@settings(max_examples=20)
def test_the_value_of_a_mixture_is_that_of_its_shares(seed, name):
    problem = small_problem(seed)
    probability = problem.label_probabilities().mean(axis=1).tolist()
    found = ll.optimize(problem.model, problem.X, 2, measure=name, method="frank-wolfe")
    shares = [{} for _ in probability]
    for utility, weight in zip(found.mixture.utilities, found.mixture.weights, strict=True):
        for row, labels in zip(
            shares, problem.model.top_k(problem.X, 2, utility=utility).labels, strict=True
        ):
            for label in labels:
                row[label] = row.get(label, 0.0) + weight
    assert found.mixture.weights.sum() == pytest.approx(1)
    if len(found.history) > 1:
        value = slow.of_shares(name, probability, shares)
        assert found.history[-1] == pytest.approx(100 * value, abs=1e-3)
    assert (np.diff(found.history[1:]) > 0).all()
    own = slow.expected(name, probability, found.top.labels.tolist())
    assert found.value == pytest.approx(100 * own, abs=1e-3)


def test_the_share_of_a_step_is_the_best_on_a_fine_grid():
    measure, labels = MEASURES["macro_f1"], np.arange(40)
    rng = np.random.default_rng(1)
    here, there = (
        Counts(measure, q * rng.random(40), q, 1.0 + labels, 100) for q in rng.integers(1, 9, (2, 40)) * 1.0
    )
    fine = [here.mixed(there, share).value for share in np.linspace(0, 1, 4097)]
    assert here.mixed(there, best_share(here, there)).value == pytest.approx(max(fine), abs=1e-12)
    assert best_share(here, here) == 0


def test_the_same_seed_draws_the_same_and_rows_one_by_one_too():
    problem = small_problem(7, n_rows=50, n_labels=15)
    mixture = ll.optimize(problem.model, problem.X, 2, method="frank-wolfe").mixture
    assert len(mixture.utilities) > 1
    together = mixture.top_k(problem.model, problem.X, random_state=3)
    again = pickle.loads(pickle.dumps(mixture)).top_k(problem.model, problem.X, random_state=3)
    np.testing.assert_array_equal(together.labels, again.labels)
    draws = np.random.RandomState(3)
    alone = [
        mixture.top_k(problem.model, problem.X[[row]], random_state=draws).labels[0] for row in range(50)
    ]
    np.testing.assert_array_equal(together.labels, alone)
    other = mixture.top_k(problem.model, problem.X, random_state=4)
    assert (other.labels != together.labels).any()
    assert mixture.top_k(problem.model, problem.X[:0]).labels.shape == (0, 2)
    assert mixture.top_k(problem.model, problem.X, 4, random_state=3).labels.shape == (50, 4)
    assert "utilities" in repr(mixture)
