"""``longleaf explain``: the words behind a tag, on a terminal and in a pipe."""

import json
import math
import re
import sys
from pathlib import Path
from unittest import mock

import pytest
from rich.console import Console

import longleaf as ll
from tests.helpers.commands import complaint, fill, run_well
from tests.helpers.tables import FIELDS, fill_texts, write_jsonl


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return fill_texts(tmp_path_factory.mktemp("explain"))


def test_explain_names_the_words_for_and_against_and_the_level(folder: Path) -> None:
    said = run_well("explain", folder / "named.ll", "--text", "olive flour", "--tag", "oil")
    found = ll.load(folder / "named.ll").explain("olive flour", "oil")
    values = dict(found.contributions)
    assert values["olive"] > 0 > values["flour"]
    assert said.startswith("oil  Oils and fats\n")
    (spoke_for,) = re.findall(r"for  +(.*)", said)
    assert spoke_for == f"olive {values['olive']:+.2f}"
    (against,) = re.findall(r"against +(.*)", said)
    assert f"flour {values['flour']:+.2f}" in against
    assert f"{found.probability:.4g}" in said
    assert f"at level {found.decided.depth} of {len(found.levels)}" in said
    assert math.isclose(sum(values.values()), math.log(found.probability / found.baseline), abs_tol=1e-4)


def test_without_a_tag_the_best_few_are_explained(folder: Path) -> None:
    for k, options in ((2, ("-k", 2)), (3, ()), (3, ("--tail", 1))):
        said = run_well("explain", folder / "tagger.ll", "--text", "herring bread", *options)
        tail = 1.0 if "--tail" in options else None
        suggested = ll.load(folder / "tagger.ll").suggest(["herring bread"], k, tail=tail)[0]
        assert [part.splitlines()[0] for part in said.split("\n\n")] == [one.tag for one in suggested]
        assert said.count("score") == (0 if tail is None else k)


def test_names_may_be_given_when_explaining_and_the_text_piped(folder: Path) -> None:
    command = ("explain", folder / "tagger.ll", "--text", "-", "--names", folder / "names.tsv", "-k", 1)
    assert run_well(*command, stdin=b"olive oil").startswith("oil  Oils and fats\n")


def test_a_pipe_gets_no_colours_and_a_terminal_does(folder: Path) -> None:
    command = ("explain", folder / "tagger.ll", "--text", "Olive oil \x1b[2J flour", "--tag", "oil")
    assert "\x1b" not in run_well(*command)

    def terminal() -> Console:
        return Console(force_terminal=True, color_system="standard", width=80, file=sys.stdout)

    with mock.patch("longleaf.cli._console.output", terminal):
        said = run_well(*command)
    assert re.search(r"\x1b\[[\d;]*32m(Olive|oil)", said)  # green, as it stands in the text
    assert re.search(r"\x1b\[[\d;]*31mflour", said)
    assert "\x1b[2J" not in said  # a text must not clear the screen


def test_a_text_of_unknown_words_is_explained_by_no_word(folder: Path) -> None:
    said = run_well("explain", folder / "tagger.ll", "--text", "zzz qqq", "--tag", "law")
    assert re.search(r"for +no word\n +against +no word\n", said)


def test_a_model_that_keeps_records_shows_similar_ones(folder: Path, tmp_path: Path) -> None:
    model = tmp_path / "kept.ll"
    start = ("train", folder / "train.jsonl", *FIELDS, "--trees", 2, "--max-leaf", 2)
    run_well(*start, "--keep-records", "-o", model)
    said = run_well("explain", model, "--text", "olive oil pressed", "--tag", "oil")
    records = ll.load(model).similar("olive oil pressed", "oil")
    heading, names, *lines = said.split("\n\n")[1].splitlines()
    assert heading.strip() == "Similar training records"
    assert names.split() == ["similarity", "id", "title"]
    assert [line.split(maxsplit=2) for line in lines] == [
        [f"{one.similarity:.2f}", one.id, one.title] for one in records
    ]
    assert records[0].id.startswith("r")
    assert "olive oil pressed" in records[0].title
    assert "Similar" not in run_well("explain", folder / "tagger.ll", "--text", "olive oil", "--tag", "oil")
    facts = json.loads(run_well("info", model, "--json"))
    assert facts["records_kept"] == facts["rows"] == 80
    assert facts["records_bytes"] == ll.load(model).records_.n_bytes > 0
    without = json.loads(run_well("info", folder / "tagger.ll", "--json"))
    assert (without["records_kept"], without["records_bytes"]) == (0, 0)
    assert "records_kept     80" in run_well("info", model)


def test_an_updated_model_keeps_the_new_records_too(folder: Path, tmp_path: Path) -> None:
    start = ("train", folder / "train.jsonl", *FIELDS, "--trees", 1, "--max-leaf", 2)
    run_well(*start, "--keep-records", "-o", tmp_path / "kept.ll")
    row = {"id": "new", "title": "amber glass", "body": "of oil", "subjects": ["glass"]}
    new = write_jsonl(tmp_path / "new.jsonl", [row])
    run_well("update", tmp_path / "kept.ll", new, "-o", tmp_path / "newer.ll")
    newer = ll.load(tmp_path / "newer.ll")
    assert [one.id for one in newer.similar("olive oil", "glass")] == ["new"]
    facts = json.loads(run_well("info", tmp_path / "newer.ll", "--json"))
    assert facts["records_kept"] == 81


def test_only_texts_have_records_to_keep(tmp_path: Path) -> None:
    data = fill(tmp_path) / "train.txt"
    said = complaint("train", data, "--keep-records", "-o", tmp_path / "other.ll")
    assert "--keep-records needs a table of texts" in said


def test_explain_refuses_in_one_sentence(folder: Path, tmp_path: Path) -> None:
    assert "moon" in complaint("explain", folder / "tagger.ll", "--text", "oil", "--tag", "moon")
    assert "--text" in complaint("explain", folder / "tagger.ll", "--text", " ")
    assert "trained on texts" in complaint("explain", fill(tmp_path) / "model.ll", "--text", "oil")


def test_a_tag_may_be_given_by_the_name_that_it_alone_has(folder: Path, tmp_path: Path) -> None:
    command = ("explain", folder / "named.ll", "--text", "olive oil", "--tag")
    assert run_well(*command, "Oils and fats") == run_well(*command, "oil")
    (tmp_path / "names.tsv").write_text("oil\tFood\nwheat\tFood\nlaw\tfish\n")
    names = ("--names", tmp_path / "names.tsv")
    assert "--tag must name one tag; 'Food' is the name of 'oil' and 'wheat'" in complaint(
        *command, "Food", *names
    )
    assert run_well(*command, "fish", *names).startswith("fish\n")  # a tag goes before a name
