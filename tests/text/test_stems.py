"""Stems beside words: by the record's language, and like a reference that stems word by word."""

import re
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import longleaf as ll
from longleaf import _core
from longleaf.text.characters import character_table
from longleaf.text.stems import SNOWBALL, check_languages, language_of
from tests.helpers.same import same_matrix

pytestmark = pytest.mark.native

Stemmer = pytest.importorskip("Stemmer", reason="needs the extra stem")

RECORDS = [
    {"title": "Die Häuser am See", "text": "Häuser und Boote", "lang": "ger"},
    {"title": "Houses", "text": "running boats, houses", "lang": "en"},
    {"title": "Häuser houses", "text": ""},
    {"title": "Maisons", "text": "les maisons", "lang": "fr"},
    {"title": "İstanbul ΟΔΟΣ", "text": "ǅ straßen x²", "lang": "de-AT"},
]
LANGUAGES = ("german", "english")


def reference_counts(record, names):
    """Count the stems of a record word by word: the distinct ones of its languages."""
    name = record.get("lang")
    known = LANGUAGES if not name else [one for one in LANGUAGES if one == language_of(name)]
    stemmers = [Stemmer.Stemmer(one) for one in known]
    counts = dict.fromkeys(names, 0)
    for field in ("title", "text"):
        for word in re.findall(r"(?u)\b\w\w+\b", record[field].lower()):
            for stem in {stemmer.stemWord(word) for stemmer in stemmers}:
                counts[f"^{stem}"] += 1
    return list(counts.values())


def fitted(records=RECORDS, **settings):
    plain = {"sublinear_tf": False, "use_idf": False, "norm": None}
    vectorizer = ll.TextVectorizer(stem=list(LANGUAGES), **(plain | settings))
    rows = vectorizer.fit_transform(records)
    return vectorizer, rows, vectorizer.get_feature_names_out()


def test_the_stems_of_a_record_are_those_of_its_language_or_of_all():
    vectorizer, rows, names = fitted()
    stems = np.array([name.startswith("^") for name in names])
    expected = [reference_counts(record, names[stems]) for record in RECORDS]
    assert rows[:, stems].toarray().tolist() == expected
    assert names[stems].tolist() == sorted(names[stems])
    bare = ll.TextVectorizer(sublinear_tf=False, use_idf=False, norm=None)
    np.testing.assert_array_equal(rows[:, ~stems].toarray(), bare.fit_transform(RECORDS).toarray())
    same_matrix(vectorizer.transform(RECORDS), rows)


def test_an_inflected_form_that_training_never_saw_has_a_known_stem():
    vectorizer, _, names = fitted([{"text": "Häuser", "lang": "de"}, {"text": "Boot", "lang": "de"}])
    row = vectorizer.transform([{"text": "Hauses Booten", "lang": "de"}])
    assert names[row.indices].tolist() == ["^boot", "^haus"]
    assert vectorizer.transform([{"text": "Hauses Booten", "lang": "fr"}]).nnz == 0


@given(
    st.lists(
        st.fixed_dictionaries(
            {
                "title": st.text(max_size=15),
                "text": st.text(st.sampled_from("aehnrsß üÄ\n"), max_size=20),
                "lang": st.sampled_from(["", "de", "eng", "German", "xx", None]),
            }
        ),
        min_size=1,
        max_size=6,
    )
)
def test_any_records_have_the_stems_of_the_reference(records):
    records = [{"title": "known words", "text": "", "lang": "en"}, *records]
    _, rows, names = fitted(records)
    stems = np.array([name.startswith("^") for name in names])
    expected = [reference_counts(record, names[stems]) for record in records]
    assert rows[:, stems].toarray().tolist() == expected


@pytest.mark.parametrize(
    "settings", [{}, {"hashing": 64}, {"char_ngram_range": (4, 5)}, {"lowercase": False}]
)
def test_threads_batches_and_saving_change_nothing(settings, monkeypatch):
    records = [RECORDS[i % 5] | {"title": f"Häuser {i} houses"} for i in range(3000)]
    one = ll.TextVectorizer(stem=["de", "en"], n_jobs=1, **settings)
    rows = one.fit_transform(records)
    monkeypatch.setattr("longleaf.text.batches.BATCH_TEXTS", 7)
    same_matrix(ll.TextVectorizer(stem=["german", "en"], n_jobs=3, **settings).fit_transform(records), rows)
    again = ll.TextVectorizer.from_state(*one.state())
    same_matrix(again.transform(records), rows)


def test_an_explanation_names_the_words_and_not_their_stems():
    texts = ["houses by the sea", "a house", "boats at sea", "the boat"] * 3
    tagger = ll.Tagger(
        ll.PLT(n_trees=1, random_state=1, n_jobs=1), ll.TextVectorizer(stem="en", char_ngram_range=(3, 4))
    ).fit(texts, [["house"], ["house"], ["boat"], ["boat"]] * 3)
    found = tagger.explain("housing and boating", "house")
    assert {word for word, _ in found.contributions} == {"housing", "boating"}
    assert dict(found.contributions)["housing"] > 0 > dict(found.contributions)["boating"]
    total = sum(value for _, value in found.contributions)
    assert total == pytest.approx(np.log(found.probability / found.baseline), abs=1e-6)


@pytest.mark.parametrize("language", SNOWBALL)
def test_every_language_is_one_of_pystemmers(language):
    assert language in Stemmer.algorithms()
    assert {language_of(code) for code in SNOWBALL[language]} == {language}


@pytest.mark.parametrize(
    ("languages", "error", "message"),
    [
        ("klingon", ValueError, "stem must list languages of arabic, .*; got 'klingon'"),
        ([], ValueError, "stem must name at least one language; got none"),
        (5, TypeError, "stem must list languages; got 5"),
        ([5], ValueError, "stem must list languages of arabic, .*; got 5"),
    ],
)
def test_unknown_languages_are_refused(languages, error, message):
    with pytest.raises(error, match=message):
        check_languages(languages)
    with pytest.raises(error, match=message):
        ll.TextVectorizer(stem=languages).fit(["some text"])


def test_only_words_have_stems():
    with pytest.raises(ValueError, match="stem must be None unless analyzer is 'word'; got 'char'"):
        ll.TextVectorizer(stem="de", analyzer="char").fit(["some text"])


def test_a_missing_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "Stemmer", None)
    with pytest.raises(ImportError, match=r"needs the extra stem, .*: pip install 'longleaf\[stem\]'"):
        ll.TextVectorizer(stem="de").fit(["some text"])


@pytest.mark.parametrize(
    ("words", "stems", "message"),
    [
        ([b"a", b"a"], [[b"a", b"a"]], "words must differ"),
        ([b"a"], [[b"a", b"b"]], "a stem for every word"),
        ([b"a"], [], "1 to 32 languages"),
        ([b"a"], [[b"a"]] * 33, "1 to 32 languages"),
    ],
)
def test_native_code_checks_stems_itself(words, stems, message):
    with pytest.raises(ValueError, match=message):
        _core.StemTable(words, stems, np.ones(1, np.uint32))


def test_native_code_checks_that_every_record_has_its_languages():
    table = _core.StemTable([b"oil"], [[b"oil"]], np.ones(2, np.uint32))
    assert len(table) == 2
    for analyzer, texts, message in ((0, ["oil"], "languages"), (1, ["oil", "oil"], "only words")):
        counter = _core.TextCounter(
            character_table(True), analyzer, (1, 1), (0, 0), 0, 1, None, 1, keep_rows=True
        )
        with pytest.raises(ValueError, match=message):
            counter.add(texts, table)
