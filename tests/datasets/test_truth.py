"""Data of known truth: labels are as likely as their probabilities say, and lost by their propensities."""

import numpy as np
import pytest

from longleaf.datasets import lose_labels, make_truth
from longleaf.propensity import inverse_propensity, inverse_propensity_from_counts

ROWS, LABELS = 1000, 100


@pytest.fixture(scope="module", params=["hierarchy", "topics"])
def truth(request):
    return make_truth(ROWS, 400, LABELS, n_test=250, sharpness=40.0, structure=request.param, random_state=3)


def jain(counts):
    return inverse_propensity_from_counts(counts, ROWS, 0.55, 1.5)


def test_the_same_seed_gives_the_same_truth():
    one, same, other = (make_truth(200, 500, 50, n_test=20, random_state=seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(one.eta_test, same.eta_test)
    assert (one.Y != same.Y).nnz == 0
    assert (one.Y != other.Y).nnz > 0


def test_labels_occur_as_often_as_their_probabilities_say(truth):
    for Y, eta in ((truth.Y, truth.eta), (truth.Y_test, truth.eta_test)):
        assert ((eta > 0) & (eta < 1)).all()
        expected, deviation = eta.sum(axis=0), np.sqrt((eta * (1 - eta)).sum(axis=0))
        off = (np.asarray(Y.sum(axis=0)).ravel() - expected) / deviation
        assert abs(np.mean(off**2) - 1) < 0.5  # as large as chance makes them, and no larger


def test_labels_are_right_where_their_probability_is_high(truth):
    for low, high in ((0.05, 0.2), (0.4, 0.6), (0.8, 1.0)):
        inside = (truth.eta > low) & (truth.eta < high)
        found = truth.Y.toarray()[inside]
        deviation = 0.5 / np.sqrt(len(found))
        assert len(found) > 100
        assert found.mean() == pytest.approx(truth.eta[inside].mean(), abs=4 * deviation)


def test_the_tail_is_long_and_rows_tell_about_their_labels(truth):
    counts = np.sort(truth.eta.sum(axis=0))[::-1]
    assert counts[: LABELS // 10].sum() > 0.4 * counts.sum()
    frequent = np.argsort(-truth.eta.mean(axis=0))[:5]
    assert np.sort(truth.eta_test, axis=1)[:, -5:].mean() > 1.15 * truth.eta_test[:, frequent].mean()
    blind = make_truth(200, 400, 50, sharpness=0.0, random_state=1)
    np.testing.assert_allclose(blind.eta, np.broadcast_to(blind.eta[0], blind.eta.shape))


def test_propensities_obey_the_law_at_the_counts_that_they_leave(truth):
    propensity = truth.propensities(jain)
    noted = propensity * truth.eta.sum(axis=0)
    np.testing.assert_allclose(1 / propensity, jain(noted), rtol=1e-6)
    assert propensity.min() > 0
    assert propensity.max() <= 1


def test_the_models_propensities_of_noted_labels_are_near_the_true_ones(truth):
    propensity = truth.propensities(jain)
    modelled = 1 / inverse_propensity(lose_labels(truth.Y, propensity, random_state=1))
    ratio = np.log(modelled / propensity)
    assert abs(np.median(ratio)) < 0.1
    assert ratio.std() < 0.3


def test_labels_are_lost_by_their_propensities_whatever_the_law():
    complete = np.ones((4000, 4))
    complete[:1000, 1] = 0
    propensity = np.array([0.0, 0.3, 0.9, 1.0])
    noted = lose_labels(complete, propensity, random_state=1)
    assert (noted.toarray() <= complete).all()
    assert noted.nnz == noted.sum()
    share = np.asarray(noted.sum(axis=0)).ravel() / complete.sum(axis=0)
    np.testing.assert_allclose(share, propensity, atol=0.03)
    assert (noted != lose_labels(complete, propensity, random_state=1)).nnz == 0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: make_truth(100, 500, 50, structure="chain"), "structure must be one of hierarchy, topics"),
        (lambda: make_truth(100, 500, 50, sharpness=-1.0), "sharpness must be at least 0; got -1.0"),
        (lambda: lose_labels([[0]], [1.5]), "propensity must be at most 1; got 1.5 for label 0"),
        (lambda: lose_labels(np.ones((2, 3)), [0.5]), "Y must have 1 labels"),
        (lambda: lose_labels([[0]], ["x"]), "propensity must hold numbers, one per label; got"),
        (lambda: lose_labels([[0]], [0.5], random_state=-1), "random_state must be at least 0"),
        (lambda: make_truth(100, 500, 50, random_state=1.5), "random_state must be a whole number; got 1.5"),
    ],
)
def test_impossible_wishes_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize(
    ("law", "message"),
    [
        (lambda n: np.full(len(n), 0.5), "law must return inverse propensities of at least 1; got 0.5"),
        (lambda n: n * np.nan, "law's result must hold finite numbers"),
        (lambda n: n[:3], "law's result must have .* numbers, one per label; got 3"),
    ],
)
def test_a_law_that_gives_no_inverse_propensities_is_refused(truth, law, message):
    with pytest.raises(ValueError, match=message):
        truth.propensities(law)
