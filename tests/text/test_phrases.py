from __future__ import annotations

import pickle
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from longleaf import _core
from longleaf.io.storage import load_folder, pack_strings, save_folder, unpack_strings
from longleaf.text import batches
from longleaf.text.characters import character_table
from longleaf.text.phrases import ARRAYS, PhraseIndex
from tests import reference
from tests.helpers.data import LAWS, read_texts

pytestmark = pytest.mark.native

PLAIN = st.text(st.sampled_from("abAB  "), max_size=12)
INFLECTED = st.lists(
    st.sampled_from(
        ["Banken", "banks", "Bank", "BÄNKE", "häusern", "haus", "öle", "s", "er", "(", ")", "<x>"]
    ),
    max_size=6,
).map(" ".join)
TRICKY = st.text(
    st.sampled_from("aäÄΣσςİi̇ıK\u0345\u00ad'_. \t\n\u2003(<)>²½字\ud800\udfffǅ𐐀ens"), max_size=12
)
NAME = PLAIN | INFLECTED | TRICKY
ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=30)


def phrases_of(index):
    return [tuple(phrase.split(" ")) for phrase in unpack_strings(index.phrase_bytes, index.phrase_offsets)]


def entries_of(index):
    entries = zip(index.entry_labels.tolist(), index.entry_brackets.tolist(), strict=True)
    listed = list(entries)
    return [dict(listed[begin:end]) for begin, end in pairwise(index.entry_ptr.tolist())]


def matches_of(found):
    columns = (found.phrases, found.in_first, found.counts, found.positions)
    rows = list(zip(*(column.tolist() for column in columns), strict=True))
    return [
        (rows[begin:end], n_words)
        for (begin, end), n_words in zip(pairwise(found.indptr.tolist()), found.n_words.tolist(), strict=True)
    ]


def found_texts(index, records):
    """Return the same whatever the numbers of the phrases."""
    phrases = phrases_of(index)
    return [
        ({phrases[number]: where for number, *where in rows}, n_words)
        for rows, n_words in matches_of(index.find(records))
    ]


def assert_same(actual, expected):
    for name, array in vars(expected).items():
        np.testing.assert_array_equal(getattr(actual, name), array, strict=True)


def assert_like_the_reference(names, labels, records):
    index = PhraseIndex(names, labels)
    expected = reference.phrases(names, labels)
    assert phrases_of(index) == list(expected)
    assert entries_of(index) == list(expected.values())
    assert len(index) == len(expected)
    assert index.n_words.tolist() == [len(phrase) for phrase in expected]
    assert index.n_characters.tolist() == [sum(map(len, phrase)) for phrase in expected]
    found = index.find(records)
    assert matches_of(found) == [reference.find_phrases(expected, record) for record in records]
    return index, found


def test_names_are_found_where_and_as_often_as_they_stand_in_the_fields():
    index = PhraseIndex(["Olive oil", "oil", "oil trade", "trade"], [4, 3, 2, 1])
    found = index.find([["Trade: olive oil", "The oil; olive\noil trade"], ["", ""], ["", "oil, trade"]])
    assert found.indptr.tolist() == [0, 4, 4, 7]
    assert found.phrases.tolist() == [0, 1, 2, 3, 1, 2, 3]
    assert found.in_first.tolist() == [1, 1, 0, 1, 0, 0, 0]
    assert found.counts.tolist() == [2, 3, 1, 2, 1, 1, 1]
    assert found.positions.tolist() == [1, 2, 6, 0, 0, 0, 1]
    assert found.n_words.tolist() == [8, 0, 2]


def test_overlapping_and_repeated_places_all_count():
    index = PhraseIndex(["a b a", "a", "b a"], [0, 1, 2])
    assert matches_of(index.find([["a b a b a"]])) == [([(0, 2, 2, 0), (1, 3, 3, 0), (2, 2, 2, 1)], 5)]


