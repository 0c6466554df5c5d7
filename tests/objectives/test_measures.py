"""What one more prediction adds is a line in its probability, and the slope is the derivative."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from longleaf.objectives.measures import MEASURES, Sums

SEEDS = st.integers(0, 2**32)


def random_sums(rng, n_rows=20, n_labels=30):
    predicted = rng.integers(0, 6, n_labels).astype(float)
    positives = rng.choice([0.0, 0.3, 2.0, 15.0, n_rows], n_labels)
    return Sums(predicted * rng.random(n_labels), predicted, positives, n_rows)


@pytest.mark.parametrize("name", MEASURES)
@given(SEEDS)
def test_a_step_adds_what_its_line_says(name, seed):
    rng, measure = np.random.default_rng(seed), MEASURES[name]
    sums = random_sums(rng)
    if name == "coverage":
        sums = sums._replace(total=-3 * sums.total)
    eta = rng.random(30)
    a, b = measure.step(sums)
    after = sums._replace(total=sums.total + measure.term(eta), predicted=sums.predicted + 1)
    np.testing.assert_allclose(measure.value(after) - measure.value(sums), a * eta + b, atol=1e-9)


@pytest.mark.parametrize("name", [name for name, measure in MEASURES.items() if measure.slope])
@given(SEEDS)
def test_the_slope_is_the_derivative(name, seed):
    measure, sums, small = MEASURES[name], random_sums(np.random.default_rng(seed)), 1e-6
    sums = sums._replace(predicted=sums.predicted + 0.5)  # away from the kink at 1
    by_hits, by_predicted = measure.slope(sums)
    for name, expected in (("total", by_hits), ("predicted", by_predicted)):
        above, below = (sums._replace(**{name: getattr(sums, name) + way * small}) for way in (1, -1))
        found = (measure.value(above) - measure.value(below)) / (2 * small)
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-6)
