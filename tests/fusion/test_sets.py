"""Sets of tags with a promise: texts in, tags out, with the probabilities that names have changed."""

import pickle

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

import longleaf as ll
from tests.fusion.test_tagger import make_records, train


@pytest.fixture(scope="module")
def tagger():
    return train().fit_sets(*make_records(400, seed=5))


def recall(found, tags):
    return np.mean(
        [
            len({one.tag for one in own} & set(want)) / len(want)
            for own, want in zip(found, tags, strict=True)
            if want
        ]
    )


def test_sets_of_tags_hold_what_is_promised(tagger):
    records, tags = make_records(400, seed=6)
    for coverage in (0.95, 0.97):  # the surest tags, which have the same probability, hold 0.93
        found = tagger.suggest_set(records, coverage)
        assert recall(found, tags) >= coverage - 0.02
        assert recall(found, tags) <= coverage + 0.02, "the threshold was fitted to other probabilities"


def test_sets_are_the_first_suggestions(tagger):
    records, _ = make_records(20, seed=7)
    least = tagger.estimator_.risk_control_.threshold(0.97)
    sets, longer = tagger.suggest_set(records, 0.97), tagger.suggest(records, 100)
    for found, all_tags in zip(sets, longer, strict=True):
        expected = sum(one.probability for one in all_tags)
        assert found == all_tags[: len(found)]
        assert all(one.probability / max(expected, 1) > least - 1e-6 for one in found)
        assert all_tags[len(found)].probability / max(expected, 1) < least
    explained = tagger.suggest_set(records[:2], 0.8, explain=True)
    assert [[one.tag for one in own] for own in explained] == [
        [one.tag for one in own] for own in tagger.suggest_set(records[:2], 0.8)
    ]
    assert all(one.words for own in explained for one in own)


def test_names_found_in_the_records_count_in_the_fit(tagger):
    records, tags = make_records(400, seed=5)
    without = pickle.loads(pickle.dumps(tagger)).estimator_
    without.fit_sets(tagger._matrix(records), tagger.transform_tags(tags))
    assert without.risk_control_.threshold(0.8) != tagger.estimator_.risk_control_.threshold(0.8)


def test_a_saved_tagger_has_its_sets_and_one_that_learns_has_none(tagger, tmp_path):
    records, tags = make_records(20, seed=8)
    tagger.save(tmp_path / "t.ll")
    loaded = ll.load(tmp_path / "t.ll")
    assert loaded.suggest_set(records, 0.8) == tagger.suggest_set(records, 0.8)
    loaded.rename_labels({"t0": "olives"})
    assert len(loaded.suggest_set(records, 0.8)) == 20, "a name is only a name"
    loaded.partial_fit(records, tags)
    with pytest.raises(NotFittedError, match=r"suggest_set needs held-out records: call fit_sets\(texts, t"):
        loaded.suggest_set(records)


def test_tags_that_training_never_saw_count_as_missed(tagger):
    records, tags = make_records(100, seed=9)
    known, more = (
        pickle.loads(pickle.dumps(tagger)).fit_sets(iter(records), iter(own)).estimator_.risk_control_
        for own in (tags, [[*row, "unknown"] for row in tags])
    )
    assert more.most < known.most


def test_texts_and_tags_must_be_as_many(tagger):
    with pytest.raises(ValueError, match="texts and tags must have the same length; got 2 and 1"):
        tagger.fit_sets(["oil", "wine"], [["t1"]])
