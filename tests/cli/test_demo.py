"""The demo and the laws that it runs on."""

import json
import lzma
import re
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest
from sklearn.feature_extraction.text import TfidfVectorizer

import longleaf as ll
from longleaf import datasets
from longleaf.cli import _console
from longleaf.datasets import Sample, load_sample
from tests.helpers import encoders as helper
from tests.helpers.commands import complaint, run_well

FOLDER = Path(datasets.__file__).parent


@pytest.fixture(scope="module")
def sample() -> Sample:
    return load_sample()


def laws(name: str) -> list[dict[str, Any]]:
    with lzma.open(FOLDER / name, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def test_the_sample_is_what_the_files_hold(sample: Sample) -> None:
    train, test = laws("eurlex_train.jsonl.xz"), laws("eurlex_test.jsonl.xz")
    assert (len(train), len(test)) == (4000, 1000)
    assert sample.texts_train == [f"{law['title']} {law['text']}" for law in train]
    assert sample.texts_test == [f"{law['title']} {law['text']}" for law in test]
    assert sample.tags_train == [law["tags"] for law in train]
    assert sample.tags_test == [law["tags"] for law in test]
    assert sample.titles_test == [law["title"] for law in test]


def test_no_law_is_in_both_parts() -> None:
    ids = [law["id"] for part in ("train", "test") for law in laws(f"eurlex_{part}.jsonl.xz")]
    assert len(set(ids)) == 5000


def test_every_tag_of_the_sample_has_a_name_of_its_own(sample: Sample) -> None:
    tags = {tag for row in sample.tags_train + sample.tags_test for tag in row}
    assert set(sample.names) == tags
    assert len(set(sample.names.values())) == len(tags)


def test_names_belong_to_their_tags(sample: Sample) -> None:
    row = next(i for i, title in enumerate(sample.titles_test) if "New Zealand on trade in mutton" in title)
    names = {sample.names[tag] for tag in sample.tags_test[row]}
    assert {"sheepmeat", "goatmeat", "New Zealand", "voluntary restraint agreement"} <= names


def test_matrices_say_what_texts_and_tags_say(sample: Sample) -> None:
    sklearn = TfidfVectorizer(sublinear_tf=True)
    for X, expected in (
        (sample.X_train, sklearn.fit_transform(sample.texts_train)),
        (sample.X_test, sklearn.transform(sample.texts_test)),
    ):
        assert X.shape == expected.shape
        assert abs(X - expected).max() < 1e-5
    for Y, rows in ((sample.Y_train, sample.tags_train), (sample.Y_test, sample.tags_test)):
        assert Y.shape == (len(rows), len(sample.label_names))
        for number in range(0, len(rows), 97):
            named = {sample.label_names[label] for label in Y[[number]].indices}
            assert named == {sample.names[tag] for tag in rows[number]}


def test_the_sample_is_small_and_says_whose_work_it_is() -> None:
    assert sum(file.stat().st_size for file in FOLDER.glob("*.xz")) < 3_000_000
    licence = (FOLDER / "LICENSE-DATA.md").read_text()
    for word in ("Chalkidis", "CC BY-SA 4.0", *(file.name for file in FOLDER.glob("*.xz"))):
        assert word in licence


def test_the_command_line_reads_the_sample_without_a_fault(sample: Sample, tmp_path: Path) -> None:
    model, test = tmp_path / "laws.ll", FOLDER / "eurlex_test.jsonl.xz"
    names = ("--names", FOLDER / "tag_names.json.xz")
    run_well("train", FOLDER / "eurlex_train.jsonl.xz", "--strict", *names, "--trees", 1, "-o", model)
    said = {tail: json.loads(run_well("evaluate", model, test, "--tail", tail, "--json")) for tail in (0, 1)}
    train_laws, test_laws = (
        [{"title": law["title"], "text": law["text"]} for law in laws(f"eurlex_{part}.jsonl.xz")]
        for part in ("train", "test")
    )
    ours = ll.Tagger(ll.PLT(n_trees=1, random_state=1), names=ll.read_names(FOLDER / "tag_names.json.xz"))
    ours.fit(train_laws, sample.tags_train)
    truth = ours.transform_tags(sample.tags_test, unseen="add")
    assert truth.shape[1] == len(ours.classes_) == len(sample.names)
    worth = ours.estimator_.inverse_propensity()
    number = {tag: place for place, tag in enumerate(ours.classes_)}
    for tail, found in said.items():
        top = [[number[one.tag] for one in row] for row in ours.suggest(test_laws, 5, tail=float(tail))]
        expected = ll.metrics.evaluate(truth, np.array(top), worth, k=(1, 3, 5))
        for name in ("p@1", "p@5", "psp@1", "psp@5"):
            assert found[name] == pytest.approx(expected[name]), name
    explained = run_well("explain", model, "--text", "Import duties on olive oil", "-k", 1)
    assert explained.startswith("1264  olive oil\n")


def test_the_tail_dial_gains_on_the_samples_rare_labels(sample: Sample) -> None:
    model = ll.PLT.paper(random_state=1).fit(sample.X_train, sample.Y_train)
    q = ll.inverse_propensity(sample.Y_train)
    plain, scored = (
        ll.metrics.evaluate(sample.Y_test, model.top_k(sample.X_test, tail=tail), q) for tail in (0.0, 1.0)
    )
    for at in (1, 3, 5):
        assert scored[f"psp@{at}"] > plain[f"psp@{at}"] + 1
    assert plain["p@1"] > 75


def processor_seconds() -> float:
    """Give the processor time of all processes that were started here and have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


@pytest.fixture(scope="module")
def shown() -> str:
    """Give what the demo prints, after seeing that a minute on 2 cores is ample, whatever else they do."""
    before = processor_seconds()
    command = [sys.executable, "-m", "longleaf.cli", "demo"]
    result = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert processor_seconds() - before < 40
    assert result.returncode == 0, result.stderr
    assert result.stderr == ""
    return result.stdout


def test_the_demo_compares_three_dials(shown: str) -> None:
    for heading in ("tail 0 ", "tail 0.5", "tail 1 "):
        assert heading in shown
    rows = {
        name: [float(cell) for cell in cells]
        for name, *cells in re.findall(
            r"│ (\S+@\d(?: [a-z]+)?).*? │ +([\d.]+) │ +([\d.]+) │ +([\d.]+) │ +([-+][\d.]+) │", shown
        )
    }
    metrics = [f"{name}@{at}" for name in ("p", "psp") for at in (1, 3, 5)]
    assert list(rows) == [*metrics, "recall@5 head", "recall@5 torso", "recall@5 tail"]
    for plain, between, rare, change in rows.values():
        assert change == pytest.approx(rare - plain, abs=0.11)
        assert min(plain, rare) - 2 < between < max(plain, rare) + 2
    assert rows["recall@5 tail"][3] > 2
    assert rows["psp@1"][3] > 2


def test_the_demo_shows_what_fields_and_names_are_worth(shown: str) -> None:
    steps = re.findall(
        r"│ (words|both fields|and the names)[^│]*│ +([\d.]+) │ +([\d.]+) │ +([\d.]+) │ +([\d.]+) │", shown
    )
    assert [name for name, *_ in steps] == ["words", "both fields", "and the names"]
    words, fields, names = ([float(cell) for cell in cells] for _, *cells in steps)
    assert words[0] < fields[0] < names[0]  # p@1
    assert names[2] > words[2] + 2  # psp@5 at tail 1
    assert names[3] > words[3] + 5  # recall of rare concepts


def test_the_demo_shows_what_an_encoder_adds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    helper.require_extra()
    monkeypatch.setenv("LONGLEAF_CACHE", str(tmp_path / "cache"))
    bert = helper.save_bert(tmp_path / "tiny", layers=1, positions=16)
    said = run_well("demo", "--encoder", bert)
    (row,) = re.findall(r"│ and what laws mean \(tiny\) +│((?: +[\d.]+ │){4})", said)
    assert all(0 < float(cell) < 100 for cell in re.findall(r"[\d.]+", row))
    assert max(map(len, said.splitlines())) <= 100


def test_an_encoder_that_does_not_exist_is_refused_before_the_demo() -> None:
    assert "encoder must be 'minilm', the folder" in complaint("demo", "--encoder", "nothing")


def suggestions_in(part: str) -> list[tuple[str, str, str]]:
    """Return mark, name and words of each suggestion; long names and words go on in a second line."""
    found: list[tuple[str, str, str]] = []
    for line in part.splitlines():
        first = re.match(r"^(✓| )  (\S.*?) +(\d+) +([01]\.\d{3})  (\S.*)$", line)
        more = re.match(r"^   (?=.*\S)(.{26}|.{36})(?:  (.*))?$", line.ljust(29))
        if first is not None:
            found.append((first[1], first[2], first[5]))
        elif found and more is not None and not line.startswith("   concept"):
            mark, name, words = found[-1]
            found[-1] = (mark, f"{name} {line[:29].strip()}".strip(), f"{words} {line[29:].strip()}".strip())
    return found


def test_the_demo_explains_a_law_at_both_ends_of_the_dial(shown: str, sample: Sample) -> None:
    words = " ".join(shown.split())
    row = next(i for i, title in enumerate(sample.titles_test) if " ".join(title.split()) in words)
    truth = {sample.names[tag] for tag in sample.tags_test[row]}
    plain, rare = re.split(r"tail 1: ", shown.split("tail 0: ")[1])
    hits = []
    for part in (plain, rare):
        lines = suggestions_in(part)
        assert len(lines) == 5
        for mark, name, spoken in lines:
            assert (mark == "✓") == (name in truth)
            assert all(word in sample.texts_test[row].lower() for word in spoken.split())
        hits.append({name for mark, name, *_ in lines if mark == "✓"})
    assert len(hits[1]) >= len(hits[0])
    missed = shown.split("Missed by both: ")[1].strip().rstrip(".")
    assert set(missed.split(", ")) - {"none"} == truth - hits[0] - hits[1]


def test_the_demo_is_plain_and_narrow_when_piped(shown: str) -> None:
    assert "\x1b" not in shown
    assert max(map(len, shown.splitlines())) <= 100


def test_the_demo_fits_80_columns() -> None:
    with mock.patch.object(_console, "PLAIN_WIDTH", 80):
        shown = run_well("demo")
    assert max(map(len, shown.splitlines())) <= 80
    assert "…" not in shown
