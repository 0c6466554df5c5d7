"""Taggers that keep their training records, and show those similar to a text."""

from __future__ import annotations

import copy
import io
import json
import pickle

import numpy as np
import pytest

import longleaf as ll
from longleaf.io.storage import folder_bytes, load_folder
from longleaf.io.tables import Record, read_table
from tests.helpers.storage import replace_array
from tests.helpers.tagging import TAGS, TEXTS, make_tagger, small

TEXT = "olive oil from Crete, and barley"


def keeping(**params):
    return ll.Tagger(small(**params), keep_records=True).fit(TEXTS, TAGS)


@pytest.fixture(scope="module")
def tagger():
    return keeping()


def shared_words(text, other):
    return set(text.lower().replace(",", "").split()) & set(other.lower().split())


def test_similar_records_carry_the_tag_and_share_words(tagger):
    found = tagger.similar(TEXT, "oil", n=5)
    assert len(found) == 5
    assert [one.similarity for one in found] == sorted((one.similarity for one in found), reverse=True)
    for one in found:
        assert "oil" in TAGS[int(one.id)]
        assert TEXTS[int(one.id)].startswith(one.title.rstrip("…"))
        assert shared_words(TEXT, TEXTS[int(one.id)])


def test_a_training_text_is_most_similar_to_itself(tagger):
    for row in range(0, len(TEXTS), 9):
        assert tagger.similar(TEXTS[row], TAGS[row][0], n=1)[0].similarity == pytest.approx(1)


def test_the_similarity_is_the_cosine_of_tf_idf(tagger):
    X = ll.TextVectorizer.for_tags().fit_transform(TEXTS)
    cosines = (X @ tagger.vectorizer_.transform([TEXT]).T).toarray().ravel()
    for one in tagger.similar(TEXT, "wine", n=10):
        assert one.similarity == pytest.approx(cosines[int(one.id)], abs=0.01)


def test_explanations_have_records_where_they_are_kept(tagger):
    found = tagger.explain(TEXT, "oil")
    assert found.records == tagger.similar(TEXT, "oil", n=3)
    last = found.to_text().splitlines()[-3:]
    for line, one in zip(last, found.records, strict=True):
        assert line.split(maxsplit=2) == [f"{one.similarity:.3f}", one.id, one.title]
    without = make_tagger()
    assert without.records_ is None
    assert without.explain(TEXT, "oil").records == ()
    assert "similar" not in without.explain(TEXT, "oil").to_text()


def test_keeping_records_changes_no_suggestion(tagger):
    plain = ll.Tagger(small()).fit(TEXTS, TAGS)
    assert tagger.suggest(TEXTS, tail=0.5, explain=True) == plain.suggest(TEXTS, tail=0.5, explain=True)


def test_what_cannot_be_similar_is_said(tagger):
    with pytest.raises(ValueError, match="keep_records must be true in fit to find similar records"):
        make_tagger().similar(TEXT, "oil")
    with pytest.raises(ValueError, match="tag must name tags of the model; 'tea' is none"):
        tagger.similar(TEXT, "tea")
    with pytest.raises(TypeError, match="text must be a string or a record of fields; got list"):
        tagger.similar([TEXT], "oil")
    with pytest.raises(ValueError, match="n must be at least 1; got 0"):
        tagger.similar(TEXT, "oil", n=0)
    assert tagger.similar("zzz", "oil") == ()


def test_fitting_again_without_records_drops_them(tagger):
    again = copy.deepcopy(tagger).set_params(keep_records=False).fit(TEXTS, TAGS)
    assert again.records_ is None


def test_other_vectorizers_and_generators_keep_records_too():
    from sklearn.feature_extraction.text import TfidfVectorizer

    other = ll.Tagger(small(), TfidfVectorizer(sublinear_tf=True), keep_records=True)
    other.fit((text for text in TEXTS), TAGS)
    words = ll.Tagger(small(), ll.TextVectorizer(), keep_records=True).fit(TEXTS, TAGS)
    assert [one.id for one in other.similar(TEXT, "oil")] == [one.id for one in words.similar(TEXT, "oil")]


# ------------------------------------------------------------ ids and titles


def table(rows):
    content = "".join(json.dumps(row) + "\n" for row in rows).encode()
    return read_table(io.BytesIO(content))


def test_records_go_by_their_ids_or_else_by_their_rows_in_the_table():
    rows = [
        {"id": "a7", "title": "Olive oil", "text": "pressed in Crete", "tags": ["oil"]},
        {"title": "Of no use: it has no tags"},
        {"title": "Oil of olives", "text": "again\nand again", "tags": ["oil"]},
        {"id": "a8", "title": "Red wine", "text": "in barrels", "tags": ["wine"]},
    ]
    tagger = ll.Tagger(small(), keep_records=True).fit_records(table(rows))
    found = {one.id: one.title for one in tagger.similar("olive oil again", "oil")}
    assert set(found) == {"a7", "2"}
    assert found["a7"].startswith("Olive oil")
    assert found["2"].startswith("Oil of olives")
    tagger.partial_fit_records(table([{"id": "b1", "title": "Oil", "text": "olive", "tags": ["oil"]}]))
    assert "b1" in {one.id for one in tagger.similar("olive oil", "oil")}


