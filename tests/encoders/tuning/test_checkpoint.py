"""A training that was killed continues, and ends with the same weights."""

import signal
import subprocess
import sys

import numpy as np
import pytest

import longleaf as ll
from tests.helpers.data import ROOT
from tests.helpers.fine_tuning import QUICK, require_extra, toy

require_extra()

import torch  # noqa: E402

from longleaf.encoders.tuning.checkpoint import TrainingKeeper  # noqa: E402
from longleaf.encoders.tuning.training import Callbacks, Settings, Training  # noqa: E402
from tests.encoders.tuning.test_training import data_of, network_of, scripted, weights  # noqa: E402

CHILD = """
import os, sys, torch
import longleaf as ll
from tests.helpers.fine_tuning import QUICK, toy

torch.set_num_threads(1)

def wait(epoch):
    if epoch.number == 2:
        print("ready", flush=True)
        sys.stdin.read()

texts, tags = toy(200)
ll.encoders.fine_tune(
    texts,
    tags,
    sys.argv[2],
    encoder=sys.argv[1],
    checkpoint=sys.argv[3],
    negatives=sys.argv[4],
    report=wait,
    **QUICK,
)
"""


@pytest.mark.parametrize("negatives", ["all", "tree"])
def test_after_kill_9_the_same_call_continues_to_the_same_weights(base, tmp_path, negatives):
    texts, tags = toy(200)
    options = QUICK | {"encoder": base, "negatives": negatives}
    want = ll.encoders.fine_tune(texts, tags, tmp_path / "whole", **options)
    output, kept = tmp_path / "killed", tmp_path / "kept"
    command = [sys.executable, "-c", CHILD, str(base), str(output), str(kept), negatives]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, cwd=ROOT, **pipes) as child:
        assert child.stdout.readline() == "ready\n"
        child.kill()
        child.wait()
    assert child.returncode == -signal.SIGKILL
    assert not output.exists()
    steps, epochs = [], []
    found = ll.encoders.fine_tune(
        texts, tags, output, checkpoint=kept, progress=steps.append, report=epochs.append, **options
    )
    assert steps[0] > 0.5
    assert [epoch.number for epoch in epochs] == [1, 2, 3, 4]
    assert [epoch.loss for epoch in found.history] == [epoch.loss for epoch in want.history]
    assert (output / "model.safetensors").read_bytes() == (want.path / "model.safetensors").read_bytes()


class KilledError(Exception):
    """As if the process had ended."""


@pytest.mark.parametrize("listed", [False, True])
@pytest.mark.parametrize("steps", [1, 3, 4, 6])
def test_a_training_continues_in_the_middle_of_an_epoch(base, tmp_path, monkeypatch, listed, steps):
    monkeypatch.setattr("longleaf.encoders.tuning.checkpoint.COST", 0)
    shortlist = np.tile(np.arange(8, dtype=np.int32), (64, 1)) if listed else None
    settings = Settings(epochs=2, batch_size=16, learning_rate=1e-3)
    done = []

    def training(calls):
        return Training(network_of(base, dropout=0.2), data_of(base, shortlist=shortlist), settings, calls)

    def kill(share):
        done.append(share)
        if len(done) == steps:
            raise KilledError

    whole = training(Callbacks(judge=scripted([2, 1])))
    want = [epoch.loss for epoch in whole.run()]
    with pytest.raises(KilledError):
        training(Callbacks(scripted([2, 1]), TrainingKeeper(tmp_path, 0), progress=kill)).run()
    done = [0] * 100
    again = training(Callbacks(scripted([2, 1][steps > 4 :]), TrainingKeeper(tmp_path, 0), progress=kill))
    assert [epoch.loss for epoch in again.run()] == want
    assert len(done) == 100 + 8 - (steps - 1)  # what came after the last step that was kept
    found, whole = weights(again.network), weights(whole.network)
    assert all(torch.equal(one, whole[name]) for name, one in found.items())


def test_a_finished_training_only_writes_its_encoder_again(base, tmp_path):
    texts, tags = toy(64)
    options = QUICK | {"encoder": base, "checkpoint": tmp_path / "kept"}
    first = ll.encoders.fine_tune(texts, tags, tmp_path / "first", **options)
    steps = []
    again = ll.encoders.fine_tune(texts, tags, tmp_path / "again", progress=steps.append, **options)
    assert not steps
    assert again.history == first.history
    assert (again.path / "model.safetensors").read_bytes() == (first.path / "model.safetensors").read_bytes()


@pytest.fixture
def kept(base, tmp_path):
    folder = tmp_path / "kept"
    ll.encoders.fine_tune(*toy(64), tmp_path / "m", encoder=base, checkpoint=folder, **QUICK | {"epochs": 1})
    return folder


@pytest.mark.parametrize(
    ("changes", "difference"),
    [
        ({"epochs": 2}, "a training with epochs=1, this one has epochs=2"),
        ({"dropout": 0.1}, "a training with dropout=0.2, this one has dropout=0.1"),
        ({"max_tokens": 15}, "a training with max_tokens=16, this one has max_tokens=15"),
        ({"seed": 2}, "a training with seed=1, this one has seed=2"),
        ({"validation": 0}, "other data: its features differ"),
        ({"n_texts": 63}, "other data: its features differ"),
    ],
)
def test_a_checkpoint_of_another_training_is_refused(base, tmp_path, kept, changes, difference):
    texts, tags = toy(changes.pop("n_texts", 64))
    options = QUICK | {"epochs": 1, "encoder": base, "checkpoint": kept} | changes
    with pytest.raises(ValueError, match=r"The checkpoint in .* is of") as found:
        ll.encoders.fine_tune(texts, tags, tmp_path / "other", **options)
    assert difference in str(found.value)
    assert str(found.value).endswith("use another folder, or remove it to start over.")


def test_a_damaged_checkpoint_is_refused(base, tmp_path, kept):
    state = kept / "encoder.bundle"
    content = bytearray(state.read_bytes())
    content[len(content) // 2] ^= 1
    state.write_bytes(content)
    options = QUICK | {"epochs": 1, "encoder": base, "checkpoint": kept}
    with pytest.raises(
        ValueError, match=r"is damaged: it does not match its own checksum; remove .* to start"
    ):
        ll.encoders.fine_tune(*toy(64), tmp_path / "other", **options)
    state.write_bytes(content[:100])
    with pytest.raises(ValueError, match="is damaged"):
        ll.encoders.fine_tune(*toy(64), tmp_path / "other", **options)


def test_what_is_no_checkpoint_is_refused_before_any_work(base, tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "diary.txt").write_text("dear")
    with pytest.raises(
        ValueError, match="must be a checkpoint, an empty folder or a new one; it holds diary"
    ):
        ll.encoders.fine_tune(
            ["no such words"], [["a"]], tmp_path / "m", encoder=base, checkpoint=tmp_path / "mine"
        )
