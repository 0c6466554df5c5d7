"""All names of tags, in flat arrays."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import longleaf as ll
from longleaf.io.storage import load_folder, save_folder
from longleaf.io.tag_names import Name, TagNames

words = st.text("abß \ud800", max_size=3)
names_of_some = st.builds(
    TagNames,
    st.lists(
        st.tuples(words, st.builds(Name, words, st.sampled_from(["", "de", "de-at", "en"]), st.booleans()))
    ),
    st.lists(st.sampled_from(["de", "en", "fr"]), max_size=2),
    broader=st.lists(st.tuples(words, words)),
    related=st.lists(st.tuples(words, words)),
)
SOME = [
    ("1", Name("oil", "en")),
    ("2", Name("wine", "en", False)),
    ("1", Name("Öl", "de")),
    ("1", Name("oil", "en")),
    ("1", Name("fat", "en")),
    ("2", Name("wine", "en", True)),
    ("2", Name("vino", "es", False)),
]
ARRAYS = TagNames(SOME, broader=[("1", "2")], related=[("2", "1")]).to_arrays()


def displayed(entries, languages):
    """Return the names to display, slowly."""
    found = {}
    for tag, _ in entries:
        mine = list(dict.fromkeys((name.text, name.language) for one, name in entries if one == tag))
        liked = [key for key in mine if (tag, Name(*key)) in entries] or mine
        for wanted in [*languages, ""]:
            fitting = [text for text, one in liked if wanted in ("", one) or one.startswith(f"{wanted}-")]
            if fitting:
                found[tag] = fitting[0]
                break
    return found


@given(names_of_some)
def test_names_survive_arrays_and_pickles(names):
    assert TagNames.from_arrays(names.to_arrays()) == names
    assert pickle.loads(pickle.dumps(names)) == names
    assert copy.deepcopy(names) == names


@given(names_of_some)
def test_the_arrays_say_what_the_mapping_says(names):
    rows = zip(names.owners, names.texts, names.language_codes, names.preferred, strict=True)
    flat = [
        (names.tags[owner], Name(text, names.languages[code], liked)) for owner, text, code, liked in rows
    ]
    assert flat == [(tag, name) for tag in names for name in names.all_names(tag)]
    assert dict(names) == {tag: names.all_names(tag)[0].text for tag in names.tags}
    for tag in names:
        mine = names.all_names(tag)
        assert [name.preferred for name in mine] == sorted((name.preferred for name in mine), reverse=True)
        languages = [name.language for name in mine if name.preferred]
        assert len(set(languages)) == len(languages)
        assert len({name[:2] for name in mine}) == len(mine)
        assert all(tag in names.narrower[other] for other in names.broader.get(tag, ()))
        assert all(tag in names.related[other] for other in names.related.get(tag, ()))


@given(
    st.lists(
        st.tuples(
            st.sampled_from("12"),
            st.builds(Name, words, st.sampled_from(["de", "de-at", "en"]), st.booleans()),
        )
    ),
    st.lists(st.sampled_from(["de", "en", "fr"]), max_size=2, unique=True),
)
def test_the_displayed_name_is_the_first_preferred_one_of_the_languages(entries, languages):
    assert dict(TagNames(entries, languages)) == displayed(entries, languages)
    assert dict(TagNames(entries).in_languages(languages)) == displayed(entries, languages)


def test_repeated_names_count_once_and_the_first_of_a_language_is_preferred():
    names = TagNames(SOME)
    assert names.all_names("1") == (Name("oil", "en"), Name("Öl", "de"), Name("fat", "en", False))
    assert names.all_names("2") == (Name("wine", "en"), Name("vino", "es", False))
    assert (len(names), "1" in names, "3" in names, names.get("3")) == (2, True, False, None)
    assert repr(names) == "TagNames(5 names of 2 tags)"


def test_relations_are_between_tags_with_names():
    names = TagNames(SOME, broader=[("1", "2"), ("1", "3"), ("1", "1")], related=[("2", "1"), ("1", "2")])
    assert dict(names.broader) == {"1": ("2",)}
    assert dict(names.narrower) == {"2": ("1",)}
    assert dict(names.related) == {"1": ("2",), "2": ("1",)}
    assert "2" not in names.broader


def test_names_are_compared_with_names_and_with_mappings():
    names = TagNames(SOME)
    assert names == {"1": "oil", "2": "wine"}
    assert names == TagNames(SOME[:1] + SOME)
    assert names != TagNames(SOME[:-1])
    assert names != TagNames(SOME, broader=[("1", "2")])
    assert names.in_languages(["de"]) != names


def test_a_plain_mapping_becomes_names():
    names = TagNames.of({"1": "oil", "2": "fat"})
    assert names == {"1": "oil", "2": "fat"}
    assert TagNames.of(names) is names
    with pytest.raises(TypeError, match="names must map strings to strings; got 1: 'oil'"):
        TagNames.of({1: "oil"})
    with pytest.raises(ValueError, match="names must hold no empty tag or name; got '2': ''"):
        TagNames.of({"1": "oil", "2": ""})


def test_renamed_tags_keep_their_names_and_relations():
    names = TagNames(SOME, broader=[("1", "2")])
    renamed = names.renamed({"1": "2", "2": "1"})
    assert renamed.all_names("2") == names.all_names("1")
    assert dict(renamed.broader) == {"2": ("1",)}
    taken = names.renamed({"1": "2"})
    assert taken.all_names("2") == names.all_names("1")
    assert (list(taken), dict(taken.broader)) == (["2"], {})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"owners": np.array([0, 0, 0, 1])}, "names/owners.npy must have 5 items, as there are names; got 4"),
        ({"owners": np.array([0, 0, 0, 1, 2])}, "names/owners.npy must ascend over all 2 tags"),
        ({"owners": np.array([0, 1, 0, 1, 1])}, "must ascend over all 2 tags"),
        ({"owners": np.array([-1, 0, 0, 1, 1])}, "must ascend over all 2 tags"),
        ({"owners": np.array([0, 0, 0, 0, 0])}, "must ascend over all 2 tags"),
        ({"owners": np.zeros(5, np.int32)}, "names/owners.npy must be a list of int64"),
        (
            {"language_codes": np.full(5, 3, np.int32)},
            "language_codes.npy must hold numbers from 0 to 2; got 3",
        ),
        ({"preferred": np.array([0, 1, 0, 1, 0], bool)}, "must have the preferred names of a tag first"),
        ({"preferred": None}, "names/preferred.npy must exist"),
        ({"languages/bytes": np.frombuffer(b"endees", np.uint8)}, "languages must be sorted, each once"),
        ({"tags/bytes": np.frombuffer(b"11", np.uint8)}, "names/tags must be distinct"),
        ({"broader/to": np.array([2])}, "names/broader/to.npy must hold numbers from 0 to 1; got 2"),
        ({"related/from": np.array([1])}, "names/related must lead from as many tags as to; got 1 and 2"),
        ({"names/offsets": np.array([0, 1, 2, 3, 4, 99])}, "Offsets of packed strings must rise"),
    ],
)
def test_arrays_that_hold_no_names_are_refused(change, message):
    arrays = {name: array for name, array in (ARRAYS | change).items() if array is not None}
    with pytest.raises(ll.ModelError, match=message):
        TagNames.from_arrays(arrays, "names/")


def test_without_owners_there_is_one_name_per_tag():
    arrays = {name: array for name, array in ARRAYS.items() if name.startswith(("tags/", "names/"))}
    with pytest.raises(ll.ModelError, match="as many tags as names; got 2 and 5"):
        TagNames.from_arrays(arrays)


def small_tagger(names):
    texts, tags = ["olive oil", "red wine", "oil", "wine"] * 3, [["1"], ["2"], ["1"], ["2"]] * 3
    return ll.Tagger(ll.PLT(n_trees=1, random_state=1, n_jobs=1), names=names).fit(texts, tags)


def test_a_model_keeps_all_names(tmp_path):
    names = TagNames(SOME, ["de"], broader=[("1", "2")])
    small_tagger(names).save(tmp_path / "m.ll")
    loaded = ll.load(tmp_path / "m.ll")
    assert isinstance(loaded.names, TagNames)
    assert loaded.names == names
    assert loaded.suggest(["olive oil"], k=1)[0][0].name == "Öl"
    loaded.rename_labels({"1": "fats"})
    assert loaded.names.all_names("fats") == names.all_names("1")


def test_a_model_of_a_version_with_one_name_per_tag_still_loads(tmp_path):
    small_tagger({"1": "Oil", "2": "Wine"}).save(tmp_path / "new.ll")
    folder = load_folder(tmp_path / "new.ll")
    kept = {f"names/{name}/{part}" for name in ("tags", "names") for part in ("bytes", "offsets")}
    arrays = {name: array for name, array in folder.arrays.items() if "names/" not in name or name in kept}
    assert kept < set(arrays) < set(folder.arrays)
    save_folder(tmp_path / "old.ll", folder.kind, folder.meta, arrays)
    old = ll.load(tmp_path / "old.ll")
    assert old.names == ll.load(tmp_path / "new.ll").names == TagNames.of({"1": "Oil", "2": "Wine"})
    assert old.suggest(["olive oil"], k=1)[0][0].name == "Oil"
