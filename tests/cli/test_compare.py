"""``longleaf compare``: two models, or two dials of one, judged on the same rows."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import longleaf as ll
from tests.helpers.commands import complaint, fill, run, run_well
from tests.helpers.tables import FIELDS, table, write_jsonl


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give models of features (one worse) and of texts: all tags, only some, and other fields."""
    folder = fill(tmp_path_factory.mktemp("compare"))
    options = ("--trees", 1, "--max-leaf", 2, "--threads", 1)
    run_well("train", folder / "train.txt", "-o", folder / "worse.ll", *options, "-C", 0.001)
    write_jsonl(folder / "train.jsonl", table(80))
    fewer = [row for row in table(80) if "law" not in row["subjects"]]
    extra = fewer[0] | {"id": "extra", "subjects": ["a first tag", "oil"]}
    write_jsonl(folder / "fewer.jsonl", [*fewer, extra])
    write_jsonl(folder / "test.jsonl", table(30, new_tag=True))
    run_well("train", folder / "train.jsonl", *FIELDS, *options, "-o", folder / "tagger.ll")
    run_well("train", folder / "fewer.jsonl", *FIELDS, *options, "-o", folder / "fewer.ll")
    run_well(
        "train", folder / "train.jsonl", "--text", "title", *FIELDS[4:], *options, "-o", folder / "title.ll"
    )
    return folder


def compared(*arguments: object) -> Any:
    return json.loads(run_well("compare", *arguments, "--json"))


def evaluated(*arguments: object) -> Any:
    return json.loads(run_well("evaluate", *arguments, "--json"))


def test_two_dials_of_one_model_are_what_evaluate_says_of_each(folder: Path) -> None:
    model, data = folder / "model.ll", folder / "test.txt"
    found = compared(model, model, data, "--tail", 0, "--tail", 1, "--propensity", "0.6,2", "-k", "1,2")
    for side, tail in (("a", 0), ("b", 1)):
        want = evaluated(model, data, "--tail", tail, "--propensity", "0.6,2", "-k", "1,2")
        for name in ("p@1", "p@2", "f1@2", "ndcg@2", "psp@1", "psp@2"):
            assert found["metrics"][name][side] == pytest.approx(want[name])
        assert found["frequency"][side] == want["frequency"]
        for one in want["frequency"]:
            assert found["metrics"][f"{one['name']}_recall@2"][side] == pytest.approx(one["recall"])
    assert found["a"] == f"{model} (tail 0)"
    assert found["rows"] == 30


def test_two_models_are_what_evaluate_says_of_each_with_the_intervals_of_the_library(folder: Path) -> None:
    found = compared(
        folder / "model.ll", folder / "worse.ll", folder / "test.txt", "--tail", 1, "--samples", 50
    )
    for side, name in (("a", "model.ll"), ("b", "worse.ll")):
        want = evaluated(folder / name, folder / "test.txt", "--tail", 1)
        assert found["metrics"]["psp@3"][side] == pytest.approx(want["psp@3"])
    X, Y = ll.load_xmlc(folder / "test.txt")
    models = [ll.load(folder / name) for name in ("model.ll", "worse.ll")]
    tops = [model.top_k(X, 5, tail=1.0) for model in models]
    want = ll.metrics.compare(Y, tops[0], tops[1], k=(1, 3, 5), n_samples=50)
    assert found["metrics"]["p@3"]["low"] == pytest.approx(want["p@3"].low)
    assert found["metrics"]["p@3"]["high"] == pytest.approx(want["p@3"].high)


def test_taggers_of_different_tags_are_matched_by_tag(folder: Path) -> None:
    found = compared(folder / "tagger.ll", folder / "fewer.ll", folder / "test.jsonl")
    want = evaluated(folder / "tagger.ll", folder / "test.jsonl")
    for name in ("p@1", "ndcg@5", "psp@5"):
        assert found["metrics"][name]["a"] == pytest.approx(want[name])
    rows = table(30, new_tag=True)
    tagger = ll.load(folder / "fewer.ll")
    suggested = tagger.suggest([f"{row['title']} {row['body']}" for row in rows], 3)
    hits = [one.tag in row["subjects"] for own, row in zip(suggested, rows, strict=True) for one in own]
    assert np.mean(hits) < want["p@3"] / 100  # it does not know "law", whose number another tag has there
    assert found["metrics"]["p@3"]["b"] == pytest.approx(100 * np.mean(hits))


