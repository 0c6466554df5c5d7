"""What is served is a checked copy: whatever happens to the model's folder, workers live and answers stay."""

import os
import shutil
import signal
from pathlib import Path
from typing import Any

import pytest

from longleaf._validation import ModelError
from longleaf.io._snapshot import copy_folder
from longleaf.io.storage import load_folder
from tests.helpers.commands import complaint
from tests.helpers.serving import Running, children, make_tagger, make_vector_model, metric, serving, wait_for

pytest.importorskip("uvicorn", reason="needs the extra serve")

TEXTS = ["virgin olive oil with cod", "wheat and saffron"]


@pytest.fixture
def model(tmp_path: Path) -> Path:
    make_tagger(seed=1).save(tmp_path / "model.ll")
    return tmp_path / "model.ll"


@pytest.fixture
def snapshots(tmp_path: Path) -> Path:
    (tmp_path / "snapshots").mkdir()
    return tmp_path / "snapshots"


def arrays(model: Path) -> list[Path]:
    found = sorted(model.rglob("*.npy"))
    assert found
    return found


def flip(file: Path) -> None:
    """Turn one bit of an array's content, its last."""
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(content)  # in place, as a careless copy does


def ask(running: Running) -> Any:
    tree = running.call("/v1/tree", {"node": 1, "text": TEXTS[0]})
    return [running.suggest(TEXTS, k=5, tail=1.0), tree.json]


@pytest.mark.parametrize("workers", [1, 2])
def test_answers_stay_the_same_whatever_happens_to_the_files(model: Path, workers: int) -> None:
    with serving(model, "--workers", workers) as running:
        wait_for(lambda: metric(running, "longleaf_worker_starts_total") == workers)
        before, processes = ask(running), children(running)
        for file in arrays(model):
            flip(file)
        assert ask(running) == before
        for file in arrays(model):
            os.truncate(file, 0)
        assert [ask(running) for _ in range(4)] == [before] * 4
        assert children(running) == processes, "nobody died"
        os.kill(processes[0], signal.SIGKILL)
        wait_for(lambda: metric(running, "longleaf_worker_starts_total") == workers + 1)
        shutil.rmtree(model)
        assert [ask(running) for _ in range(4)] == [before] * 4, "one that starts later has the model too"
        assert running.call("/v1/reload", {}).status == 409
        assert ask(running) == before


def test_a_flipped_bit_in_any_array_of_a_new_model_is_refused(model: Path, tmp_path: Path) -> None:
    make_tagger(seed=2).save(tmp_path / "next.ll")
    with serving(model, "--workers", 2) as running:
        before, version = ask(running), running.call("/v1/model").json["model"]
        names = [file.relative_to(tmp_path / "next.ll") for file in arrays(tmp_path / "next.ll")]
        for name in names:
            shutil.rmtree(model)
            shutil.copytree(tmp_path / "next.ll", model)
            flip(model / name)
            answer = running.call("/v1/reload", {})
            assert answer.status == 409, name
            assert str(tmp_path) not in answer.error, "where it lies is nobody's business"
            assert ask(running) == before
        reasons = [line["reason"] for line in running.log if line["event"] == "reload failed"]
        assert len(reasons) == len(names)
        assert all(f"{name} was altered" in reason for name, reason in zip(names, reasons, strict=True))
        assert metric(running, "longleaf_failed_reloads_total") == len(names)
        flip(model / names[-1])
        answer = running.call("/v1/reload", {})
        assert (answer.status, answer.json["changed"]) == (200, True)
        assert answer.json["model"] != version


def test_a_reload_checks_the_files_even_where_no_other_model_is_announced(model: Path) -> None:
    with serving(model, "--workers", 2) as running:
        before = ask(running)
        assert running.call("/v1/reload", {}).json["changed"] is False
        for file in arrays(model):
            flip(file)
        assert running.call("/v1/reload", {}).status == 409
        assert ask(running) == before
        for file in arrays(model):
            flip(file)
        assert running.call("/v1/reload", {}).status == 200


