from __future__ import annotations

import json
import pickle
import re
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_matrix
from sklearn.base import clone
from sklearn.feature_extraction.text import HashingVectorizer, TfidfTransformer, TfidfVectorizer
from sklearn.pipeline import make_pipeline

from longleaf.text.characters import CONTEXTUAL, SPACE, WORD, character_table
from longleaf.text.vectorizer import TextVectorizer
from tests.helpers.data import LAWS, read_texts, shared
from tests.helpers.same import same_matrix

pytestmark = pytest.mark.native

TEXTS = [
    "Olive oil, olive trees: the OLIVE of Crete.",
    "Öl und Bäume; die Ölpreise in Österreich 2021",
    "trees_and oil   and\t\noil  a b c ab",
    "",
    "ΟΔΟΣ ΣΑΣ İstanbul ǅ straße STRASSE ﬁne ١٢٣ x² 你好世界 नमस्ते \U0001d400\U0001d401 \U00010400z",
    "   \u2003oil\x1ftrees\x85Öl ",
]
SETTINGS = [
    {},
    {"ngram_range": (1, 2)},
    {"ngram_range": (2, 3)},
    {"analyzer": "char", "ngram_range": (1, 3)},
    {"analyzer": "char", "ngram_range": (2, 4), "lowercase": False},
    {"analyzer": "char_wb", "ngram_range": (3, 5)},
    {"analyzer": "char_wb", "ngram_range": (1, 9)},
    {"lowercase": False},
    {"sublinear_tf": False},
    {"use_idf": False, "norm": "l1"},
    {"smooth_idf": False, "norm": None},
    {"min_df": 2},
    {"max_df": 0.4},
    {"max_df": 2, "min_df": 0.2, "ngram_range": (1, 2)},
    {"max_features": 5},
]


def as_scikit_learn(texts, **setting):
    peer = TfidfVectorizer(**{"sublinear_tf": True, **setting})
    return peer, peer.fit_transform(texts)


def assert_same_rows(actual, expected):
    assert actual.shape == expected.shape
    assert actual.has_sorted_indices
    expected = csr_matrix(expected)
    expected.sort_indices()
    np.testing.assert_array_equal(actual.indptr, expected.indptr)
    np.testing.assert_array_equal(actual.indices, expected.indices)
    np.testing.assert_allclose(actual.data, expected.data, rtol=1e-6, atol=1e-7)


def assert_like_scikit_learn(texts, **setting):
    ours = TextVectorizer(n_jobs=2, **setting)
    actual = ours.fit_transform(texts)
    peer, expected = as_scikit_learn(texts, **setting)
    assert ours.get_feature_names_out().tolist() == peer.get_feature_names_out().tolist()
    assert actual.dtype == np.float32
    assert_same_rows(actual, expected)
    same_matrix(ours.transform(texts), actual)
    same_matrix(clone(ours).fit(texts).transform(texts), actual)
    return ours, peer


@pytest.mark.parametrize("setting", SETTINGS, ids=str)
def test_vocabulary_and_values_are_those_of_scikit_learn(setting):
    ours, peer = assert_like_scikit_learn(TEXTS, **setting)
    unseen = ["Oil from İstanbul, ΟΔΟΣ und Öl ab 2021", "nothing known"]
    assert_same_rows(ours.transform(unseen), peer.transform(unseen))


@pytest.mark.parametrize("name", ["laws", "tib-sid/dev.jsonl.xz"])
@pytest.mark.parametrize(
    "setting",
    [
        {},
        {"ngram_range": (1, 2), "min_df": 2, "max_df": 0.5},
        {"max_features": 3000},
        {"analyzer": "char_wb", "ngram_range": (3, 4), "max_features": 20000},
        {"analyzer": "char", "ngram_range": (2, 3)},
        {"lowercase": False},
    ],
    ids=str,
)
def test_real_laws_and_library_records_give_what_scikit_learn_gives(name, setting):
    path = LAWS if name == "laws" else shared(name)
    assert_like_scikit_learn(read_texts(path, limit=1500), **setting)


ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=30)
TRICKY_TEXT = st.text(
    st.sampled_from("aBä_ÄΣσςİi̇ıK\u0345\u00ad'. \t\n\x1c\u2003Ⱥ2²½字\ud800\udfffǅ𐐀"), max_size=12
)


