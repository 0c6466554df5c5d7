"""Commands with ``--encoder``: train, predict, evaluate, explain, tune, update and info."""

import json
import math
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest
from rich.console import Console

import longleaf as ll
from tests.helpers import encoders as helper
from tests.helpers.commands import complaint, run_well
from tests.helpers.tables import write_jsonl
from tests.helpers.tagging import TAGS, TEXTS, corpus

helper.require_extra()

SMALL = ("--trees", 1, "--max-leaf", 2, "--threads", 1)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A table for training and one for testing, a tiny encoder, and a model with it."""
    folder = tmp_path_factory.mktemp("meaning")
    words = sorted({word for text in TEXTS for word in text.lower().split()})
    helper.save_bert(folder / "bert", words=[*helper.WORDS, *words])
    test_texts, test_tags = corpus(30, seed=1)
    for name, texts, tags in (("train", TEXTS, TAGS), ("test", test_texts, test_tags)):
        rows = [{"text": text, "tags": row} for text, row in zip(texts, tags, strict=True)]
        write_jsonl(folder / f"{name}.jsonl", rows)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LONGLEAF_CACHE", str(folder / "cache"))
        train(folder, folder / "model.ll", "--encoder-weight", 0.7)
        yield folder


def train(folder: Path, out: Path, *options: object) -> str:
    return run_well(
        "train", folder / "train.jsonl", "-o", out, *SMALL, "--encoder", folder / "bert", *options
    )


def of_python(folder: Path) -> ll.Tagger:
    estimator = ll.PLT(n_trees=1, max_leaf=2, random_state=1, n_jobs=1)
    return ll.Tagger(estimator, encoder=folder / "bert", encoder_weight=0.7).fit(TEXTS, TAGS)


def lines(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_train_and_predict_do_what_python_does(folder: Path, tmp_path: Path) -> None:
    run_well("predict", folder / "model.ll", folder / "test.jsonl", "-k", 3, "-o", tmp_path / "out.jsonl")
    texts = [row["text"] for row in lines(folder / "test.jsonl")]
    expected = of_python(folder).suggest(texts, k=3)
    found = [[(one["tag"], one["score"]) for one in row["labels"]] for row in lines(tmp_path / "out.jsonl")]
    assert found == [[(one.tag, one.numbers()["score"]) for one in row] for row in expected]


def test_evaluate_judges_with_meaning(folder: Path) -> None:
    found = json.loads(run_well("evaluate", folder / "model.ll", folder / "test.jsonl", "-k", "1", "--json"))
    rows = lines(folder / "test.jsonl")
    share = of_python(folder).score([row["text"] for row in rows], [row["tags"] for row in rows])
    assert found["p@1"] == pytest.approx(100 * share)


def test_info_names_the_encoder(folder: Path, tmp_path: Path) -> None:
    facts = json.loads(run_well("info", folder / "model.ll", "--json"))["encoder"]
    meaning = of_python(folder).meaning_
    assert meaning is not None
    assert facts == meaning.facts
    assert facts["weight"] == 0.7
    shown = f"bert ({facts['fingerprint']}), {facts['columns']} columns of weight 0.7"
    assert shown in run_well("info", folder / "model.ll")
    run_well("train", folder / "train.jsonl", "-o", tmp_path / "words.ll", *SMALL, "--encoder", "none")
    assert json.loads(run_well("info", tmp_path / "words.ll", "--json"))["encoder"] is None


def test_explain_has_a_line_for_meaning_or_divides_it(folder: Path) -> None:
    command = ("explain", folder / "model.ll", "--text", "olive oil from Crete", "--tag", "oil")
    model = ll.load(folder / "model.ll")
    assert isinstance(model, ll.Tagger)
    whole, divided = (
        model.explain("olive oil from Crete", "oil", meaning_by_word=one) for one in (False, True)
    )
    assert whole.meaning is not None
    assert divided.meaning is not None
    assert f"\n  meaning      {whole.meaning:+.2f}\n" in run_well(*command)
    by_word = run_well(*command, "--meaning-by-word")
    assert f"\n  meaning      {divided.meaning:+.2f}\n" in by_word
    assert f"olive {dict(divided.contributions)['olive']:+.2f}" in by_word
    total = math.fsum([*(value for _, value in divided.contributions), divided.meaning])
    assert total == pytest.approx(math.log(divided.probability / divided.baseline), abs=1e-4)


def test_only_a_model_with_an_encoder_divides_meaning(folder: Path, tmp_path: Path) -> None:
    run_well("train", folder / "train.jsonl", "-o", tmp_path / "words.ll", *SMALL)
    said = complaint("explain", tmp_path / "words.ll", "--text", "olive", "--tag", "oil", "--meaning-by-word")
    assert said == "longleaf: meaning_by_word needs a model with an encoder; this one has none.\n"


def test_tune_tries_weights_of_the_encoder(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "tuned.ll"
    found = json.loads(
        run_well(
            *("tune", folder / "train.jsonl", "--dev", folder / "test.jsonl", "--encoder", folder / "bert"),
            *("--candidates", 6, "--min-rows", 40, "--threads", 1, "-o", out, "--json"),
        )
    )
    tried = {trial["settings"]["encoder_weight"] for trial in found["trials"]}
    assert len(tried) > 1
    info = json.loads(run_well("info", out, "--json"))
    assert info["encoder"]["weight"] == found["settings"]["encoder_weight"]
    run_well("evaluate", out, folder / "test.jsonl")


def test_update_and_calibrate_read_meaning(folder: Path, tmp_path: Path) -> None:
    run_well("update", folder / "model.ll", folder / "test.jsonl", "-o", tmp_path / "new.ll")
    run_well("calibrate", tmp_path / "new.ll", folder / "test.jsonl", "-o", tmp_path / "calibrated.ll")
    before, after = (
        json.loads(run_well("info", path, "--json"))["encoder"]
        for path in (folder / "model.ll", tmp_path / "calibrated.ll")
    )
    assert before == after
    run_well("evaluate", tmp_path / "calibrated.ll", folder / "test.jsonl")


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--encoder-weight", 1), "--encoder-weight needs --encoder."),
        (("--encoder", "nothing"), "encoder must be 'minilm', the folder"),
        (("--encoder", ""), "--encoder"),
    ],
)
def test_what_train_cannot_use_is_one_sentence(
    folder: Path, tmp_path: Path, options: tuple[object, ...], sentence: str
) -> None:
    said = complaint("train", folder / "train.jsonl", "-o", tmp_path / "model.ll", *SMALL, *options)
    assert sentence in said
    assert not (tmp_path / "model.ll").exists()


def test_embeddings_in_a_field_are_read_by_every_command(folder: Path, tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    for name in ("train", "test"):
        rows = lines(folder / f"{name}.jsonl")
        rows = [row | {"vector": random.normal(size=6).tolist()} for row in rows]
        write_jsonl(tmp_path / f"{name}.jsonl", rows)
    model, options = tmp_path / "model.ll", (*SMALL, "--encoder", "column:vector")
    run_well("train", tmp_path / "train.jsonl", "-o", model, *options)
    run_well("predict", model, tmp_path / "test.jsonl", "-k", 3, "-o", tmp_path / "out.jsonl")
    train, test = (lines(tmp_path / f"{name}.jsonl") for name in ("train", "test"))
    estimator = ll.PLT(n_trees=1, max_leaf=2, random_state=1, n_jobs=1)
    tagger = ll.Tagger(estimator, encoder="column:vector")
    tagger.fit(
        [{"text": row["text"], "vector": row["vector"]} for row in train], [row["tags"] for row in train]
    )
    expected = tagger.suggest([{"text": row["text"], "vector": row["vector"]} for row in test], k=3)
    found = [[(one["tag"], one["score"]) for one in row["labels"]] for row in lines(tmp_path / "out.jsonl")]
    assert found == [[(one.tag, one.numbers()["score"]) for one in row] for row in expected]
    record = json.dumps({"text": "olive oil", "vector": [1, 2, 3, 4, 5, 6]})
    assert "meaning" in run_well("explain", model, "--record", record, "--tag", "oil")

    def terminal() -> Console:
        return Console(force_terminal=True, width=80, file=sys.stdout)

    with mock.patch("longleaf.cli._console.output", terminal):
        run_well("explain", model, "--record", record, "--tag", "oil")


@pytest.mark.parametrize("command", [("encoder", "info"), ("demo", "--encoder")])
def test_a_column_embeds_no_texts(command: tuple[str, ...]) -> None:
    assert "it must be an encoder that reads texts; got column:vector." in complaint(
        *command, "column:vector"
    )


@pytest.mark.parametrize("command", ["predict", "evaluate"])
def test_a_model_whose_encoder_is_gone_says_so(folder: Path, tmp_path: Path, command: str) -> None:
    shutil.copytree(folder / "bert", tmp_path / "lost")
    run_well(
        *(
            "train",
            folder / "train.jsonl",
            "-o",
            tmp_path / "model.ll",
            *SMALL,
            "--encoder",
            tmp_path / "lost",
        )
    )
    run_well("predict", tmp_path / "model.ll", folder / "test.jsonl")
    shutil.rmtree(tmp_path / "lost")
    said = complaint(command, tmp_path / "model.ll", folder / "test.jsonl")
    assert "the model needs encoder lost, but " in said
    helper.save_bert(tmp_path / "lost", seed=1)
    assert "is another one" in complaint(command, tmp_path / "model.ll", folder / "test.jsonl")
