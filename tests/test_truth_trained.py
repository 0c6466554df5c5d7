"""Trees trained on noted labels and judged on complete ones: where the correction helps, and where not."""

import sys
from pathlib import Path

import pytest

import longleaf as ll

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks import truth_runs as runs

TOO_WEAK, FAR_TOO_WEAK = (0.5, 50.0), (0.1, 50.0)
"""Off by a half and by nine tenths of the true A; A = 0 would be no correction."""


@pytest.fixture(scope="module")
def case():
    return runs.make_case(1, law=runs.STEEP_LAW, **runs.LEARNABLE)


@pytest.fixture(scope="module")
def model(case):
    return runs.train(case, case.noted)


def compare(case, one, other):
    """Compare two rankings of the test rows by their complete labels."""
    return ll.metrics.compare(case.truth.Y_test, one, other, k=runs.PLACES, n_samples=300)


def search(case, model, constants=None):
    options = {} if constants is None else {"tail": 1.0, "propensity": constants}
    return model.top_k(case.truth.X_test, k=5, **options)


def test_the_right_correction_is_clearly_ahead_on_complete_labels(case, model):
    found = compare(case, search(case, model), search(case, model, runs.STEEP_LAW))
    assert all(found[f"p@{k}"].low > 0 for k in runs.PLACES)


def test_too_weak_a_correction_gives_up_more_the_further_off_it_is(case, model):
    right, weak, weaker = (
        search(case, model, constants) for constants in (runs.STEEP_LAW, TOO_WEAK, FAR_TOO_WEAK)
    )
    assert compare(case, weaker, right)["p@3"].low > 0
    assert compare(case, weaker, weak)["p@3"].difference > 0
    uncorrected = search(case, model, (0.0, 50.0))
    assert (uncorrected.labels == search(case, model).labels).all()


def test_where_nothing_is_missing_the_same_correction_is_clearly_behind(case):
    model = runs.train(case, case.truth.Y)
    found = compare(case, search(case, model), search(case, model, runs.STEEP_LAW))
    assert all(found[f"p@{k}"].high < 0 for k in (1, 3))


def test_true_probabilities_are_ahead_of_every_trained_model(case, model):
    best = runs.ranked(case.truth.eta_test, 5)
    for trained in (search(case, model, runs.STEEP_LAW), search(case, runs.train(case, case.truth.Y))):
        assert compare(case, trained, best)["p@1"].low > 0
