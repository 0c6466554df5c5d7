"""The library, the command line and the service answer a question alike, to the last byte."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import longleaf as ll
from longleaf.search.top_k import LARGEST_GAIN
from longleaf.tagger import suggester_of
from tests.helpers.commands import complaint, run_well
from tests.helpers.serving import Running, make_tagger, make_vector_model, serving

TEXTS = ["the import of olive oil", "cod and herring of the french republic", "wheat flour saffron"]
SHARED = {"1264": "food", "2002": "food", "2437": "sea fish", "1085": "2437"}
"""Two tags share a name, and one has another tag for a name."""


@pytest.fixture(scope="module")
def tagger() -> ll.Tagger:
    made = make_tagger()
    made.names = SHARED
    return made


@pytest.fixture(scope="module")
def folder(tagger: ll.Tagger, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("suggest")
    tagger.save(folder / "model.ll")
    (folder / "texts.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in TEXTS))
    return folder


@pytest.fixture(scope="module")
def service(folder: Path) -> Iterator[Running]:
    with serving(folder / "model.ll", "--workers", 1) as running:
        yield running


def of_library(tagger: ll.Tagger, options: dict[str, Any]) -> list[list[dict[str, Any]]]:
    found = tagger.suggest(TEXTS, **options)
    return [[{"tag": one.tag, "name": one.name} | one.numbers() for one in row] for row in found]


def of_command_line(folder: Path, options: dict[str, Any]) -> list[list[dict[str, Any]]]:
    arguments: list[object] = ["-k", options.get("k", 5)]
    for name in ("tail", "search", "beam", "epsilon", "max_nodes", "min_probability"):
        arguments += [f"--{name.replace('_', '-')}", options[name]] if name in options else []
    if "utility" in options:
        (folder / "utility").write_text(json.dumps(options["utility"]))
        arguments += ["--utility", folder / "utility"]
    for name in ("gain", "groups"):
        if name in options:
            (folder / name).write_text("".join(f"{tag}\t{v}\n" for tag, v in options[name].items()))
            arguments += [f"--{name}", folder / name]
    for name in ("only", "never"):
        if name in options:
            (folder / name).write_text("".join(f"{tag}\n" for tag in options[name]))
            arguments += [f"--{name}", folder / name]
    lines = run_well("predict", folder / "model.ll", folder / "texts.jsonl", *arguments).splitlines()
    return [json.loads(line)["labels"] for line in lines]


def of_service(service: Running, options: dict[str, Any]) -> list[list[dict[str, Any]]]:
    kept = ("tag", "name", "score", "probability")
    found = service.suggest(TEXTS, **options)
    return [[{name: one[name] for name in kept} for one in row] for row in found]


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"tail": 0.5, "k": 3},
        {"tail": 9.5},
        {"gain": {"rare": LARGEST_GAIN, "sea fish": 3}},
        {"gain": {"1264": 1e-45, "1085": 1e-30, "2002": 0}, "search": "beam", "beam": 100},
        {"tail": 1, "only": ["sea fish", "rare", "1264"], "never": ["rare"]},
        {"tail": 1, "min_probability": 0.1},
        {"gain": {"rare": 50}, "groups": {"sea fish": "x", "1264": "x", "2437": "x", "rare": "x"}},
        {
            "utility": [
                {"tag": "*", "b": -0.1},
                {"tag": "rare", "a": 20, "group": "x"},
                {"tag": "2437", "group": "x"},
            ]
        },
        {"utility": [{"tag": "sea fish", "b": -1e-3}], "never": ["1264"], "min_probability": 0.01},
        {"search": "auto", "beam": 1, "epsilon": 0.1, "max_nodes": 50},
    ],
    ids=str,
)
def test_three_front_ends_give_the_same_bytes(
    tagger: ll.Tagger, folder: Path, service: Running, options: dict[str, Any]
) -> None:
    library = json.dumps(of_library(tagger, options))
    assert len(library) > 100
    assert json.dumps(of_command_line(folder, options)) == library
    assert json.dumps(of_service(service, options)) == library


@pytest.mark.parametrize("gain", [0.0, 1e-300, 1e-45, 1e-38, 1e30, LARGEST_GAIN])
def test_the_probability_does_not_depend_on_the_gain(tagger: ll.Tagger, gain: float) -> None:
    plain = {s.tag: s.probability for s in tagger.suggest(TEXTS[:1], k=5)[0]}
    for found in tagger.suggest(TEXTS[:1], k=5, gain={"1264": gain, "rare": 2.0})[0]:
        assert found.probability == pytest.approx(plain[found.tag], rel=2e-4)
        assert np.isfinite(found.score)


@pytest.mark.parametrize("search", ["exact", "beam"])
def test_probabilities_of_a_search_are_those_of_its_labels(search: str) -> None:
    model = make_vector_model()
    X = np.random.RandomState(2).rand(40, 12)
    gain = np.array([1e-40, 1e-3, 1, 1e3, 1e37])
    top = model.top_k(X, 5, gain=gain, search=search, beam=10)
    rows, places = np.nonzero(top.labels >= 0)
    want = model.probability(X, rows, top.labels[rows, places])
    np.testing.assert_allclose(top.probabilities[rows, places], want, rtol=2e-5)
    assert np.isfinite(top.scores).all()
    plain = model.top_k(X, 5)
    np.testing.assert_array_equal(plain.probabilities, plain.scores)


def test_gains_beyond_a_32_bit_float_are_refused_everywhere(
    tagger: ll.Tagger, folder: Path, service: Running
) -> None:
    with pytest.raises(ValueError, match=r"gain of '1264' must be at least 0 and at most 1e\+38; got 1e\+39"):
        tagger.suggest(TEXTS, gain={"1264": 1e39})
    answer = service.call("/v1/suggest", {"texts": TEXTS, "gain": {"1264": 1e39}})
    assert answer.status == 422
    assert answer.error == "gain of '1264' must be at least 0 and at most 1e+38; got 1e+39."
    (folder / "large.tsv").write_text("1264\t1e39\n")
    said = complaint("predict", folder / "model.ll", folder / "texts.jsonl", "--gain", folder / "large.tsv")
    assert "a gain must be a finite number from 0 to 1e+38; '1264' has '1e39'" in said
    with pytest.raises(ValueError, match=r"gain must hold finite numbers from 0 to 1e\+38; got 1e\+39 for"):
        make_vector_model().top_k(np.ones((1, 12)), 1, gain=[1e39, 1, 1, 1, 1])


@pytest.mark.parametrize("tail", [80, 300, 1e300])
def test_a_tail_that_no_score_can_hold_is_refused(tagger: ll.Tagger, folder: Path, tail: float) -> None:
    with pytest.raises(ValueError, match=r"tail must lead to gains of at most 1e\+38; got"):
        tagger.suggest(TEXTS, tail=tail)
    said = complaint("predict", folder / "model.ll", folder / "texts.jsonl", "--tail", tail)
    assert "tail must lead to gains of at most 1e+38" in said


LIKELY: list[dict[str, Any]] = [
    {},
    {"tail": 2.0},
    {"gain": {"rare": 1e30, "1264": 1e-30, "2002": 0.0}},
    {"tail": 1.0, "never": ["2437"]},
    {"gain": {"rare": 50.0}, "threshold": 0.5},
    {"groups": {"1264": "x", "2437": "x"}, "gain": {"rare": 9.0}},
]


@pytest.mark.parametrize("options", LIKELY, ids=str)
@pytest.mark.parametrize("least", [0, 0.02, 0.2, 0.9, 1])
def test_whatever_it_is_worth_a_tag_below_the_smallest_probability_is_not_suggested(
    tagger: ll.Tagger, options: dict[str, Any], least: float
) -> None:
    every = tagger.suggest(TEXTS, k=99, **{name: v for name, v in options.items() if name != "groups"})
    wanted = [[one for one in row if one.probability >= least] for row in every]
    if "groups" in options:
        groups = options["groups"]
        firsts = [{groups.get(one.tag, one.tag): one for one in reversed(row)} for row in wanted]
        wanted = [sorted(row.values(), key=lambda one: -one.score) for row in firsts]
    found = tagger.suggest(TEXTS, k=99, min_probability=least, **options)
    assert [[one.tag for one in row] for row in found] == [[one.tag for one in row] for row in wanted]
    for row, own in zip(found, wanted, strict=True):  # a search with groups rounds differently
        assert [one.score for one in row] == pytest.approx([one.score for one in own], rel=1e-6)
        assert [one.probability for one in row] == [one.probability for one in own]


def test_a_smallest_probability_counts_before_the_k_best_are_chosen(tagger: ll.Tagger) -> None:
    worth = {"rare": 1e6}
    assert {row[0].tag for row in tagger.suggest(TEXTS, k=1, gain=worth)} == {"rare"}
    sure = tagger.suggest(TEXTS, k=1, gain=worth, min_probability=0.3)
    assert all(row[0].tag != "rare" and row[0].probability >= 0.3 for row in sure if row)
    assert any(sure)


@pytest.mark.parametrize("least", [-0.1, 1.5, float("nan"), "0.5"])
def test_a_smallest_probability_is_a_number_from_0_to_1(tagger: ll.Tagger, least: Any) -> None:
    with pytest.raises(ValueError, match="min_probability must be"):
        tagger.suggest(TEXTS, min_probability=least)


def test_a_threshold_that_no_score_can_reach_is_refused(tagger: ll.Tagger, service: Running) -> None:
    sentence = "threshold must be at least 0 and at most 1e+38; got 1e+308"
    with pytest.raises(ValueError, match=re.escape(sentence)):
        tagger.suggest(TEXTS, threshold=1e308)
    with pytest.raises(ValueError, match=re.escape(sentence)):
        make_vector_model().top_k(np.ones((1, 12)), 1, threshold=1e308)
    answer = service.call("/v1/suggest", {"texts": TEXTS, "threshold": 1e308})
    assert (answer.status, answer.error) == (422, f"{sentence}.")


def test_a_name_that_tags_share_is_ambiguous_everywhere(
    tagger: ll.Tagger, folder: Path, service: Running
) -> None:
    sentence = "must name one tag; 'food' is the name of '1264' and '2002'."
    for options in ({"only": ["food"]}, {"gain": {"food": 2}}, {"groups": {"food": 1}}):
        with pytest.raises(ValueError, match=sentence):
            tagger.suggest(TEXTS, **options)
        answer = service.call("/v1/suggest", {"texts": TEXTS} | options)
        assert (answer.status, answer.error) == (422, f"{next(iter(options))} {sentence}")
    with pytest.raises(ValueError, match=f"tag {sentence}"):
        tagger.explain(TEXTS[0], "food")
    answer = service.call("/v1/explain", {"text": TEXTS[0], "tag": "food"})
    assert (answer.status, answer.error) == (422, f"tag {sentence}")
    assert sentence in complaint("explain", folder / "model.ll", "--text", TEXTS[0], "--tag", "food")
    (folder / "shared.txt").write_text("sea fish\nfood\n")
    command = ("predict", folder / "model.ll", folder / "texts.jsonl", "--only", folder / "shared.txt")
    assert "'food' in line 2 is the name of '1264' and '2002'" in complaint(*command, "--strict")


def test_a_tag_takes_precedence_over_the_name_of_another(tagger: ll.Tagger, service: Running) -> None:
    assert {s.tag for row in tagger.suggest(TEXTS, only=["2437"]) for s in row} == {"2437"}
    assert service.call("/v1/explain", {"text": TEXTS[1], "tag": "2437"}).json["tag"] == "2437"


def test_names_may_be_set_at_any_time(tagger: ll.Tagger) -> None:
    suggester = suggester_of(tagger)
    assert suggester.tags.name("1264") == "food"
    tagger.names = {"1264": "oil"}
    try:
        assert tagger.suggest(TEXTS[:1], only=["oil"])[0][0].name == "oil"
    finally:
        tagger.names = SHARED


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"only": [1]}, "only must hold strings; got int"),
        ({"never": 5}, "never must be a list of tags; got a single int"),
        ({"only": "oil"}, "only must be a list of tags; got a single str"),
    ],
)
def test_what_are_no_tags_is_refused(tagger: ll.Tagger, options: dict[str, Any], says: str) -> None:
    with pytest.raises(TypeError, match=says):
        tagger.suggest(TEXTS, **options)


def test_gains_that_no_utility_can_hold_do_not_go_with_groups(tagger: ll.Tagger) -> None:
    with pytest.raises(ValueError, match=r"gains must be at most 1e\+30 together with groups; got 1e\+31\."):
        tagger.suggest(TEXTS, gain={"rare": 1e31}, groups={"1264": "x", "2437": "x"})


def test_a_search_with_groups_says_when_it_may_have_missed_something(tagger: ll.Tagger) -> None:
    groups = {tag: place % 2 for place, tag in enumerate(tagger.classes_)}
    assert all(row.exact and row.gap == 0 for row in tagger.suggest(TEXTS, k=2, groups=groups))
    narrow = tagger.suggest(TEXTS, k=2, groups=groups, search="beam", beam=1)
    assert not all(row.exact for row in narrow)
    assert all(row.exact == (row.gap == 0) for row in narrow)
    assert narrow[0] == list(narrow[0])  # a list like any other


# ------------------------------------------------------------ utilities


ROWS = {
    "*": {"b": -0.05},
    "1264": {"a": 3},
    "rare": {"a": 20, "b": -0.5},
    "sea fish": {"a": 2, "b": 1, "group": "food"},
    "2002": {"group": "food"},
    "1085": {"allowed": False},
}


def worth(tagger: ll.Tagger) -> np.ndarray:
    """What every tag is worth for every text by ROWS, -inf where it is not allowed."""
    tags = list(tagger.classes_)
    value = tagger.predict_proba(TEXTS).astype(float) - 0.05
    for tag, a, b in (("1264", 3, -0.05), ("rare", 20, -0.5), ("2437", 2, 1)):
        value[:, tags.index(tag)] = a * (value[:, tags.index(tag)] + 0.05) + b
    value[:, tags.index("1085")] = -np.inf
    return value


def best_by_hand(tagger: ll.Tagger, value: np.ndarray, k: int) -> list[list[tuple[str, float]]]:
    """Go down the ranking; of 2437 and 2002 only the better one counts."""
    found = []
    for row in value:
        kept: list[tuple[str, float]] = []
        for label in np.argsort(-row, kind="stable"):
            tag = tagger.classes_[label]
            other = {"2437": "2002", "2002": "2437"}.get(tag)
            if row[label] > -np.inf and len(kept) < k and other not in [one for one, _ in kept]:
                kept.append((tag, pytest.approx(row[label], rel=1e-4, abs=1e-6)))
        found.append(kept)
    return found


def scored(found: list[list[Any]]) -> list[list[tuple[str, float]]]:
    return [[(one.tag, one.score) for one in row] for row in found]


@pytest.mark.parametrize("k", [1, 2, 4, 99])
def test_the_tags_that_are_worth_the_most_are_suggested(tagger: ll.Tagger, k: int) -> None:
    assert scored(tagger.suggest(TEXTS, k, utility=ROWS)) == best_by_hand(tagger, worth(tagger), k)


def test_rows_in_a_file_in_memory_and_a_utility_are_the_same(tagger: ll.Tagger, tmp_path: Path) -> None:
    path = tmp_path / "worth.json"
    path.write_text(json.dumps(ROWS))
    wanted = tagger.suggest(TEXTS, utility=ROWS)
    by_tag = {"2437" if tag == "sea fish" else tag: row for tag, row in ROWS.items()}
    utility = tagger.read_utility(path)
    assert tagger.suggest(TEXTS, utility=utility) == wanted
    assert tagger.suggest(TEXTS, utility=ll.read_utility(by_tag, tagger.classes_)) == wanted


def test_the_path_of_a_file_is_no_utility(tagger: ll.Tagger) -> None:
    with pytest.raises(TypeError, match=r"utility must be a longleaf\.Utility, or rows by tag; got str"):
        tagger.suggest(TEXTS, utility="worth.json")


@pytest.mark.parametrize("k", [1, 3, 99])
def test_filters_hold_beside_a_utility(tagger: ll.Tagger, k: int) -> None:
    value, tags = worth(tagger), list(tagger.classes_)
    value[:, tags.index("1264")] = -np.inf
    found = tagger.suggest(TEXTS, k, utility=ROWS, never=["1264"])
    assert scored(found) == best_by_hand(tagger, value, k)
    value[:, [tag not in ("2437", "2002", "1085") for tag in tags]] = -np.inf
    found = tagger.suggest(TEXTS, k, utility=ROWS, only=["2437", "2002", "1085"])
    assert scored(found) == best_by_hand(tagger, value, k)
    plain = {tag: {n: v for n, v in row.items() if n != "group"} for tag, row in ROWS.items()}
    found = tagger.suggest(TEXTS, k, utility=plain, groups={"2437": 1, "2002": 1})
    assert scored(found) == best_by_hand(tagger, worth(tagger), k)


@pytest.mark.parametrize(
    ("rows", "found"),
    [({"*": {"allowed": False}}, 0), ({"*": {"b": -1e30}}, 1), ({"*": {"a": 1e30, "b": 1e30}}, 1)],
)
def test_the_largest_numbers_go_with_a_smallest_probability(tagger: ll.Tagger, rows: Any, found: int) -> None:
    assert [len(row) for row in tagger.suggest(TEXTS, 1, utility=rows, min_probability=1e-9)] == [found] * 3


@pytest.mark.parametrize("least", [-0.04, 0, 0.5])
def test_a_threshold_is_a_smallest_utility(tagger: ll.Tagger, least: float) -> None:
    value = worth(tagger)
    value[value < least] = -np.inf
    found = tagger.suggest(TEXTS, 99, utility=ROWS, threshold=least)
    assert scored(found) == best_by_hand(tagger, value, 99)


@pytest.mark.parametrize("least", [0, 0.02, 0.5])
def test_a_smallest_probability_holds_beside_a_utility(tagger: ll.Tagger, least: float) -> None:
    value = worth(tagger)
    value[tagger.predict_proba(TEXTS) < least] = -np.inf
    found = tagger.suggest(TEXTS, 99, utility=ROWS, min_probability=least)
    assert scored(found) == best_by_hand(tagger, value, 99)
    value[value < 0] = -np.inf
    found = tagger.suggest(TEXTS, 99, utility=ROWS, min_probability=least, threshold=0)
    assert scored(found) == best_by_hand(tagger, value, 99)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"tail": 1.0}, "utility must not be given together with tail or gain"),
        ({"gain": {"rare": 2}}, "utility must not be given together with tail or gain"),
        ({"k": "auto"}, "k must be a whole number with a utility; got 'auto'"),
        ({"groups": {"1264": 1}}, "groups must not be given together with a utility that has groups"),
        ({"utility": {"x": {"a": 1}}}, "utility must name tags of the model; 'x' is none"),
        ({"utility": {"food": {"a": 1}}}, "utility must name one tag; 'food' is the name of"),
        ({"utility": [{"tag": "rare", "a": float("nan")}]}, r"utility\[0\]: a of 'rare' must be a fin"),
        ({"utility": ll.Utility([1, 2])}, "utility must have 5 numbers, one per label of the model; got 2"),
        (
            {"utility": {"rare": {"a": -1}}, "min_probability": 0.1},
            "min_probability needs a utility whose .* got -1 for 'rare'",
        ),
        ({"threshold": float("nan")}, "threshold must be a finite number; got nan"),
    ],
)
def test_what_does_not_go_with_a_utility_is_refused(
    tagger: ll.Tagger, options: dict[str, Any], says: str
) -> None:
    with pytest.raises(ValueError, match=says):
        tagger.suggest(TEXTS, **{"utility": ROWS} | options)
