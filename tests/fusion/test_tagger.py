"""Taggers trained with names: exact by brute force, deterministic, saved, updated and explained."""

import math

import numpy as np
import pytest
import scipy.sparse as sp

import longleaf as ll
from longleaf.datasets import load_sample
from longleaf.io.tag_names import Name, TagNames
from longleaf.training.data import held_out_rows
from tests.helpers import refined

N_RARE = 300
TOPICS = (
    "olive",
    "wheat",
    "cod",
    "wine",
    "sugar",
    "cotton",
    "tobacco",
    "beef",
    "rice",
    "hops",
    "milk",
    "silk",
)


def make_records(n, seed=1):
    """Make records whose title names a topic of theirs, more often than not; a fifth have a rare topic too.

    The last topic never occurs as a tag, although most records have its word.
    """
    rng = np.random.default_rng(seed)
    records, tags = [], []
    for _ in range(n):
        chosen = rng.choice(len(TOPICS) - 1, 2, replace=False)
        said = [TOPICS[one] if rng.random() < 0.7 else f"code{one}x" for one in chosen]
        noise = rng.choice(["aid", "trade", "import", "price", "market", TOPICS[-1]], 4)
        records.append({"title": f"On {said[0]}", "text": " ".join([*noise, said[1]])})
        tags.append([f"t{one}" for one in chosen])
        if rng.random() < 0.2:
            rare = int(rng.integers(N_RARE))
            records[-1]["title"] += f" and rare{rare:03}s"
            tags[-1].append(f"r{rare}")
    return records, tags


NAMES = {f"t{number}": topic for number, topic in enumerate(TOPICS)}
NAMES_LAST = f"t{len(TOPICS) - 1}"
NAMES |= {f"r{number}": f"rare{number:03}" for number in range(N_RARE)}


def train(n=600, names=NAMES, **settings):
    records, tags = make_records(n)
    plt = ll.PLT(**({"n_trees": 2, "max_leaf": 3, "random_state": 1, "n_jobs": 1} | settings))
    return ll.Tagger(plt, None, names).fit(records, tags)


@pytest.fixture(scope="module")
def tagger():
    return train()


def by_brute_force(tagger, records):
    """Return what the fusion makes of the trees' probability, record by record and label by label."""
    rows = tagger._suggester.rows(records)
    return refined.by_brute_force(tagger.estimator_, rows.X, rows.overrides)


@pytest.mark.parametrize("tail", [None, 0.5, 1.0])
def test_suggestions_are_the_top_k_of_a_brute_force_over_all_tags(tagger, tail):
    records, _ = make_records(40, seed=2)
    scores = by_brute_force(tagger, records)
    gain = 1.0 if tail is None else tagger.estimator_.inverse_propensity() ** tail
    best = -np.sort(-scores * gain, axis=1)[:, :6]
    for k, search in ((6, "exact"), (6, "beam")):
        found = tagger.suggest(records, k, tail=tail, search=search, beam=100)
        np.testing.assert_allclose([[one.score for one in row] for row in found], best, rtol=1e-3)
    place = {tag: number for number, tag in enumerate(tagger.classes_)}
    for row, own in enumerate(found):
        for one in own:
            assert one.probability == pytest.approx(scores[row, place[one.tag]], rel=1e-3)


def test_probabilities_of_given_tags_are_those_of_suggestions(tagger):
    records, _ = make_records(5, seed=3)
    found = tagger.suggest(records, 3)
    for row, own in enumerate(found):
        table = tagger.predict_proba([records[row]], [one.tag for one in own])
        np.testing.assert_allclose(table[0], [one.probability for one in own], rtol=1e-4)


