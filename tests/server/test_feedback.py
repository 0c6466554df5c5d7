"""Feedback that was acknowledged stays, whatever becomes of the line after it."""

import errno
import json
import os
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("uvicorn", reason="needs the extra serve")

from longleaf.server.engine import Engine
from longleaf.server.feedback import FeedbackFile
from longleaf.server.settings import Refusal
from tests.helpers.serving import make_tagger

KEPT = {"text": "virgin oil", "accepted": ["1264"]}
LONG = {"text": "oil " * 5000, "accepted": ["1264"]}
IN_A_SMALL_SPACE = """
import json, resource, sys
from longleaf.server.engine import Engine
from longleaf.server.feedback import FeedbackFile
from longleaf.server.settings import Refusal
file, engine = FeedbackFile(sys.argv[2]), Engine(sys.argv[1])
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
for body in json.loads(sys.argv[3]):
    try:
        file.add(body, engine)
        print("kept")
    except Refusal as refusal:
        print(refusal.status, refusal.sentence)
"""


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("feedback") / "model.ll"
    make_tagger().save(path)
    return path


@pytest.fixture(scope="module")
def engine(model: Path) -> Engine:
    return Engine(str(model))


def texts(path: Path) -> list[str]:
    assert path.read_bytes().endswith(b"\n")
    return [json.loads(line)["text"] for line in path.read_text().splitlines()]


def test_a_line_that_does_not_fit_leaves_nothing_behind(model: Path, tmp_path: Path) -> None:
    path, bodies = tmp_path / "feedback.jsonl", json.dumps([KEPT, LONG, KEPT])
    result = subprocess.run(
        [sys.executable, "-c", IN_A_SMALL_SPACE, str(model), str(path), bodies],
        capture_output=True,
        text=True,
        check=True,
    )
    full = "507 Feedback cannot be stored now, because there is no space left."
    assert result.stdout.splitlines() == ["kept", full, "kept"]
    assert texts(path) == ["virgin oil"] * 2
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] != 4096, "this process has its own limit"


@pytest.mark.parametrize(("code", "status"), [(errno.ENOSPC, 507), (errno.EDQUOT, 507), (errno.EIO, 503)])
def test_a_write_that_stops_midway_is_undone(
    engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int, status: int
) -> None:
    file, write, calls = FeedbackFile(str(tmp_path / "feedback.jsonl")), os.write, 0

    def short(handle: int, line: bytes) -> int:
        nonlocal calls
        calls += 1
        if calls > 1:
            raise OSError(code, os.strerror(code))
        return write(handle, line[:10])

    file.add(KEPT, engine)
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", short)
        with pytest.raises(Refusal) as refused:
            file.add(KEPT, engine)
    assert refused.value.status == status
    assert str(tmp_path) not in refused.value.sentence
    file.add(KEPT, engine)
    assert texts(tmp_path / "feedback.jsonl") == ["virgin oil"] * 2


def test_a_line_that_cannot_be_brought_to_the_disk_is_undone(
    engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = FeedbackFile(str(tmp_path / "feedback.jsonl"))

    def fail(handle: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fail)
        with pytest.raises(Refusal, match="its file cannot be written"):
            file.add(KEPT, engine)
    assert (tmp_path / "feedback.jsonl").read_bytes() == b""


def test_a_torn_end_does_not_swallow_the_next_line(engine: Engine, tmp_path: Path) -> None:
    path = tmp_path / "feedback.jsonl"
    file = FeedbackFile(str(path))
    file.add(KEPT, engine)
    with open(path, "a") as torn:
        torn.write('{"text": "a writer was kil')
    file.add(KEPT, engine)
    lines = path.read_text().split("\n")
    assert lines[1] == '{"text": "a writer was kil'
    assert [json.loads(line)["text"] for line in (lines[0], lines[2])] == ["virgin oil"] * 2
    assert lines[3:] == [""]


def test_a_file_that_vanished_with_its_folder_is_one_sentence(engine: Engine, tmp_path: Path) -> None:
    (tmp_path / "gone").mkdir()
    file = FeedbackFile(str(tmp_path / "gone" / "feedback.jsonl"))
    (tmp_path / "gone" / "feedback.jsonl").unlink()
    (tmp_path / "gone").rmdir()
    with pytest.raises(Refusal) as refused:
        file.add(KEPT, engine)
    assert (refused.value.status, refused.value.sentence) == (
        503,
        "Feedback cannot be stored now, because its file cannot be written.",
    )


def test_only_a_regular_file_keeps_feedback(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path("/dev/null")):
        with pytest.raises(ValueError, match="The feedback file must be a regular file"):
            FeedbackFile(str(path))


def test_surrogates_are_kept(engine: Engine, tmp_path: Path) -> None:
    body: dict[str, Any] = {"text": "oil \ud800", "accepted": ["1264"]}
    FeedbackFile(str(tmp_path / "feedback.jsonl")).add(body, engine)
    assert texts(tmp_path / "feedback.jsonl") == ["oil \ud800"]
