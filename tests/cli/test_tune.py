"""``longleaf tune``: the model is the one that train gives with what was chosen, and the reasons are kept."""

import json
from pathlib import Path

import numpy as np
import pytest

import longleaf as ll
from tests.helpers.commands import complaint, fill, run, run_well
from tests.helpers.same import same_arrays
from tests.helpers.tables import FIELDS, table, write_jsonl

FEW = ("--loss", "log,squared-hinge", "-C", "0.01,8", "--trees", 1, "--max-leaf", 2, "--threshold", 0.1)
SEARCH = (*FEW, "--arity", "2,3", "--candidates", 5, "--min-rows", 20, "--threads", 1)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = fill(tmp_path_factory.mktemp("tune"))
    write_jsonl(folder / "train.jsonl", table(80))
    write_jsonl(folder / "dev.jsonl", table(30, new_tag=True))
    write_jsonl(folder / "many.jsonl", table(600))
    (folder / "names.tsv").write_text("oil\tolive oil\nwheat\twheat\nfish\tcod\nmoon\tmoon\n")
    return folder


def options_said(said: str) -> list[str]:
    (line,) = [line for line in said.splitlines() if line.startswith("chosen   ")]
    return line.removeprefix("chosen   ").split()


@pytest.mark.parametrize(
    ("data", "fields"),
    [
        ("train.txt", ()),
        ("train.jsonl", (*FIELDS, "--ngrams", "1,2")),
        ("train.jsonl", (*FIELDS, "--field", "title=3")),
        ("many.jsonl", (*FIELDS, "--names", "names.tsv")),
    ],
)
def test_the_model_is_what_train_gives_with_the_options_that_were_said(
    folder: Path, tmp_path: Path, data: str, fields: tuple[str, ...]
) -> None:
    fields = tuple(str(folder / one) if one == "names.tsv" else one for one in fields)
    command = ("tune", folder / data, *fields, *SEARCH, "--seed", 4, "--metric", "psp@2")
    said = run_well(*command, "-o", tmp_path / "tuned.ll")
    assert "because  psp@2 is" in said
    assert "with tail 1" in said
    chosen = options_said(said)
    if "--field" in fields:  # the weights that were chosen replace those that were given
        fields = fields[: fields.index("--field")]
    run_well("train", folder / data, *fields, *chosen, "--seed", 4, "--threads", 1, "-o", tmp_path / "m.ll")
    same_arrays(tmp_path / "tuned.ll", tmp_path / "m.ll")
    tuned, trained = ll.load(tmp_path / "tuned.ll"), ll.load(tmp_path / "m.ll")
    for name in ("data", "data_digest", "rows"):
        assert tuned.origin_[name] == trained.origin_[name]
    if isinstance(tuned, ll.Tagger):
        assert tuned.fields_ == trained.fields_
        assert list(tuned.classes_) == list(trained.classes_)
        assert tuned.vectorizer_.get_params() == trained.vectorizer_.get_params()
        assert tuned.names == trained.names
        assert ("--names" in fields) == (tuned.fusion_ is not None)
        answers = [one.suggest(["olive oil", "moon"]) for one in (tuned, trained)]
        assert answers[0] == answers[1]


def test_what_was_chosen_and_why_is_kept_in_the_model_and_printed_as_json(
    folder: Path, tmp_path: Path
) -> None:
    command = ("tune", folder / "train.txt", *SEARCH, "--metric", "ndcg@3")
    printed = json.loads(run_well(*command, "-o", tmp_path / "m.ll", "--json"))
    kept = json.loads(run_well("info", tmp_path / "m.ll", "--json"))["origin"]["tuning"]
    assert printed == kept
    assert kept["metric"] == "ndcg@3"
    assert kept["value"] == max(one["value"] for one in kept["trials"] if one["rows"] == kept["rows"])
    assert kept["rows"] + kept["dev_rows"] == 120
    assert "ndcg@3" in run_well("info", tmp_path / "m.ll")


