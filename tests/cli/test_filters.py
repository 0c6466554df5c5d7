"""Filters and the words of a vectoriser on the command line, checked against a search of everything."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import longleaf as ll
from tests.helpers.commands import complaint, fill, run, run_well
from tests.helpers.tables import FIELDS, records_of, table, write_jsonl

Line = dict[str, Any]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = fill(tmp_path_factory.mktemp("filters"))
    write_jsonl(folder / "train.jsonl", table(80))
    write_jsonl(folder / "test.jsonl", table(30, new_tag=True))
    run_well(
        "train", folder / "train.jsonl", *FIELDS, "--trees", 2, "--max-leaf", 2, "-o", folder / "tagger.ll"
    )
    (folder / "never.txt").write_text("oil\n\nlaw \n")
    (folder / "only.txt").write_text("law\r\nwheat\r\nfish\r\n")
    (folder / "groups.tsv").write_text("oil\tfood\nwheat\tfood\nfish\tfood\n")
    (folder / "labels.txt").write_text("1\n3\n4\n6\n")
    (folder / "label-groups.csv").write_text("0,x\n1,x\n2,y\n3,y\n5,y\n6,x\n")
    return folder


def predicted(*arguments: object) -> list[Line]:
    return [json.loads(line) for line in run_well("predict", *arguments).splitlines()]


def found_labels(lines: list[Line], name: str = "label") -> list[list[Any]]:
    return [[one[name] for one in line["labels"]] for line in lines]


def by_hand(ranked: list[Any], k: int, allowed: set[Any], group: dict[Any, str]) -> list[Any]:
    """Go down a complete ranking and take what may be taken."""
    taken: list[Any] = []
    groups: set[str] = set()
    for label in ranked:
        if len(taken) < k and label in allowed and group.get(label) not in groups:
            taken.append(label)
            groups |= {group[label]} if label in group else set()
    return taken


@pytest.mark.parametrize("tail", [0, 1])
@pytest.mark.parametrize("k", [1, 2, 4])
def test_filtered_labels_are_exactly_those_of_going_down_the_whole_ranking(
    folder: Path, tail: int, k: int
) -> None:
    """Exact search under filters prunes by the filtered gains, so it must find the same."""
    common = (folder / "model.ll", folder / "test.txt", "--tail", tail)
    whole = found_labels(predicted(*common, "-k", 9))
    group = {0: "x", 1: "x", 2: "y", 3: "y", 5: "y", 6: "x"}
    some = {1, 3, 4, 6}
    for options, allowed, groups in (
        (("--only", folder / "labels.txt"), some, {}),
        (("--never", folder / "labels.txt"), set(range(9)) - some, {}),
        (("--groups", folder / "label-groups.csv"), set(range(9)), group),
        (("--only", folder / "labels.txt", "--groups", folder / "label-groups.csv"), some, group),
    ):
        lines = predicted(*common, "-k", k, *options)
        assert found_labels(lines) == [by_hand(ranked, k, allowed, groups) for ranked in whole]


def test_scores_and_probabilities_stay_those_of_the_unfiltered_labels(folder: Path) -> None:
    common = (folder / "model.ll", folder / "test.txt", "--tail", 0.5)
    groups = ("--groups", folder / "label-groups.csv")
    whole = predicted(*common, "-k", 9)
    for line, own in zip(predicted(*common, *groups, "--never", folder / "labels.txt"), whole, strict=True):
        known = {one["label"]: one for one in own["labels"]}
        assert line["labels"]
        for one in line["labels"]:
            assert one["score"] == pytest.approx(known[one["label"]]["score"], rel=1e-5)
            assert one["probability"] == pytest.approx(known[one["label"]]["probability"], rel=1e-5)


def test_tags_are_filtered_as_the_tagger_filters_them(folder: Path) -> None:
    tagger = ll.load(folder / "tagger.ll")
    records = records_of(table(30, new_tag=True))
    groups = {"oil": "food", "wheat": "food", "fish": "food"}
    lines = predicted(
        folder / "tagger.ll",
        folder / "test.jsonl",
        "--never",
        folder / "never.txt",
        "--groups",
        folder / "groups.tsv",
    )
    want = tagger.suggest(records, 5, never=["oil", "law"], groups=groups)
    assert found_labels(lines, "tag") == [[one.tag for one in row] for row in want]
    assert {len(line["labels"]) for line in lines} == {1}
    both = predicted(
        folder / "tagger.ll",
        folder / "test.jsonl",
        "--only",
        folder / "only.txt",
        "--never",
        folder / "never.txt",
    )
    assert {tag for tags in found_labels(both, "tag") for tag in tags} == {"wheat", "fish"}


def test_gains_and_filters_go_together(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "gain.tsv").write_text("law\t100\nwheat\t0\n")
    lines = predicted(
        folder / "tagger.ll",
        folder / "test.jsonl",
        "--gain",
        tmp_path / "gain.tsv",
        "--only",
        folder / "only.txt",
    )
    assert {tuple(sorted(tags)) for tags in found_labels(lines, "tag")} == {("fish", "law")}
    for line in lines:
        for one in line["labels"]:
            worth = 100 if one["tag"] == "law" else 1
            assert one["score"] == pytest.approx(worth * one["probability"], rel=1e-4)


def test_evaluate_judges_the_filtered_answers_by_all_true_labels(folder: Path) -> None:
    common = (folder / "model.ll", folder / "test.txt")
    options = ("--only", folder / "labels.txt", "--groups", folder / "label-groups.csv")
    found = json.loads(run_well("evaluate", *common, *options, "-k", "1,3", "--json"))
    lines = found_labels(predicted(*common, *options, "-k", 3))
    top = np.full((30, 3), -1)
    for row, labels in enumerate(lines):
        top[row, : len(labels)] = labels
    _, Y = ll.load_xmlc(folder / "test.txt")
    want = ll.metrics.evaluate(Y, top, k=(1, 3))
    assert {name: found[name] for name in want} == pytest.approx(want)


def test_explain_chooses_among_the_filtered_tags(folder: Path) -> None:
    command = ("explain", folder / "tagger.ll", "--text", "olive oil wheat", "-k", 2)
    first = [part.splitlines()[0] for part in run_well(*command).split("\n\n")]
    assert set(first) == {"oil", "wheat"}
    filtered = run_well(*command, "--never", folder / "never.txt")
    assert {part.splitlines()[0] for part in filtered.split("\n\n")} == {"wheat", "fish"}
    grouped = run_well(*command, "--groups", folder / "groups.tsv")
    assert [part.splitlines()[0] for part in grouped.split("\n\n")] == [first[0], "law"]
    assert "--tag" in complaint(*command, "--tag", "oil", "--only", folder / "only.txt")


def test_tags_that_the_model_does_not_know_are_said_and_with_strict_refused(
    folder: Path, tmp_path: Path
) -> None:
    (tmp_path / "only.txt").write_text("law\nmoon\nfish\nsun\n")
    command = ("predict", folder / "tagger.ll", folder / "test.jsonl", "--only", tmp_path / "only.txt")
    result = run(*command)
    assert result.status == 0
    assert "2 of 4 tags cannot be used; 'moon' in line 2 is no tag of the model" in result.stderr
    said = complaint(*command, "--strict")
    assert "only.txt" in said
    assert "'moon' in line 2" in said
    (tmp_path / "only.txt").write_text("moon\n")
    result = run(*command)
    assert result.status == 2
    assert "got none" in result.stderr
    assert "nowhere.txt" in complaint(*command[:3], "--never", "nowhere.txt")


def test_filters_name_tags_by_their_readable_names_too(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "names.tsv").write_text("oil\tOils and fats\nwheat\tCereals\nfish\tFood\nlaw\tFood\n")
    (tmp_path / "words.txt").write_text("Oils and fats\noil\nwheat\nFood\n")
    (tmp_path / "groups.tsv").write_text("Oils and fats\tfood\nwheat\tfood\n")
    (tmp_path / "tags.tsv").write_text("oil\tfood\nwheat\tfood\n")
    common = (folder / "tagger.ll", folder / "test.jsonl", "--names", tmp_path / "names.tsv")
    result = run("predict", *common, "--only", tmp_path / "words.txt")
    assert {one["tag"] for line in result.stdout.splitlines() for one in json.loads(line)["labels"]} == {
        "oil",
        "wheat",
    }
    assert "1 of 4 tags cannot be used; 'Food' in line 4 is the name of 'fish' and 'law'" in result.stderr
    named, plain = (predicted(*common, "--groups", tmp_path / name) for name in ("groups.tsv", "tags.tsv"))
    assert named == plain


@pytest.mark.parametrize(("option", "says"), [("--gain", "a number"), ("--groups", "its group")])
def test_a_line_that_is_no_pair_is_named_with_what_it_must_be(
    folder: Path, tmp_path: Path, option: str, says: str
) -> None:
    (tmp_path / "pairs.tsv").write_text("oil\t1\nwheat\n")
    command = ("predict", folder / "tagger.ll", folder / "test.jsonl", option, tmp_path / "pairs.tsv")
    assert f"pairs.tsv, line 2 must be a tag and {says}; got 1 field." in complaint(*command)
    (tmp_path / "pairs.tsv").write_text('oil\t"1\nwheat\t2\n')
    assert "line 1 must close its quotes" in complaint(*command)


def test_filters_may_come_from_standard_input_but_only_one_thing(folder: Path) -> None:
    command = ("predict", folder / "tagger.ll", folder / "test.jsonl", "--only", "-")
    lines = [json.loads(line) for line in run_well(*command, stdin=b"law\n").splitlines()]
    assert {tag for tags in found_labels(lines, "tag") for tag in tags} == {"law"}
    assert "Only one of" in complaint(*command, "--never", "-")


# ------------------------------------------------------------ words


def test_the_words_that_spoke_for_a_tag_are_those_of_suggest(folder: Path) -> None:
    records = records_of(table(30, new_tag=True))
    lines = predicted(folder / "tagger.ll", folder / "test.jsonl", "--show-words", "-k", 2)
    want = ll.load(folder / "tagger.ll").suggest(records, 2, explain=True)
    assert any(one["words"] for line in lines for one in line["labels"])
    for line, row in zip(lines, want, strict=True):
        for one, suggestion in zip(line["labels"], row, strict=True):
            assert [part["word"] for part in one["words"]] == [word for word, _ in suggestion.words]
            values = [value for _, value in suggestion.words]
            assert [part["value"] for part in one["words"]] == pytest.approx(values, rel=1e-5)
    assert "words" not in predicted(folder / "tagger.ll", folder / "test.jsonl")[0]["labels"][0]


def test_words_need_texts(folder: Path) -> None:
    said = complaint("predict", folder / "model.ll", folder / "test.txt", "--show-words")
    assert "--show-words needs a model that was trained on texts" in said


@pytest.mark.parametrize(
    ("options", "want"),
    [
        ((), {}),
        (("--ngrams", "1,2", "--min-df", 2), {"ngram_range": (1, 2), "min_df": 2}),
        (("--chars", "3,4", "--max-df", "0.5"), {"char_ngram_range": (3, 4), "max_df": 0.5}),
        (("--chars", "none"), {"char_ngram_range": None}),
        (("--field", "title=2.5"), {"fields": {"title": 2.5, "body": 1.0}}),
        (("--analyzer", "char_wb", "--ngrams", "3"), {"analyzer": "char_wb", "ngram_range": (3, 3)}),
        (("--max-features", 7, "--keep-case"), {"max_features": 7, "lowercase": False}),
        (("--hash", 64, "--min-df", "0.1"), {"hashing": 64, "min_df": 0.1}),
    ],
)
def test_vectorizer_options_are_the_vectorizers_parameters(
    folder: Path, tmp_path: Path, options: tuple[object, ...], want: dict[str, Any]
) -> None:
    run_well("train", folder / "train.jsonl", *FIELDS, *options, "--trees", 1, "-o", tmp_path / "m.ll")
    made = ll.load(tmp_path / "m.ll").vectorizer_
    expected = ll.TextVectorizer.for_tags(**{"fields": {"title": 1.0, "body": 1.0}} | want, n_jobs=-1)
    assert made.get_params() == expected.get_params()
    records = records_of(table(80))
    difference = made.transform(records) - expected.fit_transform(records)
    assert abs(difference).max() == 0


@pytest.mark.parametrize(
    ("options", "must_say"),
    [
        (("--ngrams", "2,1"), "--ngrams must"),
        (("--ngrams", "0,1"), "--ngrams must"),
        (("--ngrams", "one"), "--ngrams must be two whole numbers"),
        (("--chars", "3,2"), "--chars must"),
        (("--analyzer", "char", "--chars", "3,4"), "--chars must be omitted unless --analyzer is 'word'"),
        (("--min-df", "-1"), "--min-df"),
        (("--max-df", "1.5"), "--max-df must"),
        (("--max-df", "few"), "--max-df must be a number of texts or a share"),
        (("--hash", "8", "--max-features", "8"), "--max-features must be omitted with --hash"),
        (("--max-features", "0"), "--max-features"),
        (("--hash", "99999999999"), "--hash"),
    ],
)
def test_bad_vectorizer_options_are_refused_before_reading(options: tuple[str, ...], must_say: str) -> None:
    assert must_say in complaint("train", "no-such-file.jsonl", "-o", "x.ll", *options)


def test_vectorizer_options_are_not_for_features(folder: Path, tmp_path: Path) -> None:
    said = complaint("train", folder / "train.txt", "-o", tmp_path / "x.ll", "--ngrams", "1,2")
    assert "--ngrams needs a table of texts" in said