@pytest.mark.parametrize("options", [[], ["--in-place"]])
def test_a_damaged_model_is_not_served_from_the_start(model: Path, options: list[str]) -> None:
    for file in arrays(model):
        flip(file)
        said = complaint("serve", model, "--port", 0, *options)
        assert f"is damaged: {file.relative_to(model)}" in said, (
            "its content, or the header of an empty array"
        )
        flip(file)


def test_copies_have_no_names_once_they_are_mapped(model: Path, snapshots: Path) -> None:
    with serving(model, "--snapshots", snapshots, "--workers", 2) as running:
        [folder] = snapshots.iterdir()
        assert folder.stat().st_mode & 0o077 == 0, "for nobody else"
        assert list(folder.iterdir()) == []
        make_tagger(seed=2).save(model, force=True)
        assert running.call("/v1/reload", {}).json["changed"]
        wait_for(lambda: not list(folder.iterdir()))
        for worker in children(running):
            maps = Path(f"/proc/{worker}/maps").read_text()
            assert f"{folder}/" in maps
            assert str(model) not in maps
        assert running.stop() == 0
    assert list(snapshots.iterdir()) == []


def test_what_a_killed_service_left_is_removed_by_the_next(model: Path, snapshots: Path) -> None:
    with serving(model, "--snapshots", snapshots) as running:
        wait_for(lambda: len(children(running)) == 1)
        workers, [left] = children(running), snapshots.iterdir()
        (left / "new").mkdir()
        (left / "new" / "large.npy").write_bytes(b"x" * 1000)
        with serving(model, "--snapshots", snapshots):
            assert left in snapshots.iterdir(), "it is still in use"
        running.process.kill()
        running.process.wait()
        wait_for(lambda: not any(Path(f"/proc/{worker}").exists() for worker in workers))
    with serving(model, "--snapshots", snapshots):
        assert left not in snapshots.iterdir()


def test_a_model_can_be_served_in_place(model: Path, snapshots: Path) -> None:
    with serving(model, "--in-place", environment={"TMPDIR": str(snapshots)}) as running:
        assert list(snapshots.iterdir()) == []
        wait_for(lambda: len(children(running)) == 1)
        [worker] = children(running)
        assert str(model) in Path(f"/proc/{worker}/maps").read_text()
        before = ask(running)
        make_tagger(seed=2).save(model, force=True)
        flip(arrays(model)[0])
        assert running.call("/v1/reload", {}).status == 409
        assert ask(running) == before
        flip(arrays(model)[0])
        assert running.call("/v1/reload", {}).json["changed"]


def test_where_copies_go_must_be_a_folder(model: Path) -> None:
    said = complaint("serve", model, "--port", 0, "--snapshots", model / "none")
    assert said == f"longleaf: snapshots must be a folder; got {model / 'none'}.\n"
    assert "got both" in complaint("serve", model, "--snapshots", model.parent, "--in-place")


@pytest.fixture
def vectors(tmp_path: Path) -> Path:
    make_vector_model().save(tmp_path / "vectors.ll")
    return tmp_path / "vectors.ll"


def test_a_copy_is_the_same_model(vectors: Path, tmp_path: Path) -> None:
    raw = copy_folder(vectors, tmp_path / "copy")
    assert raw == (vectors / "model.json").read_bytes()
    files = {path.relative_to(vectors): path.read_bytes() for path in vectors.rglob("*") if path.is_file()}
    copied = {
        path.relative_to(tmp_path / "copy"): path.read_bytes()
        for path in (tmp_path / "copy").rglob("*")
        if path.is_file()
    }
    assert copied == files
    load_folder(tmp_path / "copy", verify=True)


def test_a_copy_is_made_without_the_help_of_the_kernel(
    vectors: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> int:
        raise OSError(18, "Invalid cross-device link")

    monkeypatch.setattr(os, "copy_file_range", refuse)
    copy_folder(vectors, tmp_path / "copy")
    load_folder(tmp_path / "copy", verify=True)


def test_a_copy_needs_space_and_whole_files(vectors: Path, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"A snapshot of the model must have \d+ bytes free; got 10"):
        copy_folder(vectors, tmp_path / "copy", free=10)
    os.truncate(arrays(vectors)[0], 100)
    with pytest.raises(ModelError, match="was altered"):
        copy_folder(vectors, tmp_path / "copy")