def test_it_is_what_the_library_chooses_and_the_same_each_time(folder: Path) -> None:
    command = ("tune", folder / "train.txt", *SEARCH, "--metric", "p@1", "--tail", 0.5, "--json")
    first, second = (json.loads(run_well(*command)) for _ in range(2))
    space = {
        "loss": ["log", "squared-hinge"],
        "C": [0.01, 8.0],
        "n_trees": [1],
        "max_leaf": [2],
        "arity": [2, 3],
        "threshold": [0.1],
    }
    X, Y = ll.load_xmlc(folder / "train.txt")
    want = ll.tune(X, Y, space=space, candidates=5, min_rows=20, metric="p@1", tail=0.5).to_dict()
    for one in (first, second, want):
        for trial in one["trials"]:
            trial.pop("seconds")
    assert first == second == json.loads(json.dumps(want))


@pytest.mark.parametrize(("data", "dev"), [("train.txt", "test.txt"), ("train.jsonl", "dev.jsonl")])
def test_rows_to_choose_by_may_be_a_file_and_are_not_trained_on(
    folder: Path, tmp_path: Path, data: str, dev: str
) -> None:
    fields = FIELDS if dev.endswith("jsonl") else ()
    command = ("tune", folder / data, "--dev", folder / dev, *fields, *SEARCH)
    found = json.loads(run_well(*command, "--json", "-o", tmp_path / "m.ll"))
    n_rows = 80 if fields else 120
    assert (found["rows"], found["dev_rows"]) == (n_rows, 30)
    assert ll.load(tmp_path / "m.ll").origin_["rows"] == n_rows
    judged = json.loads(run_well("evaluate", tmp_path / "m.ll", folder / dev, "-k", 5, "--json"))
    assert judged["p@5"] == pytest.approx(found["value"])


def test_rungs_are_told_on_standard_error(folder: Path) -> None:
    result = run("tune", folder / "train.txt", *SEARCH)
    assert "5 settings on 36 rows: p@5 up to" in result.stderr
    assert "rows" not in result.stdout.splitlines()[-1]
    assert "\x1b" not in result.stdout


def test_standard_input_is_tuned_on_as_well(folder: Path) -> None:
    command = ("tune", "-", *SEARCH, "--json")
    piped = json.loads(run_well(*command, stdin=(folder / "train.txt").read_bytes()))
    whole = json.loads(run_well("tune", folder / "train.txt", *SEARCH, "--json"))
    assert piped["value"] == whole["value"]
    assert piped["settings"] == whole["settings"]


@pytest.mark.parametrize(
    ("arguments", "must_say"),
    [
        (("--metric", "map@3"), "metric"),
        (("-C", "1,0"), "-C must list finite numbers above 0"),
        (("-C", "nan"), "-C"),
        (("--arity", "1"), "--arity must list whole numbers from 2"),
        (("--max-leaf", "0"), "--max-leaf"),
        (("--trees", "3,1001"), "--trees"),
        (("--trees", ""), "--trees"),
        (("--threshold", "-1"), "--threshold"),
        (("--loss", "hinge"), "log, squared-hinge"),
        (("--tree", "oak"), "--tree"),
        (("--tree", "merged", "--arity", "2,3"), "powers of two"),
        (("--ngrams", "x"), "--ngrams"),
        (("--dev", ""), "--dev"),
        (("-o", ""), "-o"),
        (("-o", "no/such/folder"), "no/such/folder"),
    ],
)
def test_bad_usage_is_refused_before_anything_is_read(arguments: tuple[str, ...], must_say: str) -> None:
    said = complaint("tune", "no-such-file.txt", *arguments)
    assert must_say in said
    assert "no-such-file" not in said


def test_a_file_to_choose_by_must_be_of_the_same_sizes(folder: Path, tmp_path: Path) -> None:
    ll.save_xmlc(tmp_path / "other.txt", np.ones((3, 5)), np.ones((3, 9)))
    said = complaint_after_reading("tune", folder / "train.txt", "--dev", tmp_path / "other.txt")
    assert "other.txt must have 12 features and 9 labels" in said


def complaint_after_reading(*arguments: object) -> str:
    """Give the last line of standard error; the line before it says what was read."""
    result = run(*arguments)
    assert result.status == 2
    return result.stderr.splitlines()[-1]
