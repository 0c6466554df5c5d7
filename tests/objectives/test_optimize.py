"""What `optimize` takes and returns."""

import numpy as np
import pytest

import longleaf as ll
from tests.objectives.test_coordinate import small_problem
from tests.reference import objectives as slow


@pytest.fixture(scope="module")
def problem():
    return small_problem(1, n_rows=20)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"measure": "micro_f1"}, "measure must be one of macro_f1, "),
        ({"method": "newton"}, "method must be one of coordinate, frank-wolfe; got 'newton'."),
        ({"measure": "coverage", "method": "frank-wolfe"}, "method must be coordinate for coverage"),
        ({"k": 0}, "k must be at least 1; got 0."),
        ({"max_iter": 0}, "max_iter must be at least 1; got 0."),
        ({"tol": -1}, "tol must be at least 0; got -1."),
        ({"random_state": "a"}, "random_state must be a whole number; got 'a'."),
        ({"positives": [0.5]}, "positives must have"),
        ({"positives": [2.0] * 7}, "positives must"),
    ],
)
def test_bad_settings_are_refused_in_one_sentence(problem, options, message):
    with pytest.raises(ValueError, match=message):
        ll.optimize(problem.model, problem.X, **options)


def test_only_models_and_rows_are_taken(problem):
    with pytest.raises(TypeError, match=r"model must be a PLT or BR; got Tagger\."):
        ll.optimize(ll.Tagger(), problem.X)
    with pytest.raises(ValueError, match="not fitted"):
        ll.optimize(ll.PLT(), problem.X)
    with pytest.raises(ValueError, match="X must have at least one row; got 0"):
        ll.optimize(problem.model, problem.X[:0])


@pytest.mark.parametrize("method", ["coordinate", "frank-wolfe"])
def test_more_labels_than_there_are_pad_the_answer(problem, method):
    found = ll.optimize(problem.model, problem.X, 9, method=method)
    assert found.top.labels.shape == found.top.scores.shape == (20, 9)
    assert (np.sort(found.top.labels[:, :7], axis=1) == np.arange(7)).all()
    assert (found.top.labels[:, 7:] == -1).all()


def test_shares_of_the_callers_own_replace_those_of_the_model(problem):
    shares = np.linspace(0.1, 0.9, 7)
    probability = problem.label_probabilities().mean(axis=1).tolist()
    found = ll.optimize(problem.model, problem.X, 2, positives=shares)
    value = slow.expected("macro_f1", probability, found.top.labels.tolist(), (20 * shares).tolist())
    assert found.value == pytest.approx(100 * value, abs=1e-3)


def test_scores_say_what_each_label_adds(problem):
    found = ll.optimize(problem.model, problem.X, 2)
    probability = problem.label_probabilities().mean(axis=1).tolist()
    chosen = found.top.labels.tolist()
    without = [chosen[0][1:], *chosen[1:]]
    added = slow.expected("macro_f1", probability, chosen) - slow.expected("macro_f1", probability, without)
    assert found.top.scores[0, 0] == pytest.approx(7 * added, abs=1e-5)
    assert (np.diff(found.top.scores, axis=1) <= 0).all()