def test_no_name_goes_on_from_one_field_or_record_into_the_next():
    index = PhraseIndex(["olive oil"], [0])
    assert matches_of(index.find([["olive", "oil"], ["oil", "olive"]])) == [([], 2), ([], 2)]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("Banken", "bank"),
        ("Häusern", "HÄUSE"),
        ("rivers", "river"),
        ("ΟΔΟΣ", "οδος"),
        ("İzmir", "i̇zmir"),
        ("C", "c"),
    ],
)
def test_letter_case_and_endings_do_not_matter(name, text):
    assert PhraseIndex([name], [0]).find([[f"x {text}, x"]]).counts.tolist() == [1]


@pytest.mark.parametrize(
    ("name", "text"), [("ale", "al"), ("ähre", "ähr"), ("Bank", "ban"), ("essen", "ess")]
)
def test_short_words_keep_their_endings(name, text):
    assert PhraseIndex([name], [0]).find([[text]]).phrases.size == 0


def test_names_of_the_same_words_are_one_phrase_with_an_entry_for_each_label():
    names = ["Bank (Möbel)", "banks", "Bank <Geld>", "bank", "Bank"]
    index = PhraseIndex(names, [7, 3, 7, 7, 5])
    assert phrases_of(index) == [("bank",)]
    assert entries_of(index) == [{3: False, 5: False, 7: True}]


def test_a_name_of_nothing_but_brackets_is_used_as_it_is_and_one_without_words_never():
    index = PhraseIndex(["(Oil)", "...", ""], [0, 1, 2])
    assert phrases_of(index) == [("oil",)]
    assert entries_of(index) == [{0: True}]


@settings(max_examples=5 * settings.default.max_examples)
@given(
    st.lists(st.tuples(NAME, st.integers(0, 3)), max_size=12),
    st.lists(st.tuples(NAME, NAME) | st.tuples(ANY_TEXT, NAME), max_size=4),
)
def test_any_names_are_found_in_any_records_as_the_reference_finds_them(named, records):
    names, labels = [name for name, _ in named], [label for _, label in named]
    assert_like_the_reference(names, labels, records)


@given(st.lists(ANY_TEXT, max_size=5), st.lists(st.lists(ANY_TEXT, min_size=1, max_size=1), max_size=4))
def test_any_unicode_is_read_as_python_reads_it(names, records):
    assert_like_the_reference(names, range(len(names)), [*records, [" ".join(names)]])


def names_and_records():
    texts = read_texts(LAWS, limit=300)
    words = sorted({word for text in texts for word in text.split()})
    rng = np.random.default_rng(1)
    pairs = [f"{a} {b}" for text in texts[:30] for a, b in pairwise(text.split())]
    names = [*words, *pairs, *(" ".join(rng.choice(words, 3)) for _ in range(500))]
    return names, rng.integers(0, 1000, len(names)), [[text[:60], text] for text in texts]


def test_threads_and_batches_change_nothing(monkeypatch):
    names, labels, records = names_and_records()
    index = PhraseIndex(names, labels, n_jobs=1)
    expected = index.find(records)
    assert expected.phrases.size > 10_000
    index.n_jobs = 3
    assert_same(index.find(records), expected)
    monkeypatch.setattr(batches, "BATCH_TEXTS", 7)
    assert_same(index.find(iter(records)), expected)


def test_a_text_with_very_many_places_is_counted_in_little_memory():
    names = [" ".join("a" * n) for n in range(1, 30)]
    found = PhraseIndex(names, range(29)).find([["a " * 5000, "a " * 3000]])
    assert found.in_first.tolist() == [5001 - n for n in range(1, 30)]
    assert found.counts.tolist() == [8002 - 2 * n for n in range(1, 30)]
    assert set(found.positions) == {0}


def test_without_names_or_records_nothing_is_found():
    nothing = PhraseIndex([], [])
    assert matches_of(nothing.find([["some words"]])) == [([], 2)]
    assert matches_of(PhraseIndex(["a"], [0]).find([])) == []
    assert PhraseIndex(["a"], [0]).find([]).phrases.dtype == np.int32


def test_what_is_kept_is_found_as_before():
    names, labels, records = names_and_records()
    index = PhraseIndex(names, labels)
    entries = index.entry_labels % 2 == 0
    kept = index.keep(entries)
    even = labels % 2 == 0
    alone = PhraseIndex([name for name, is_even in zip(names, even, strict=True) if is_even], labels[even])
    assert sorted(zip(phrases_of(kept), map(str, entries_of(kept)), strict=True)) == sorted(
        zip(phrases_of(alone), map(str, entries_of(alone)), strict=True)
    )
    assert found_texts(kept, records) == found_texts(alone, records)