@settings(max_examples=5 * settings.default.max_examples)
@given(st.lists(ANY_TEXT | TRICKY_TEXT, max_size=5), st.sampled_from(SETTINGS[:8]))
def test_any_unicode_string_is_read_as_scikit_learn_reads_it(texts, setting):
    assert_like_scikit_learn(["ab AB abcd", *texts], **setting)


@pytest.mark.parametrize("lowercase", [True, False])
def test_every_code_point_is_classed_as_python_classes_it(lowercase):
    table = character_table(lowercase)
    for code in range(0x110000):
        character = chr(code)
        if lowercase and character not in CONTEXTUAL:
            character = character.lower()
        word = WORD * (character.isalnum() or character == "_")
        assert table[code] == ord(character) | word | SPACE * character.isspace()


@pytest.mark.parametrize(
    "setting", [{}, {"ngram_range": (1, 2), "max_features": 500}, {"hashing": 256}], ids=str
)
def test_the_number_of_threads_and_batches_does_not_change_a_bit(setting, monkeypatch):
    rng = np.random.default_rng(1)
    words = np.array([f"wort{'äöü'[i % 3]}{i}" for i in range(3000)])
    texts = [" ".join(words[rng.zipf(1.3, size=rng.integers(0, 200)) % 3000]) for _ in range(900)]
    expected = TextVectorizer(n_jobs=1, **setting).fit(texts)
    rows = expected.transform(texts)
    for batch_texts in (7, 250, 4096):
        monkeypatch.setattr("longleaf.text.batches.BATCH_TEXTS", batch_texts)
        for n_jobs in (1, 2, 5):
            actual = TextVectorizer(n_jobs=n_jobs, **setting)
            same_matrix(actual.fit_transform(texts), rows)
            assert actual.get_feature_names_out().tolist() == expected.get_feature_names_out().tolist()
            same_matrix(actual.transform(texts), rows)


def test_hashed_columns_are_those_of_scikit_learns_hashing():
    texts = [text for text in TEXTS if text]
    peer = make_pipeline(
        HashingVectorizer(n_features=64, alternate_sign=False, norm=None), TfidfTransformer(sublinear_tf=True)
    )
    ours = TextVectorizer(hashing=64)
    rows = ours.fit_transform(texts)
    assert_same_rows(rows, peer.fit_transform(texts))
    same_matrix(TextVectorizer(hashing=64, n_jobs=3).fit(iter(texts)).transform(texts), rows)
    assert ours.get_feature_names_out()[[0, 63]].tolist() == ["hash0", "hash63"]
    assert ours.vocabulary_ == {}


def test_hashed_columns_in_too_few_texts_are_left_out():
    ours = TextVectorizer(hashing=1024, min_df=2).fit(["olive oil", "olive trees"])
    assert np.count_nonzero(ours.idf_) == 1
    assert ours.transform(["olive oil trees pine"]).nnz == 1


def words_joined(text):
    """Return the words of a text with a single space around each."""
    return "".join(f" {word}" for word in re.findall(r"(?u)\b\w\w+\b", text.lower())) + " "


def test_words_and_character_ngrams_across_them_share_one_matrix():
    ours = TextVectorizer(char_ngram_range=(3, 4), norm=None, n_jobs=2)
    rows = ours.fit_transform(TEXTS)
    names = ours.get_feature_names_out()
    marked = np.array([name.startswith("~") for name in names])
    assert names.tolist() == sorted(names)
    ngrams = {"analyzer": "char", "ngram_range": (3, 4), "preprocessor": words_joined, "min_df": 2}
    for chosen, setting in ((~marked, {}), (marked, ngrams)):
        peer, expected = as_scikit_learn(TEXTS, norm=None, **setting)
        assert [name.removeprefix("~") for name in names[chosen]] == peer.get_feature_names_out().tolist()
        np.testing.assert_allclose(rows[:, chosen].toarray(), expected.toarray(), rtol=1e-6)


def test_character_ngrams_in_a_single_text_or_in_very_many_are_dropped():
    texts = [f"common rare{number // 2:05}" for number in range(300)] + ["lonely"]
    names = TextVectorizer(char_ngram_range=(5, 5)).fit(texts).get_feature_names_out()
    ngrams = {name for name in names if name.startswith("~")}
    assert "~00149" in ngrams  # of two texts
    assert not ngrams & {"~lonel", "~ommon"}
    assert {"lonely", "common"} <= set(names)