def test_models_that_read_other_fields_are_compared_on_the_same_rows(folder: Path, tmp_path: Path) -> None:
    found = compared(folder / "tagger.ll", folder / "title.ll", folder / "test.jsonl")
    for side, name in (("a", "tagger.ll"), ("b", "title.ll")):
        want = evaluated(folder / name, folder / "test.jsonl")
        assert found["metrics"]["p@1"][side] == pytest.approx(want["p@1"])
    untitled = [row | ({"title": ""} if number == 3 else {}) for number, row in enumerate(table(10))]
    path = write_jsonl(tmp_path / "untitled.jsonl", untitled)
    result = run_compare(folder / "tagger.ll", folder / "title.ll", path)
    assert "the same rows" in result


def run_compare(*arguments: object) -> str:
    """Give the last line of standard error; those before say what was read."""
    result = run("compare", *arguments)
    assert result.status == 2
    return result.stderr.splitlines()[-1]


def test_exact_and_beam_search_are_two_dials_as_well(folder: Path) -> None:
    model, data = folder / "model.ll", folder / "test.txt"
    found = compared(model, model, data, "--search", "exact", "--search", "beam", "--beam", 1)
    want = evaluated(model, data, "--search", "beam", "--beam", 1)
    assert found["metrics"]["p@5"]["b"] == pytest.approx(want["p@5"])
    assert found["metrics"]["p@5"]["a"] == pytest.approx(evaluated(model, data)["p@5"])


def test_the_table_reads_well_and_standard_input_serves_one_model(folder: Path) -> None:
    model = folder / "model.ll"
    command = ("compare", model, model, "-", "--tail", 0, "--tail", 1, "--confidence", 0.9)
    said = run_well(*command, stdin=(folder / "test.txt").read_bytes())
    for words in ("(tail 0)", "(tail 1)", "psp@5", "recall@5, tail", "90 % of resamples", "30 rows"):
        assert words in said
    assert "\x1b" not in said


def test_labels_that_no_row_has_get_a_dash_and_a_number_in_json(folder: Path, tmp_path: Path) -> None:
    model = ll.load(folder / "model.ll")
    X, Y = ll.load_xmlc(folder / "test.txt")
    frequent = int(model.label_counts_.argmax())
    changed = Y.tolil()
    changed[:, [label for label in range(Y.shape[1]) if label != frequent]] = 0
    changed[:, frequent] = 1
    data = tmp_path / "frequent.txt"
    ll.save_xmlc(data, X, changed.tocsr())
    for command in (("compare", folder / "model.ll", folder / "worse.ll"), ("evaluate", folder / "model.ll")):
        lines = run_well(*command, data).splitlines()
        rows = {name: [line for line in lines if name in line][-1] for name in ("head", "tail")}
        assert "–" not in rows["head"]
        assert "–" in rows["tail"]
    tail = compared(folder / "model.ll", folder / "worse.ll", data)["metrics"]["tail_recall@5"]
    assert set(tail.values()) == {0.0}


@pytest.mark.parametrize(
    ("arguments", "must_say"),
    [
        (("model.ll", "worse.ll", "-"), "must be a file"),
        (("model.ll", "tagger.ll", "test.txt"), "both be trained on texts"),
        (("model.ll", "model.ll", "test.jsonl"), "XMLC"),
        (("model.ll", "model.ll", "test.txt", "--tail", "0", "--tail", "1", "--tail", "2"), "--tail"),
        (("model.ll", "model.ll", "test.txt", "--confidence", "1"), "--confidence"),
        (("model.ll", "model.ll", "test.txt", "-k", "0"), "-k"),
        (("model.ll", "nowhere.ll", "test.txt"), "nowhere.ll"),
        (("model.ll", "", "test.txt"), "'B'"),
    ],
)
def test_bad_usage_is_one_sentence(folder: Path, arguments: tuple[str, ...], must_say: str) -> None:
    placed = [folder / one if one.endswith((".ll", ".txt", ".jsonl")) else one for one in arguments]
    assert must_say in complaint("compare", *placed)