def test_all_or_nothing_may_be_kept():
    index = PhraseIndex(["a", "b c", "b c"], [0, 1, 2])
    everything, nothing = index.keep(np.ones(3, bool)), index.keep(np.zeros(3, bool))
    for name, array in index.state().items():
        np.testing.assert_array_equal(everything.state()[name], array, strict=True)
        assert nothing.state()[name].dtype == array.dtype
    assert len(nothing) == 0
    assert nothing.find([["a b c"]]).phrases.size == 0


def test_an_index_is_the_same_after_it_was_saved_or_pickled(tmp_path):
    names, labels, records = names_and_records()
    index = PhraseIndex(names, labels, n_jobs=2)
    expected = index.find(records)
    save_folder(tmp_path / "index", "test", {}, index.state())
    loaded = PhraseIndex.from_state(load_folder(tmp_path / "index").arrays, n_labels=1000)
    unpickled = pickle.loads(pickle.dumps(index))
    assert unpickled.n_jobs == 2
    for again in (loaded, unpickled):
        assert_same(again.find(records), expected)
        assert entries_of(again) == entries_of(index)


def changed(name, change):
    def damage(arrays):
        arrays[name] = change(arrays[name].copy())

    return damage


def put(place, value):
    def change(array):
        array[place] = value
        return array

    return change


def repacked(*phrases):
    def damage(arrays):
        arrays["phrase_bytes"], arrays["phrase_offsets"] = pack_strings(phrases)

    return damage


DAMAGE = {
    "bytes of another type": (
        changed("phrase_bytes", lambda a: a.astype(np.int8)),
        "phrase_bytes.npy must be",
    ),
    "bytes that are no UTF-8": (changed("phrase_bytes", put(0, 0xFF)), "phrase_bytes.npy must be UTF-8"),
    "too few bytes": (
        changed("phrase_bytes", lambda a: a[:-1]),
        "phrase_offsets.npy must be numbers that rise",
    ),
    "offsets that fall": (changed("phrase_offsets", put(1, 10**9)), "phrase_offsets.npy must be numbers"),
    "an empty phrase": (changed("phrase_offsets", put(1, 0)), "phrase_offsets.npy must be numbers that rise"),
    "no offsets": (
        changed("phrase_offsets", lambda a: a[:0]),
        "phrase_offsets.npy must be numbers that rise",
    ),
    "an offset below 0": (changed("phrase_offsets", put(0, -1)), "phrase_offsets.npy must be numbers"),
    "a divided character": (changed("phrase_offsets", put(1, 1)), "must not divide a character"),
    "two spaces": (repacked("öl", "a  b", "c"), "must be words that single spaces separate"),
    "a space at the end": (repacked("öl", "a ", "c"), "must be words that single spaces separate"),
    "a space at the beginning": (repacked("öl", " a", "c"), "must be words that single spaces separate"),
    "too many phrases": (repacked("öl", "a", "b", "c"), "entry_ptr.npy must have 5 numbers"),
    "a phrase without entries": (changed("entry_ptr", put(1, 0)), "entry_ptr.npy must be numbers that rise"),
    "an entry too far": (changed("entry_ptr", put(-1, 99)), "entry_ptr.npy must be numbers that rise"),
    "an unknown label": (
        changed("entry_labels", put(-1, 9)),
        "entry_labels.npy must hold numbers from 0 to 8",
    ),
    "a label below 0": (changed("entry_labels", put(0, -1)), "entry_labels.npy must hold numbers from 0"),
    "a label twice": (changed("entry_labels", put(1, 2)), "entry_labels.npy must rise in each phrase"),
    "too few brackets": (
        changed("entry_brackets", lambda a: a[:-1]),
        "entry_brackets.npy must have 4 elements",
    ),
    "no truth value": (
        changed("entry_brackets", lambda a: np.full(4, 7, np.uint8).view(bool)),
        "from 0 to 1",
    ),
    "no labels": (lambda arrays: arrays.pop("entry_labels"), "entry_labels.npy must exist"),
}