def test_a_hand_worked_row():
    ours = TextVectorizer(norm=None)
    rows = ours.fit_transform(["oil oil tree", "tree"])
    idf = 1 + np.log(3 / 2)
    np.testing.assert_allclose(rows.toarray(), [[(1 + np.log(2)) * idf, 1], [0, 1]], rtol=1e-6)
    assert ours.vocabulary_ == {"oil": 0, "tree": 1}


@pytest.mark.parametrize("setting", [{"ngram_range": (1, 2)}, {"hashing": 32}], ids=str)
def test_a_saved_vectorizer_transforms_bit_for_bit(setting):
    fitted = TextVectorizer(min_df=np.int64(1), **setting).fit(TEXTS)
    expected = fitted.transform(TEXTS)
    parameters, arrays = fitted.state()
    assert all(array.dtype.kind in "uif" for array in arrays.values())
    loaded = TextVectorizer.from_state(json.loads(json.dumps(parameters)), arrays)
    same_matrix(loaded.transform(TEXTS), expected)
    same_matrix(pickle.loads(pickle.dumps(fitted)).transform(TEXTS), expected)
    assert loaded.get_params() == fitted.get_params()


def test_a_damaged_vocabulary_is_refused():
    parameters, arrays = TextVectorizer().fit(TEXTS).state()
    offsets = arrays["term_offsets"].copy()
    offsets[1] = 10**9
    with pytest.raises(ValueError, match="term_offsets must rise from 0 to"):
        TextVectorizer.from_state(parameters, {**arrays, "term_offsets": offsets})
    with pytest.raises(ValueError, match="term_offsets must have"):
        TextVectorizer.from_state(parameters, {**arrays, "idf": arrays["idf"][1:]})


def test_fit_reads_a_stream_and_does_not_keep_it(monkeypatch):
    monkeypatch.setattr("longleaf.text.batches.BATCH_TEXTS", 10)
    tracemalloc.start()
    try:
        ours = TextVectorizer().fit("öl " * 30_000 + str(row) for row in range(200))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert "öl" in ours.vocabulary_
    assert peak < 15e6  # a batch of ten; all the texts are 24 MB as UTF-8 and 18 MB as strings


def test_no_texts_are_transformed_into_no_rows():
    rows = TextVectorizer().fit(TEXTS).transform([])
    assert rows.shape[0] == 0


@pytest.mark.parametrize(
    ("setting", "texts", "message"),
    [
        ({}, ["a1", "b2", 17], r"texts\[2\] must be a string or a record of fields; got int\."),
        ({}, "one text", r"texts must be an iterable of strings; got a single str\."),
        ({}, [b"bytes"], r"texts\[0\] must be a string or a record of fields; got bytes\."),
        ({}, ["a", "."], r"texts must contain at least one term; got 2 texts without any\."),
        ({}, [], r"texts must contain at least one term; got 0 texts without any\."),
        ({"hashing": 8}, [], r"texts must contain at least one term; got 0 texts without any\."),
        ({"min_df": 3}, ["ab", "cd"], r"max_df must allow at least as many texts as min_df; .*2 and 3 of 2"),
        ({"min_df": 2}, ["ab", "cd"], r"must leave at least one of 2 terms; none is in 2 to 2 of 2 texts\."),
        ({"min_df": 0}, ["ab"], r"min_df must be an integer of at least 1 or a float from 0 to 1; got 0\."),
        ({"max_df": 1.5}, ["ab"], r"max_df must be an integer .* got 1\.5\."),
        ({"ngram_range": (2, 1)}, ["ab"], r"ngram_range must be two integers, .* got \(2, 1\)\."),
        ({"analyzer": "words"}, ["ab"], r"analyzer must be one of 'word', 'char', 'char_wb'; got 'words'\."),
        ({"norm": "l3"}, ["ab"], r"norm must be one of 'l2', 'l1', None; got 'l3'\."),
        ({"hashing": 0}, ["ab"], r"hashing must be None or an integer from 1 to 2\*\*31 - 1; got 0\."),
        ({"hashing": 9, "max_features": 3}, ["ab"], r"max_features must be None with hashing"),
        ({"analyzer": "char", "char_ngram_range": (1, 2)}, ["ab"], r"char_ngram_range must be None unless"),
        ({"n_jobs": 0}, ["ab"], r"n_jobs must be a whole number other than 0, or None; got 0\."),
    ],
)
def test_what_is_wrong_is_said_in_one_sentence(setting, texts, message):
    with pytest.raises((ValueError, TypeError), match=message):
        TextVectorizer(**setting).fit(texts)
