"""Trees trained on noted labels and judged on complete ones: where the correction helps, and where not.

Every margin is three standard errors over the test rows of all seeds.
"""

import numpy as np
import pytest

from benchmarks.truth import runs
from longleaf.datasets import lose_labels

SEEDS = (1, 2, 3, 4)
WRONG = {
    "A too small": ((0.5, 50.0), (0.1, 50.0)),
    "A too large": ((2.0, 50.0), (4.0, 50.0)),
    "B too small": ((1.0, 5.0), (1.0, 1.0)),
    "B too large": ((1.0, 500.0), (1.0, 5000.0)),
}
"""Constants near the true A = 1, B = 50, and further off in the same direction."""


@pytest.fixture(scope="module")
def cases():
    return [runs.make_case(seed, law=runs.STEEP_LAW, **runs.LEARNABLE) for seed in SEEDS]


@pytest.fixture(scope="module")
def models(cases):
    return [runs.train(case, case.noted) for case in cases]


def search(case, model, **options):
    return model.top_k(case.truth.X_test, k=5, **options).labels


def corrected(cases, models, constants):
    return [
        search(case, model, tail=1.0, propensity=constants) for case, model in zip(cases, models, strict=True)
    ]


def is_behind(cases, some, others, k):
    """Say whether others rank complete labels better, beyond doubt; tops [rows, 5] of each case."""
    better = np.concatenate(
        [
            precisions(case, other, k) - precisions(case, one, k)
            for case, one, other in zip(cases, some, others, strict=True)
        ]
    )
    return better.mean() > 3 * better.std(ddof=1) / np.sqrt(len(better))


def precisions(case, top, k):
    return np.take_along_axis(case.truth.Y_test.toarray(), top[:, :k], axis=1).mean(axis=1)


@pytest.mark.parametrize("k", runs.PLACES)
def test_the_right_correction_is_ahead_on_complete_labels(cases, models, k):
    plain = [search(case, model) for case, model in zip(cases, models, strict=True)]
    assert is_behind(cases, plain, corrected(cases, models, runs.STEEP_LAW), k)


@pytest.mark.parametrize("wrong", WRONG)
def test_wrong_constants_give_up_more_the_further_off_they_are(cases, models, wrong):
    near, far = (corrected(cases, models, constants) for constants in WRONG[wrong])
    assert is_behind(cases, far, near, k=3)
    assert is_behind(cases, far, corrected(cases, models, runs.STEEP_LAW), k=3)


def test_without_a_slope_there_is_no_correction(cases, models):
    unchanged = corrected(cases, models, (0.0, 50.0))
    for case, model, top in zip(cases, models, unchanged, strict=True):
        np.testing.assert_array_equal(top, search(case, model))


@pytest.mark.parametrize("noted_half", [True, False])
def test_propensities_that_no_constants_describe_are_corrected_by_gains_of_ones_own(cases, noted_half):
    """Half of the labels, frequent or rare, are noted one time in four."""
    plain, usual, right = [], [], []
    for seed, case in zip(SEEDS, cases, strict=True):
        half = np.random.default_rng(seed).random(len(case.propensity)) < 0.5
        propensity = np.where(half == noted_half, 1.0, 0.25)
        model = runs.train(case, lose_labels(case.truth.Y, propensity, random_state=seed))
        plain.append(search(case, model))
        usual.append(search(case, model, tail=1.0, propensity=runs.LAW))
        right.append(search(case, model, gain=1 / propensity))
    for k in (3, 5):
        assert is_behind(cases, plain, right, k)
        assert is_behind(cases, usual, right, k)


def test_where_nothing_is_missing_the_same_correction_is_behind(cases):
    models = [runs.train(case, case.truth.Y) for case in cases]
    plain = [search(case, model) for case, model in zip(cases, models, strict=True)]
    for k in (1, 3):
        assert is_behind(cases, corrected(cases, models, runs.STEEP_LAW), plain, k)


def test_true_probabilities_are_ahead_of_every_trained_model(cases, models):
    best = [runs.ranked(case.truth.eta_test, 5) for case in cases]
    complete = [search(case, runs.train(case, case.truth.Y)) for case in cases]
    for trained in (corrected(cases, models, runs.STEEP_LAW), complete):
        assert is_behind(cases, trained, best, k=1)
