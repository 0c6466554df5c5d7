"""A and B from audited rows: recovered where they are known, and honest where they are not."""

import numpy as np
import pytest
import scipy.sparse as sp

from longleaf.propensity import Audit, fit, inverse_propensity_from_counts
from longleaf.propensity._audit import _draw_rows

N_ROWS = 10_000
COUNTS = np.unique(np.geomspace(1, 5000, 40).astype(int))


def make_audit(a, b, n_audited, seed, counts=COUNTS):
    """Audit rows that have each label with chance 1/5, noted by the model with constants a and b."""
    random = np.random.default_rng(seed)
    complete = random.random((n_audited, len(counts))) < 0.2
    noted = complete & (
        random.random(complete.shape) < 1 / inverse_propensity_from_counts(counts, N_ROWS, a, b)
    )
    return Audit(noted.astype(float), complete.astype(float), counts, N_ROWS)


def likelihood(audit, a, b):
    p = 1 / inverse_propensity_from_counts(audit.counts, audit.n_rows, a, b)
    chances = np.where(audit.noted > 0, p, 1 - p)
    return np.log(chances[audit.complete > 0]).sum()


@pytest.mark.parametrize("true", [(0.55, 1.5), (0.5, 0.4), (1.0, 50.0)])
def test_the_true_constants_lie_in_the_intervals_of_a_large_audit(true):
    found = fit(make_audit(*true, n_audited=1500, seed=2), n_samples=60, confidence=0.99)
    for value, (low, high), estimate in zip(
        true, (found.a_interval, found.b_interval), found.constants, strict=True
    ):
        assert low < value < high
        assert low < estimate < high
    value, low, high = found.curve(COUNTS)
    truth = inverse_propensity_from_counts(COUNTS, N_ROWS, *true)
    assert ((0.98 * low < truth) & (truth < 1.02 * high)).all()
    np.testing.assert_allclose(value, truth, rtol=0.15)
    assert not found.is_at_limit


def test_no_constants_on_a_grid_are_likelier():
    audit = make_audit(0.55, 1.5, n_audited=60, seed=3)
    found = fit(audit, n_samples=2)
    best = likelihood(audit, found.a, found.b)
    grid = [likelihood(audit, a, b) for a in np.linspace(0.05, 3, 40) for b in np.geomspace(0.01, 500, 40)]
    assert best >= max(grid) - 1e-6


def test_ninety_percent_intervals_hold_the_truth_about_nine_times_in_ten():
    inside = [
        found.a_interval[0] < 0.55 < found.a_interval[1]
        for found in (
            fit(make_audit(0.55, 1.5, 60, seed), n_samples=40, confidence=0.9) for seed in range(20)
        )
    ]
    assert sum(inside) >= 14  # fewer have a chance of 1 in 400


def test_more_rows_give_narrower_intervals_and_the_same_seed_the_same_ones():
    small, same, large = (
        fit(make_audit(0.55, 1.5, n_audited, seed=4), n_samples=40) for n_audited in (50, 50, 1000)
    )
    assert np.ptp(large.a_interval) < 0.5 * np.ptp(small.a_interval)
    np.testing.assert_array_equal(small.samples, same.samples)


def test_what_the_review_struck_out_says_nothing_and_is_counted():
    audit = make_audit(0.55, 1.5, n_audited=60, seed=5)
    noted = audit.noted.copy()
    struck_out = np.argwhere(audit.complete == 0)[:7]
    noted[tuple(struck_out.T)] = 1
    clean, dirty = fit(audit, n_samples=2), fit(Audit(noted, audit.complete, COUNTS, N_ROWS), n_samples=2)
    assert dirty.constants == clean.constants
    assert (clean.wrong, dirty.wrong) == (0, 7)


def test_the_table_compares_found_and_fitted_shares_by_count():
    complete = [[0, 1, 2, 3], [0, 1], [0, 3], [3]]
    noted = [[0, 3], [0], [0, 3], []]
    found = fit(Audit(noted, complete, counts=[900, 1, 0, 3], n_rows=1000), n_samples=5)
    bins = [(one.low, one.high, one.n_true, round(one.noted_share, 3)) for one in found.table]
    assert bins == [(0, 0, 1, 0.0), (1, 1, 2, 0.0), (2, 3, 3, 0.667), (512, 1023, 3, 1.0)]
    fitted = 1 / inverse_propensity_from_counts([0, 1, 3, 900], 1000, *found.constants)
    np.testing.assert_allclose([one.fitted_share for one in found.table], fitted)
    assert found.noted_share == pytest.approx(5 / 9)


def test_the_table_and_the_limit_show_that_nothing_is_missing():
    complete = np.ones((50, 3))
    found = fit(Audit(complete, complete, counts=[1, 30, 4000], n_rows=N_ROWS), n_samples=5)
    assert found.is_at_limit
    one_row = found.table[0]
    assert one_row.noted_share == 1.0
    assert one_row.fitted_share == pytest.approx(1 / np.log(N_ROWS))  # whatever A and B are


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"n_rows": 2}, "n_rows must be at least 3"),
        ({"counts": [1, 2]}, "noted must have 2 labels, as counts has; got 3"),
        ({"counts": [1, 2, 300]}, "counts must be at most the 100 rows; got 300"),
        ({"noted": np.ones((3, 3))}, "noted and complete must have the same rows; got 3 and 2"),
        ({"complete": np.zeros((2, 3))}, "complete must have at least one label; got none"),
        ({"counts": [1, 1, 1]}, "complete must have labels of at least two training counts other than 1"),
        ({"counts": [1, 20, 20]}, "complete must have labels of at least two training counts other than 1"),
        ({"counts": ["a", "b", "c"]}, "counts must hold numbers, one per label; got"),
    ],
)
def test_faulty_audits_are_refused(change, message):
    parts = {"noted": np.ones((2, 3)), "complete": np.ones((2, 3)), "counts": [1, 2, 3], "n_rows": 100}
    with pytest.raises(ValueError, match=message):
        fit(Audit(**parts | change))


def test_confidence_lies_between_nothing_and_certainty():
    with pytest.raises(ValueError, match=r"confidence must be above 0 and below 1; got 1.0"):
        fit(make_audit(0.55, 1.5, 5, seed=1), confidence=1.0)


def test_draws_that_leave_the_constants_open_are_drawn_anew():
    """Of forty audited rows one has a true label of a second count: a third of all draws would miss it."""
    telling = np.zeros((40, 2))
    telling[:, 0] = telling[0, 1] = 1
    random = np.random.default_rng(1)
    draws = np.array([_draw_rows(sp.csr_array(telling), random) for _ in range(100)])
    assert (draws.sum(axis=1) == 40).all()
    assert (draws[:, 0] > 0).all()
    assert (draws[:, 1] == 0).mean() == pytest.approx(np.exp(-1), abs=0.15)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"audit": None}, "audit must be an Audit; got NoneType"),
        ({"random_state": -1}, "random_state must be at least 0"),
        ({"random_state": "x"}, "random_state must be a whole number; got 'x'"),
    ],
)
def test_faulty_arguments_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        fit(**{"audit": make_audit(0.55, 1.5, 5, seed=1)} | arguments)
