"""``--names`` and ``--names-language`` on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import longleaf as ll
from tests.helpers.commands import complaint, run, run_well
from tests.helpers.tables import FIELDS, NAMES, fill_texts, write_jsonl

HEADER = "tag\tlang\tname\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = fill_texts(tmp_path_factory.mktemp("names"))
    lines = [f"{tag}\ten\t{name}\n{tag}\tde\t{name} (de)\n" for tag, name in NAMES.items()]
    (folder / "both.tsv").write_text(HEADER + "".join(lines))
    (folder / "other.tsv").write_text(HEADER + "gnd:1\tde\tÖl\n")
    (folder / "bad.tsv").write_text(HEADER + "gnd:1\n")
    return folder


def test_training_keeps_all_names_and_displays_the_languages_asked_for(folder: Path, tmp_path: Path) -> None:
    train = ("train", folder / "train.jsonl", *FIELDS, "--trees", 1, "-o", tmp_path / "m.ll")
    said = run(*train, "--names", folder / "both.tsv", "--names-language", "fr, de").stderr
    assert "no tag in it" not in said
    tagger = ll.load(tmp_path / "m.ll")
    assert tagger.names == {tag: f"{name} (de)" for tag, name in NAMES.items()}
    assert tagger.names == ll.read_names(folder / "both.tsv", ["de"])


@pytest.mark.parametrize("command", ["train", "tune"])
def test_a_broken_line_is_refused_before_training_and_nothing_is_written(
    command: str, folder: Path, tmp_path: Path
) -> None:
    out = tmp_path / "m.ll"
    said = complaint(command, folder / "train.jsonl", *FIELDS, "-o", out, "--names", folder / "bad.tsv")
    assert "bad.tsv, line 2 must have 3 fields, as line 1 has; got 1 field." in said
    assert not list(tmp_path.iterdir())


def test_names_in_no_language_asked_for_are_refused(folder: Path, tmp_path: Path) -> None:
    predict = ("predict", folder / "tagger.ll", folder / "test.jsonl", "-o", tmp_path / "out.jsonl")
    said = complaint(*predict, "--names", folder / "both.tsv", "--names-language", "fr")
    assert "both.tsv must have names in fr; got names in de, en." in said
    assert "--names-language needs --names" in complaint(*predict, "--names-language", "fr")
    said = complaint(*predict, "--names", folder / "both.tsv", "--names-language", "de,")
    assert "--names-language must be languages, such as de,en; got 'de,'" in said
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "command",
    [
        ("train", "{train}", *FIELDS, "--trees", "1", "-o", "{out}"),
        ("tune", "{train}", *FIELDS, "--candidates", "1", "--names-language", "de"),
        ("predict", "{model}", "{test}"),
        ("explain", "{model}", "--text", "oil", "-k", "1"),
        ("report", "{model}", "{test}", "-o", "{out}", "--samples", "10"),
    ],
)
def test_names_of_no_known_tag_are_noted(command: tuple[str, ...], folder: Path, tmp_path: Path) -> None:
    if command[0] == "report":
        pytest.importorskip("matplotlib")
    paths = {"train": folder / "train.jsonl", "test": folder / "test.jsonl", "model": folder / "tagger.ll"}
    arguments = [word.format(**paths, out=tmp_path / "out") for word in command]
    result = run(*arguments, "--names", folder / "other.tsv")
    assert result.status == 0, result.stderr
    assert "other.tsv: no tag in it occurs in training; the first of 1 is 'gnd:1'" in result.stderr


def test_predictions_are_in_the_language_asked_for(folder: Path) -> None:
    predict = (
        "predict",
        folder / "tagger.ll",
        folder / "test.jsonl",
        "-k",
        1,
        "--names",
        folder / "both.tsv",
    )
    for options, ending in ((), ""), (("--names-language", "de,en"), " (de)"):
        for line in run_well(*predict, *options).splitlines():
            (one,) = json.loads(line)["labels"]
            assert one["name"] == NAMES[one["tag"]] + ending


def test_a_service_displays_the_language_asked_for(folder: Path) -> None:
    serving = pytest.importorskip("longleaf.server.engine", reason="needs the extra serve")
    engine = serving.Engine(str(folder / "tagger.ll"), str(folder / "both.tsv"), languages=("de",))
    assert engine.describe(0)["name"] == f"{NAMES[engine.tags.tags[0]]} (de)"


def test_a_vocabulary_names_tags_by_their_addresses(tmp_path: Path) -> None:
    pytest.importorskip("rdflib")
    rows = [{"text": text, "tags": [f"http://x/{text}"]} for text in ("oil", "wine")] * 4
    concept = '<http://x/{0}> <http://www.w3.org/2004/02/skos/core#prefLabel> "{0} at home"@en .\n'
    (tmp_path / "names.nt").write_text(concept.format("oil") + concept.format("wine"))
    data = write_jsonl(tmp_path / "data.jsonl", rows)
    run_well("train", data, "--trees", 1, "-o", tmp_path / "m.ll", "--names", tmp_path / "names.nt")
    assert ll.load(tmp_path / "m.ll").names["http://x/oil"] == "oil at home"