@pytest.mark.parametrize("fault", DAMAGE)
def test_a_damaged_index_is_refused(fault):
    index = PhraseIndex(["Öl", "öl (Pflanze)", "olive trees", "c"], [2, 3, 8, 0])
    arrays = index.state()
    assert set(arrays) == set(ARRAYS)
    PhraseIndex.from_state(arrays, n_labels=9)
    damage, message = DAMAGE[fault]
    damage(arrays)
    with pytest.raises(ValueError, match=message):
        PhraseIndex.from_state(arrays, n_labels=9)


def test_two_equal_phrases_are_refused_before_anything_is_found():
    arrays = PhraseIndex(["a", "b"], [0, 1]).state()
    repacked("a", "a")(arrays)
    with pytest.raises(ValueError, match="must differ"):
        PhraseIndex.from_state(arrays).find([["a"]])


@pytest.mark.parametrize(
    ("data", "offsets", "message"),
    [
        (b"ab", [0, 3], "offsets"),
        (b"ab", [1, 2], "offsets"),
        (b"ab", [0, 2, 1], "offsets"),
        (b"ab", [0, 0, 2], "single spaces"),
        (b"a  b", [0, 4], "single spaces"),
        (b"a ", [0, 2], "single spaces"),
    ],
)
def test_native_code_checks_its_phrases_itself(data, offsets, message):
    with pytest.raises(ValueError, match=message):
        _core.PhraseIndex(np.frombuffer(data, np.uint8), np.array(offsets, np.int64))


def test_native_code_checks_the_fields_and_the_table_itself():
    index = _core.PhraseIndex(np.frombuffer(b"a", np.uint8), np.array([0, 1], np.int64))
    assert len(index) == 1
    assert len(_core.PhraseIndex(np.empty(0, np.uint8), np.empty(0, np.int64))) == 0
    table = character_table(True)
    for n_fields in (0, 2):
        with pytest.raises(ValueError, match="n_fields"):
            index.find(["a", "a", "a"], n_fields, table, 1)
    with pytest.raises(ValueError, match="characters"):
        index.find(["a"], 1, table[:-1], 1)
    with pytest.raises(ValueError, match="characters"):
        _core.phrase_texts(["a"], table[:-1])


@pytest.mark.parametrize(
    ("records", "error", "message"),
    [
        (["text"], TypeError, r"records\[0\] must be a list of texts, one per field; got str"),
        ([[]], ValueError, r"records\[0\] must have at least one field; got none"),
        ([["a", "b"], ["a"]], ValueError, r"records\[1\] must have 2 fields, as records\[0\]; got 1"),
        ([["a", "b"], ["a", None]], TypeError, r"records\[1\]\[1\] must be a string; got NoneType"),
        ([["a"], 5], TypeError, r"records\[1\] must be a list of texts, one per field; got int"),
    ],
)
def test_faulty_records_are_named(records, error, message):
    with pytest.raises(error, match=message):
        PhraseIndex(["a"], [0]).find(records)


@pytest.mark.parametrize(
    ("names", "labels", "error", "message"),
    [
        ("abc", [0], TypeError, "names must be an iterable of strings; got a single str"),
        (["a", 5], [0, 1], TypeError, r"names\[1\] must be a string; got int"),
        (
            ["a", "b"],
            [0],
            ValueError,
            r"labels must be 2 whole numbers, one per name; got int64 of shape \(1,\)",
        ),
        (["a"], [0.5], ValueError, "labels must be 1 whole numbers, one per name; got float64"),
        (["a"], [-1], ValueError, "labels must hold numbers from 0"),
        (["a"], [2**31], ValueError, "labels must hold numbers from 0"),
    ],
)
def test_faulty_names_and_labels_are_named(names, labels, error, message):
    with pytest.raises(error, match=message):
        PhraseIndex(names, labels)


@pytest.mark.parametrize("entries", [[True], [1, 0], [[True, True]]])
def test_what_to_keep_must_be_said_of_every_entry(entries):
    with pytest.raises(ValueError, match="entries must be 2 booleans, one per entry"):
        PhraseIndex(["a", "b"], [0, 1]).keep(entries)