def test_tags_that_training_never_saw_are_suggested_where_their_names_stand(tagger):
    counts = dict(zip(tagger.classes_, tagger.estimator_.label_counts_, strict=True))
    unseen = [tag for tag in NAMES if tag.startswith("r") and not counts[tag]]
    assert len(unseen) > 100
    texts = [{"title": f"On beef and {NAMES[tag]}s", "text": "aid market"} for tag in unseen]
    found = tagger.suggest(texts, 4)
    assert np.mean([tag in [one.tag for one in own] for tag, own in zip(unseen, found, strict=True)]) > 0.75
    elsewhere = tagger.suggest([{"title": "On beef", "text": "aid market"}], 20)[0]
    assert all(one.probability < 0.05 for one in elsewhere if one.tag in unseen)


def test_a_name_that_is_always_wrong_speaks_for_nothing(tagger):
    records, _ = make_records(50, seed=4)
    with_word = [record for record in records if TOPICS[-1] in record["text"]]
    assert len(with_word) > 20
    for own in tagger.suggest(with_word, 5):
        assert NAMES_LAST not in [one.tag for one in own if one.probability > 0.05]


def test_counts_and_propensities_are_those_of_the_records(tagger):
    _, tags = make_records(600)
    counts = {tag: sum(tag in row for row in tags) for tag in NAMES}
    assert dict(zip(tagger.classes_, tagger.estimator_.label_counts_.tolist(), strict=True)) == counts
    assert tagger.estimator_.n_rows_ == 600


def test_names_make_training_records_found_better():
    records, tags = make_records(400, seed=5)
    scores = []
    for names in (None, NAMES):
        tagger = train(names=names)
        top = tagger.estimator_.top_k(tagger._rows(records), 2)
        scores.append(ll.metrics.evaluate(tagger.transform_tags(tags), top, k=(2,))["p@2"])
    assert scores[1] >= scores[0]


def test_threads_seeds_and_order_of_fields_decide_nothing_but_the_seed():
    records, _ = make_records(30, seed=7)
    one, two = train(), train(n_jobs=2)
    assert one.suggest(records, 5) == two.suggest(records, 5)
    turned = [{"text": record["text"], "title": record["title"]} for record in records]
    assert one.suggest(turned, 5) == one.suggest(records, 5)


def test_a_saved_tagger_answers_with_the_same_bits(tagger, tmp_path):
    tagger.save(tmp_path / "m.ll")
    loaded = ll.load(tmp_path / "m.ll")
    records, _ = make_records(30, seed=8)
    assert loaded.suggest(records, 5, tail=0.5) == tagger.suggest(records, 5, tail=0.5)
    assert loaded.explain(records[0], "t1") == tagger.explain(records[0], "t1")


def test_a_small_data_set_has_name_rows_and_no_fusion():
    tagger = train(n=60)
    assert tagger.fusion_ is None
    assert set(tagger.classes_) == set(NAMES)
    assert len(tagger.suggest([{"title": "On milk", "text": ""}], 5)[0]) == 5


def test_names_of_other_tags_only_and_names_without_words_do_no_harm():
    tagger = train(names={"other": "wheat", "t0": "...", "t1": "wheat"})
    assert "other" in tagger.classes_
    assert tagger.suggest(["wheat"], 3)[0]


def test_all_names_of_a_tag_are_found_and_the_field_is_said():
    names = TagNames(
        [
            ("t0", Name("olive", "en")),
            ("t0", Name("code0x (oil)", "", False)),
            *((t, Name(n)) for t, n in NAMES.items()),
        ]
    )
    tagger = train(names=names)
    for record, name, field in (
        ({"title": "On olives", "text": ""}, "olive", "title"),
        ({"title": "On aid", "text": "code0x"}, "code0x (oil)", "text"),
    ):
        match = tagger.explain(record, "t0").match
        assert (match.name, match.field) == (name, field)
        assert name in tagger.explain(record, "t0").to_text()
    assert tagger.explain("wheat", "t0").match is None


