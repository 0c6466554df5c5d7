"""Records with fields: each of unit length by itself, weighted, and added in the same columns."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

import longleaf as ll
from longleaf.text.field_rows import FieldRows
from longleaf.text.fields import check_fields, field_texts, joined_text
from tests.helpers.same import same_matrix

pytestmark = pytest.mark.native

RECORDS = [
    {"title": "Olive oil", "text": "Grades of olive oil, of the oil of olives"},
    {"title": "", "text": "wheat and oil"},
    {"title": "Wheat", "text": ""},
    {"title": "wheat wheat", "text": "olive"},
]
WORDS = st.lists(st.sampled_from(["oil", "olive", "öl", "wheat", "x", "cod"]), max_size=6).map(" ".join)


def by_field(vectorizer, records, fields):
    """Vectorize every field by itself, with the vectorizer's vocabulary and idf."""
    return [
        vectorizer.transform([{name: (r[name] if name == one else "") for name in fields} for r in records])
        for one in fields
    ]


def reference_rows(records, weights, **settings):
    """Count, weight, scale and add, field by field, with plain scipy."""
    plain = ll.TextVectorizer(sublinear_tf=False, use_idf=False, norm=None, **settings)
    joined = plain.fit_transform([joined_text(record) for record in records])
    frequency = np.asarray((joined > 0).sum(axis=0)).ravel()
    idf = np.log((1 + len(records)) / (1 + frequency)) + 1
    total = sp.csr_array(joined.shape)
    for name, weight in weights.items():
        counts = sp.csr_array(plain.transform([record[name] for record in records]), dtype=np.float64)
        counts.data = 1 + np.log(counts.data)
        values = counts @ sp.diags_array(idf)
        length = np.sqrt(values.multiply(values).sum(axis=1))
        total = total + sp.diags_array(weight / np.where(length > 0, length, 1)) @ values
    return total.toarray()


@given(
    st.lists(st.fixed_dictionaries({"title": WORDS, "text": WORDS, "note": WORDS}), min_size=1, max_size=8),
    st.tuples(*[st.sampled_from([0.0, 0.5, 1.0, 3.0])] * 3),
)
def test_rows_are_the_weighted_sum_of_fields_of_unit_length(records, numbers):
    records = [{"title": "oil", "text": "cod", "note": "öl"}, *records]
    weights = dict(zip(("title", "text", "note"), numbers, strict=True))
    if not any(numbers):
        weights["text"] = 1.0
    rows = ll.TextVectorizer(fields=weights).fit_transform(records)
    np.testing.assert_allclose(rows.toarray(), reference_rows(records, weights), rtol=1e-5, atol=1e-6)
    assert rows.has_sorted_indices


def test_fields_are_those_of_the_first_record_and_weigh_the_same():
    vectorizer = ll.TextVectorizer().fit(
        [{"id": "7", "title": "a b", "tags": ["x"], "lang": "de", "text": "oil"}]
    )
    assert vectorizer.field_weights_ == {"title": 1.0, "text": 1.0}
    assert ll.TextVectorizer(fields=["text"]).fit(RECORDS).field_weights_ == {"text": 1.0}
    assert ll.TextVectorizer().fit(["plain text"]).field_weights_ == {}


def test_a_plain_text_is_the_last_field():
    vectorizer = ll.TextVectorizer().fit(RECORDS)
    same_matrix(
        vectorizer.transform(["olive oil"]), vectorizer.transform([{"title": "", "text": "olive oil"}])
    )


def test_a_single_field_and_an_empty_one_are_a_plain_text():
    texts = [joined_text(record) for record in RECORDS]
    plain = ll.TextVectorizer().fit_transform(texts)
    same_matrix(ll.TextVectorizer().fit_transform([{"text": text} for text in texts]), plain)
    with_empty = ll.TextVectorizer().fit_transform([{"title": "", "text": text} for text in texts])
    same_matrix(with_empty, plain)
    same_matrix(
        ll.TextVectorizer().fit([*texts]).transform(RECORDS), plain
    )  # without fields, they are joined


def test_a_term_counts_once_per_record_however_many_fields_have_it():
    vectorizer = ll.TextVectorizer(min_df=2).fit(
        [{"a": "oil", "b": "oil"}, {"a": "cod", "b": "wheat"}, {"a": "cod"}]
    )
    assert vectorizer.get_feature_names_out().tolist() == ["cod"]