def test_the_title_of_a_record_with_fields_is_the_first_of_them():
    rows = [Record(name, {"title": name, "text": "x" * 300}, [name], 0) for name in ("olive", "wine")]
    tagger = ll.Tagger(small(), keep_records=True).fit_records(rows)
    assert tagger.similar("olive", "olive")[0].title == "olive"


# ------------------------------------------------------------ learning further


def test_new_rows_are_kept_with_numbers_that_go_on(tagger):
    model = copy.deepcopy(tagger)
    model.partial_fit(["olives and herring in oil"], [["oil", "tapas"]])
    (new,) = model.similar("herring in oil", "tapas")
    assert new.id == str(len(TEXTS))
    assert new.title == "olives and herring in oil"
    assert len(model.records_) == len(TEXTS) + 1
    assert model.similar("olives and herring in oil", "oil")[0] == new._replace(similarity=1.0)
    assert len(tagger.records_) == len(TEXTS)


def test_added_renamed_and_removed_tags_have_the_right_records(tagger, tmp_path):
    model = copy.deepcopy(tagger)
    oil, wine = model.similar(TEXT, "oil"), model.similar(TEXT, "wine")
    model.add_labels(["beer"])
    assert model.similar(TEXT, "beer") == ()
    model.add_labels(["tea"], ["barley tea", "bread"], [["tea"], ["cereals"]])
    assert [one.title for one in model.similar(TEXT, "tea")] == ["barley tea"]
    model.rename_labels({"oil": "wine", "wine": "oil"})
    assert model.similar(TEXT, "wine") == oil
    assert model.similar(TEXT, "oil") == wine
    model.remove_labels(["wine"])
    assert model.similar(TEXT, "wine") == ()
    assert model.similar(TEXT, "oil") == wine
    model.partial_fit(["olive again"], [["wine"]])
    assert [one.title for one in model.similar(TEXT, "wine")] == ["olive again"]
    model.save(tmp_path / "learned.ll")
    again = ll.load(tmp_path / "learned.ll")
    for tag in model.classes_:
        assert again.similar(TEXT, tag) == model.similar(TEXT, tag)


def test_training_again_keeps_the_rows_that_it_is_given(tagger):
    model = copy.deepcopy(tagger)
    model.refit(TEXTS[:50], [tags if "oil" not in tags else ["fish"] for tags in TAGS[:50]])
    assert len(model.records_) == 50
    assert model.similar(TEXT, "oil") == ()
    assert make_tagger().refit(TEXTS, TAGS).records_ is None


# ------------------------------------------------------------ saving


def test_records_are_saved_and_mapped_and_older_models_have_none(tagger, tmp_path):
    tagger.save(tmp_path / "kept.ll")
    ll.Tagger(small()).fit(TEXTS, TAGS).save(tmp_path / "plain.ll")
    again, plain = ll.load(tmp_path / "kept.ll", verify=True), ll.load(tmp_path / "plain.ll")
    assert again.keep_records
    assert again.explain(TEXT, "oil") == tagger.explain(TEXT, "oil")
    assert not again.records_.features.rows.flags.writeable
    assert not plain.keep_records
    assert plain.records_ is None
    assert not [name for name in load_folder(tmp_path / "plain.ll").arrays if name.startswith("records")]
    assert folder_bytes(tmp_path / "kept.ll") > folder_bytes(tmp_path / "plain.ll") + again.records_.n_bytes
    again.partial_fit(["olive bread"], [["oil"]]).save(tmp_path / "more.ll")
    assert len(ll.load(tmp_path / "more.ll").records_) == len(TEXTS) + 1
    again.records_ = None
    again.save(tmp_path / "dropped.ll")
    assert ll.load(tmp_path / "dropped.ll").records_ is None


def test_records_are_pickled(tagger):
    again = pickle.loads(pickle.dumps(tagger))
    assert again.similar(TEXT, "oil") == tagger.similar(TEXT, "oil")


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        (
            "features/rows",
            lambda a: a + len(TEXTS),
            "its training records are damaged: records/features/rows",
        ),
        ("features/offsets", lambda a: a[:-1], "records/features/offsets.npy must be"),
        ("labels/offsets", lambda a: np.append(a, a[-1:]), "records/labels/offsets.npy must be"),
        ("titles/bytes", lambda a: a | 0x80, "records/titles/bytes.npy must be UTF-8"),
        ("lengths", lambda a: a.astype(np.int8), "records/lengths.npy must be a list of int32"),
    ],
)
def test_damaged_records_are_a_model_error(tagger, tmp_path, name, change, message):
    path = tmp_path / "model.ll"
    tagger.save(path)
    replace_array(path, f"records/{name}", change(tagger.records_.state()[name]))
    with pytest.raises(ll.ModelError, match=message):
        ll.load(path)