def test_an_explanation_adds_up_to_the_fused_probability(tagger):
    records, _ = make_records(20, seed=9)
    for record in records:
        for one in tagger.suggest([record], 3)[0]:
            found = tagger.explain(record, one.tag)
            assert found.probability == pytest.approx(one.probability, rel=1e-4)
            words = sum(value for _, value in found.contributions)
            whole = words + (found.match.value if found.match else 0.0)
            assert whole == pytest.approx(math.log(found.probability / found.baseline), abs=1e-4)
            assert sum(level.change for level in found.levels) == pytest.approx(words, abs=1e-4)


def test_a_tag_without_a_leaf_is_explained_by_its_name():
    tagger = train(names=NAMES | {"new": "zebra"})  # no record has the word, so there is no row for the name
    assert not tagger.estimator_.has_leaf(list(tagger.classes_).index("new"))
    found = tagger.explain("zebra", "new")
    assert found.contributions == []
    assert found.match.name == "zebra"
    assert "zebra" in found.to_text()
    assert found.match.value > 1
    probability = {one.tag: one.probability for one in tagger.suggest(["zebra"], 1000)[0]}
    assert probability["new"] == pytest.approx(found.probability, rel=1e-4)
    assert "new" not in [one.tag for one in tagger.suggest(["wheat"], 1000)[0]]


def test_updates_keep_the_fusion_in_step_with_the_tags():
    tagger = train()
    records, tags = make_records(50, seed=11)
    tagger.partial_fit(records, tags)
    assert tagger.estimator_.n_rows_ == 650
    tagger.add_labels(["fresh"], ["a fresh topic"], [["fresh"]])
    tagger.remove_labels(["t0", "t1"])
    assert len(tagger.estimator_.score_map_.slope) == tagger.estimator_.n_labels_ == len(tagger.classes_)
    names = {one.tag for row in tagger.suggest(records, 5) for one in row}
    assert not names & {"t0", "t1"}
    wheat = tagger.explain("wheat and cod", "t2")
    assert wheat.match.name == "cod"
    tagger.rename_labels({"t2": "fish"})
    assert tagger.explain("wheat and cod", "fish").match.name == "cod"
    tagger.refit(records, tags)
    assert tagger.suggest(records, 3)


def test_weights_of_records_are_checked_and_used():
    records, tags = make_records(600)
    tagger = ll.Tagger(ll.PLT(n_trees=1, random_state=1, n_jobs=1), None, NAMES)
    with pytest.raises(ValueError, match="sample_weight must be 600"):
        tagger.fit(records, tags, sample_weight=np.ones(5))
    heavy = np.where([("t0" in row) for row in tags], 5.0, 0.1)
    weighted = tagger.fit(records, tags, sample_weight=heavy).predict_proba(["aid"], ["t0"])[0, 0]
    assert weighted > tagger.fit(records, tags).predict_proba(["aid"], ["t0"])[0, 0] * 0.5


def test_on_the_bundled_laws_names_find_more_rare_concepts():
    sample = load_sample()
    texts, tags = sample.texts_train[:2500], sample.tags_train[:2500]
    found = []
    for names in (None, sample.names):
        tagger = ll.Tagger(ll.PLT(n_trees=1, random_state=1), None, names).fit(texts, tags)
        Y = tagger.transform_tags(sample.tags_test, unseen="add")
        counts = np.pad(tagger.estimator_.label_counts_, (0, Y.shape[1] - len(tagger.classes_)))
        q = ll.propensity.inverse_propensity_from_counts(counts, 2500)
        top = tagger.estimator_.top_k(tagger._rows(sample.texts_test), 5, tail=1.0)
        found.append(ll.metrics.evaluate(Y, top, inverse_propensity=q, k=(5,))["psp@5"])
    assert found[1] > found[0] + 3


def test_tags_of_a_single_record_show_what_names_of_unseen_tags_are_worth():
    Y = sp.csr_array(np.eye(600, dtype=np.float32))
    assert not held_out_rows(Y, 1).any()
    assert held_out_rows(Y, 1, any_row=True).sum() == 60
