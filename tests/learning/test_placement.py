"""What a model remembers of its old rows, and how new labels spread over its clusters."""

import numpy as np
import pytest

import longleaf as ll
from longleaf._validation import check_features
from longleaf.learning.placement import CROWDING, _spread
from longleaf.training.data import MASS_UNIT, PIECE, feature_mass
from tests.helpers.training import texts, unit_rows

pytestmark = pytest.mark.native

X, ROWS = texts(n_rows=160, n_features=80, n_labels=15)
OLD, NEW = slice(0, 110), slice(110, 160)
SMALL = {"n_trees": 1, "arity": 3, "max_leaf": 4, "random_state": 1, "n_jobs": 1}


def fitted():
    return ll.PLT(**SMALL).fit(X[OLD], ROWS[OLD])


@pytest.mark.parametrize("normalize", [True, False])
def test_the_mass_of_a_feature_is_its_share_of_the_rows_squared_lengths(normalize):
    mass = feature_mass(check_features(X * 3, normalize=normalize)) / MASS_UNIT
    np.testing.assert_allclose(mass, np.square(unit_rows(X)).sum(axis=0), atol=1e-5)


def test_masses_add_up_exactly_in_any_pieces(monkeypatch):
    whole = feature_mass(check_features(X))
    parts = [feature_mass(check_features(X[part])) for part in (OLD, NEW)]
    np.testing.assert_array_equal(parts[1] + parts[0], whole)
    monkeypatch.setattr("longleaf.training.data.PIECE", 7)
    np.testing.assert_array_equal(feature_mass(check_features(X)), whole)
    assert PIECE > 7
    assert not feature_mass(check_features(X[:0])).any()


def test_the_mass_follows_the_rows_and_is_saved(tmp_path):
    model = fitted()
    model.save(tmp_path / "m.ll")
    loaded = ll.load(tmp_path / "m.ll").partial_fit(X[NEW], ROWS[NEW])
    np.testing.assert_array_equal(loaded.feature_mass_, feature_mass(check_features(X)))
    loaded.refit(X[NEW], ROWS[NEW])
    np.testing.assert_array_equal(loaded.feature_mass_, feature_mass(check_features(X[NEW])))


def test_a_model_that_does_not_know_its_mass_learns_by_the_share_of_rows(tmp_path):
    model = fitted()
    del model.feature_mass_  # as of an older version, or imported
    model.save(tmp_path / "m.ll")
    loaded = ll.load(tmp_path / "m.ll").partial_fit(X[NEW], ROWS[NEW])
    assert not hasattr(loaded, "feature_mass_")
    known = fitted()
    known.feature_mass_ = (
        feature_mass(check_features(X[NEW])) * 110
    )  # 110 old rows for 50 new of every feature
    known.feature_mass_ = np.rint(known.feature_mass_ / 50).astype(np.int64)
    known.partial_fit(X[NEW], ROWS[NEW])
    pairs = np.repeat(np.arange(160), 15), np.tile(np.arange(15), 160)
    np.testing.assert_allclose(loaded.probability(X, *pairs), known.probability(X, *pairs), atol=2e-2)


def test_old_rows_hold_what_they_had_and_leave_free_what_they_had_not():
    held, free, row = fitted(), fitted(), X[NEW][:1]
    held.feature_mass_ = held.feature_mass_ * 10**6
    free.feature_mass_ = np.zeros_like(free.feature_mass_)
    labels = np.flatnonzero(held.label_counts_)
    before = held.probability(row, np.zeros(len(labels), int), labels)
    surprise = labels[np.argmin(before)]
    after = [
        model.partial_fit(row, [[surprise]]).probability(row, [0], [surprise])[0] for model in (held, free)
    ]
    assert before.min() <= after[0] < after[1] - 0.1


def test_labels_spread_over_clusters_by_score_and_size():
    pairs = np.array([[0, 0], [0, 1], [1, 0], [1, 1], [2, 1]])
    step = CROWDING * np.log(2)  # what a cluster of one loses to one of two
    np.testing.assert_array_equal(
        _spread(pairs, np.array([0.0, -0.1, 0.0, -0.1, -9.0]), np.array([1, 1])), [0, 1, 1]
    )
    far = np.array([0.0, -0.1, 0.0, -0.1 - step, -9.0])
    np.testing.assert_array_equal(_spread(pairs, far, np.array([1, 1])), [0, 0, 1])
    np.testing.assert_array_equal(_spread(pairs, far * 0, np.array([50, 40])), [1, 1, 1])