@pytest.mark.parametrize("settings", [{}, {"char_ngram_range": (3, 5)}, {"hashing": 64}, {"norm": "l1"}])
def test_threads_and_batches_and_saving_change_nothing(settings, monkeypatch):
    records = [
        {"title": f"number {i} olive", "text": f"text {i % 7} of {i % 11} oil " * (i % 5)}
        for i in range(3000)
    ]
    one = ll.TextVectorizer(fields={"title": 2.0, "text": 1.0}, n_jobs=1, **settings)
    expected = one.fit_transform(iter(records))
    monkeypatch.setattr("longleaf.text.batches.BATCH_TEXTS", 7)
    three = ll.TextVectorizer(fields={"title": 2.0, "text": 1.0}, n_jobs=3, **settings)
    same_matrix(three.fit_transform(records), expected)
    same_matrix(one.transform(records), expected)
    again = ll.TextVectorizer.from_state(*one.state())
    assert again.field_weights_ == {"title": 2.0, "text": 1.0}
    same_matrix(again.transform(records), expected)


def test_weights_scale_the_share_of_their_field():
    vectorizer = ll.TextVectorizer(fields={"title": 3.0, "text": 1.0}).fit(RECORDS)
    title, text = by_field(vectorizer, RECORDS, ["title", "text"])
    np.testing.assert_allclose(vectorizer.transform(RECORDS).toarray(), (title + text).toarray(), rtol=1e-6)
    np.testing.assert_allclose(sp.linalg.norm(title[[0]]), 3.0, rtol=1e-6)


def test_values_may_be_lists_of_strings_or_nothing():
    assert field_texts({"a": ["x", "y"], "b": None, "c": float("nan")}, ["a", "b", "c", "d"], 0) == [
        "x y",
        "",
        "",
        "",
    ]
    assert joined_text({"a": ["x", "y"], "b": None, "id": "7"}) == "x y"


@pytest.mark.parametrize(
    ("texts", "error", "message"),
    [
        (
            [{"title": "a b"}, {"body": "c"}],
            ValueError,
            r"texts\[1\] must have one of the fields title; got body\.",
        ),
        ([{"title": "a b"}, {}], ValueError, r"texts\[1\] must have one of the fields title; got none\."),
        (
            [{"title": 3}],
            TypeError,
            r"texts\[0\]\['title'\] must be a string or a list of strings; got int\.",
        ),
        ([{"title": "a b"}, 7], TypeError, r"texts\[1\] must be a string or a record of fields; got int\."),
        ({"title": "a b"}, TypeError, r"texts must be an iterable of strings; got a single dict\."),
    ],
)
def test_what_is_no_record_of_the_model_is_refused(texts, error, message):
    with pytest.raises(error, match=message):
        ll.TextVectorizer().fit(texts)


@pytest.mark.parametrize(
    ("fields", "error", "message"),
    [
        ("title", TypeError, "fields must map names to weights, or list names; got 'title'"),
        ({"title": -1.0}, ValueError, "the weight of field 'title' must be"),
        ({"title": np.nan}, ValueError, "the weight of field 'title' must be"),
        ({"title": 0.0}, ValueError, "fields must have a weight above 0; got only zeros"),
        ({3: 1.0}, TypeError, "fields must have strings as names; got 3"),
    ],
)
def test_fields_that_cannot_be_are_refused(fields, error, message):
    with pytest.raises(error, match=message):
        check_fields(fields)
    with pytest.raises(error, match=message):
        ll.TextVectorizer(fields=fields).fit(RECORDS)


def test_a_data_frame_is_a_record_per_row():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(RECORDS * 10)
    tags = [["oil"], ["wheat"], ["wheat"], ["oil"]] * 10
    one = ll.Tagger(ll.PLT(n_trees=1, random_state=1, n_jobs=1)).fit(frame, tags)
    two = ll.Tagger(ll.PLT(n_trees=1, random_state=1, n_jobs=1)).fit(RECORDS * 10, tags)
    assert one.suggest(frame, 2) == two.suggest(RECORDS * 10, 2)


def test_rows_by_field_are_the_rows_of_any_weights():
    texts = [*RECORDS, "a plain olive text"]
    vectorizer = ll.TextVectorizer(fields={"title": 2.0, "text": 1.0}, char_ngram_range=(3, 4)).fit(RECORDS)
    rows = FieldRows.of(vectorizer, texts)
    assert rows.weights == vectorizer.field_weights_
    assert rows.shape == (5, len(vectorizer.idf_))
    for weights in ({"title": 2.0, "text": 1.0}, {"title": 0.5, "text": 3.0}, {"title": 0.0, "text": 1.0}):
        expected = vectorizer.reweighted(weights).transform(texts).toarray()
        np.testing.assert_allclose(rows.weighted(weights).toarray(), expected, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(
            rows[[4, 1]].weighted(weights).toarray(), expected[[4, 1]], rtol=1e-5, atol=1e-6
        )
    with pytest.raises(ValueError, match="weights must have the fields title, text; got title"):
        vectorizer.reweighted({"title": 1.0})
    assert vectorizer.field_weights_ == {"title": 2.0, "text": 1.0}
