"""``longleaf encoder tune``: what it prints, refuses and leaves behind."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

import longleaf as ll
from tests.helpers.commands import complaint, run
from tests.helpers.fine_tuning import TOPICS, WORDS, require_extra, save_base, toy
from tests.helpers.fine_tuning import one_thread as one_thread
from tests.helpers.processes import SECONDS, wait_until_used

require_extra()

PROMPT, MARGIN = 0.5, 2.0
"""What is promised after Ctrl-C, and what a crowded machine may take to wake a process up, in seconds."""

QUICK = ("--epochs", 3, "--max-tokens", 16, "--batch-size", 32, "--learning-rate", 4e-3)


pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    return save_base(tmp_path_factory.mktemp("base") / "base")


def save_table(path, n_texts=300, seed=0):
    texts, tags = toy(n_texts, seed)
    rows = [
        {"title": text[:4], "text": text[4:].strip(), "tags": own}
        for text, own in zip(texts, tags, strict=True)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return save_table(tmp_path_factory.mktemp("data") / "data.jsonl")


def test_it_prints_each_epoch_and_writes_an_encoder(base, data, tmp_path, monkeypatch, caplog):
    monkeypatch.setenv("LONGLEAF_CACHE", str(tmp_path / "cache"))
    result = run("encoder", "tune", data, "-o", tmp_path / "m", "--encoder", base, *QUICK)
    assert result.status == 0, result.stderr
    heading, *epochs, last = result.stdout.splitlines()
    assert heading.split() == ["epoch", "loss", "p@1", "p@3", "p@5", "psp@1", "psp@3", "psp@5", "seconds"]
    assert [line.split()[0] for line in epochs] == ["1", "2", "3"]
    history = json.loads((tmp_path / "m" / "longleaf.json").read_text())["history"]
    assert float(epochs[1].split()[2]) == pytest.approx(history[1]["measures"]["p@1"], abs=0.01)
    assert last.startswith(f"{tmp_path / 'm'}: the encoder of epoch ")
    assert "data.jsonl: 300 rows, all used\n" in result.stderr
    assert (
        f"285 texts and {TOPICS} tags to train on, 15 texts to judge; each step trains all tags"
        in caplog.text
    )
    assert ll.encoders.load(tmp_path / "m").embed(WORDS[:2]).shape == (2, 32)


def test_another_table_judges_and_a_checkpoint_resumes(base, data, tmp_path, caplog):
    other = save_table(tmp_path / "other.jsonl", 20, seed=4)
    command = [
        "encoder",
        "tune",
        data,
        "--encoder",
        base,
        *QUICK,
        "--validation",
        other,
        "--negatives",
        "tree",
    ]
    command += ["--checkpoint", tmp_path / "kept", "--seed", 3, "--device", "cpu", "--text", "text"]
    first = run(*command, "-o", tmp_path / "m")
    assert first.status == 0, first.stderr
    assert "300 texts and 8 tags to train on, 20 texts to judge" in caplog.text
    again = run(*command, "-o", tmp_path / "again")
    assert again.stdout.replace("again", "m") == first.stdout
    weights = [(tmp_path / name / "model.safetensors").read_bytes() for name in ("m", "again")]
    assert weights[0] == weights[1]


def test_what_cannot_be_done_is_refused_before_the_data_are_read(base, data, tmp_path):
    start = ("encoder", "tune", data, "--encoder", base)
    (tmp_path / "taken").mkdir()
    assert "already exists; choose another path or replace it with --force." in complaint(
        *start, "-o", tmp_path / "taken"
    )
    assert "Only a fine-tuned encoder can be replaced" in complaint(
        *start, "-o", tmp_path / "taken", "--force"
    )
    out = ("-o", tmp_path / "m")
    assert "--validation must be a table, or a share from 0 to below 1; got 1.5." in complaint(
        *start, *out, "--validation", 1.5
    )
    assert "device must be cpu or cuda; got 'tpu'." in complaint(*start, *out, "--device", "tpu")
    assert "--checkpoint must be outside the folder of -o" in complaint(
        *start, *out, "--checkpoint", tmp_path / "m" / "kept"
    )
    assert not (tmp_path / "m").exists()


def test_without_the_extra_a_sentence_says_how_to_install_it(data, tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "torch", None)
    said = complaint("encoder", "tune", data, "-o", tmp_path / "m")
    assert said == (
        "longleaf: longleaf encoder tune needs the extra finetune, which is not installed: "
        "pip install 'longleaf[finetune]'.\n"
    )


CHILD = """
import signal, sys, time
from longleaf.cli import main

signal.signal(signal.SIGINT, signal.default_int_handler)
print(main(sys.argv[1:]), time.monotonic(), flush=True)
"""


def test_ctrl_c_ends_it_at_once_and_leaves_the_checkpoint(tmp_path):
    base = save_base(tmp_path / "base", layers=6, width=384, heads=12, inner=1536, positions=260)
    texts, tags = toy(600)
    path = tmp_path / "data.jsonl"
    rows = [{"text": " ".join([text] * 50), "tags": own} for text, own in zip(texts, tags, strict=True)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    command = [sys.executable, "-c", CHILD, "encoder", "tune", str(path), "-o", str(tmp_path / "m")]
    command += ["--encoder", str(base), "--checkpoint", str(tmp_path / "kept"), "--validation", "0"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, **pipes, env=os.environ | {"OMP_NUM_THREADS": "1"}) as child:
        while "to train on" not in child.stderr.readline():
            assert child.poll() is None
        wait_until_used(child.pid, 1.0)  # into the first step, which takes longer
        begin = time.monotonic()
        child.send_signal(signal.SIGINT)
        status, end = child.communicate(timeout=SECONDS)[0].split()
    assert status == "130"
    assert float(end) - begin < PROMPT + MARGIN
    assert not (tmp_path / "m").exists()
    assert (tmp_path / "kept" / "checkpoint.json").exists()
