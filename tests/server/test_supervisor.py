"""Processes: workers share a port and their counts; reload, drain and death lose no request."""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.commands import complaint
from tests.helpers.serving import COMMAND, SECONDS, Running, children, make_tagger, metric, serving, wait_for

pytest.importorskip("uvicorn", reason="needs the extra serve")


@pytest.fixture
def model(tmp_path: Path) -> Path:
    make_tagger(seed=1).save(tmp_path / "model.ll")
    return tmp_path / "model.ll"


def has_more(answers: list[Any], number: int) -> bool:
    return len(answers) > number


@contextmanager
def requests_all_the_time(running: Running, n_threads: int = 3) -> Iterator[list[tuple[float, int, str]]]:
    """Send requests one after the other in several threads; give (begin, status, version) of all of them."""
    answers: list[tuple[float, int, str]] = []
    done = threading.Event()

    def send() -> None:
        while not done.is_set():
            begin = time.monotonic()
            answer = running.call("/v1/suggest", {"texts": ["olive oil"], "k": 2})
            answers.append((begin, answer.status, answer.json.get("model", "")))

    threads = [threading.Thread(target=send) for _ in range(n_threads)]
    for thread in threads:
        thread.start()
    try:
        yield answers
    finally:
        done.set()
        for thread in threads:
            thread.join()


@pytest.mark.parametrize("workers", [1, 2])
def test_reloads_under_requests_fail_none_of_them(model: Path, workers: int) -> None:
    with serving(model, "--workers", workers) as running:
        versions = [running.call("/v1/model").json["model"]]
        with requests_all_the_time(running) as answers:
            for seed in (2, 3):
                make_tagger(seed=seed).save(model, force=True)
                answer = running.call("/v1/reload", {})
                assert answer.status == 200, answer.body
                assert (answer.json["changed"], answer.json["workers"]) == (True, workers)
                versions.append(answer.json["model"])
                enough, reloaded = len(answers) + 10, time.monotonic()
                wait_for(partial(has_more, answers, enough))
                late = {version for begin, _, version in answers if begin > reloaded}
                assert late == {versions[-1]}
        assert {status for _, status, _ in answers} == {200}
        assert {version for _, _, version in answers} == set(versions)
        assert len(set(versions)) == 3
        assert not running.call("/v1/reload", {}).json["changed"]


@pytest.mark.parametrize("workers", [1, 2])
def test_a_signal_reloads_all_workers(model: Path, workers: int) -> None:
    with serving(model, "--workers", workers) as running:
        old = running.call("/v1/model").json["model"]
        make_tagger(seed=2).save(model, force=True)
        running.process.send_signal(signal.SIGHUP)
        wait_for(lambda: metric(running, "longleaf_reloads_total") == workers)
        assert {running.call("/v1/model").json["model"] for _ in range(10)} != {old}
        assert running.stop() == 0


def test_a_broken_model_is_refused_and_the_old_one_stays(model: Path) -> None:
    with serving(model, "--workers", 2) as running:
        before = running.suggest(["olive oil"])
        (model / "model.json").write_text("{}")
        answer = running.call("/v1/reload", {})
        assert answer.status == 409
        assert answer.error == (
            "The old model stays, because the new one cannot be read; see the service's log."
        )
        reasons = [line["reason"] for line in running.log if line["event"] == "reload failed"]
        assert [str(model) in reason for reason in reasons] == [True]
        running.process.send_signal(signal.SIGHUP)
        wait_for(lambda: sum(line["event"] == "reload failed" for line in running.log) == 2)
        assert running.suggest(["olive oil"]) == before
        assert running.stop() == 0


def test_several_workers_answer_and_count_together(model: Path) -> None:
    with serving(model, "--workers", 3) as running:
        wait_for(lambda: len(children(running)) == 3)
        with requests_all_the_time(running, 4) as answers:
            wait_for(lambda: len({line["process"] for line in running.log if "status" in line}) == 3)
        counted = 'longleaf_requests_total{path="/v1/suggest",status="200"}'
        wait_for(lambda: metric(running, counted) == len(answers))  # a request counts once it is answered
        assert metric(running, "longleaf_batch_rows_sum") == len(answers)
        assert metric(running, "longleaf_workers") == 3
        assert running.stop() == 0


@pytest.mark.parametrize("workers", [1, 2])
def test_what_has_begun_is_finished_before_the_end(model: Path, workers: int) -> None:
    with serving(model, "--workers", workers) as running:
        slow = {"texts": ["olive oil and cod " * 200] * 60, "explain": True, "k": 5}
        answers = []
        thread = threading.Thread(target=lambda: answers.append(running.call("/v1/suggest", slow)))
        thread.start()
        wait_for(lambda: metric(running, "longleaf_requests_in_flight") == 2)  # it, and this look
        assert running.stop() == 0
        thread.join()
        assert answers[0].status == 200
        assert len(answers[0].json["results"]) == 60
        events = [line["event"] for line in running.log]
        assert "draining" in events
        assert events.count("stopped") == workers
        with pytest.raises(OSError, match="refused"):
            running.call("/healthz")


def test_a_worker_that_dies_is_replaced(model: Path) -> None:
    with serving(model, "--workers", 2) as running:
        wait_for(lambda: metric(running, "longleaf_worker_starts_total") == 2)
        victim = children(running)[0]
        os.kill(victim, signal.SIGKILL)
        wait_for(lambda: len(children(running)) == 2 and victim not in children(running))
        wait_for(lambda: metric(running, "longleaf_worker_starts_total") == 3)
        assert running.suggest(["olive oil"])
        assert any(line["event"] == "worker died" and line["status"] == -9 for line in running.log)


def test_workers_end_with_their_supervisor(model: Path) -> None:
    with serving(model, "--workers", 2) as running:
        wait_for(lambda: metric(running, "longleaf_worker_starts_total") == 2)
        workers = children(running)
        running.process.kill()
        running.process.wait()
        wait_for(lambda: not any(_alive(worker) for worker in workers))


def _alive(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def test_workers_share_the_pages_of_the_model(model: Path) -> None:
    with serving(model, "--workers", 2) as running:
        wait_for(lambda: metric(running, "longleaf_worker_starts_total") == 2)
        for worker in children(running):
            maps = Path(f"/proc/{worker}/maps").read_text()
            ours = [line.split()[1] for line in maps.splitlines() if "longleaf-serve" in line]
            assert ours
            assert all(rights.startswith("r-") for rights in ours), "nobody may write, so nothing is copied"


def test_it_listens_on_this_machine_only(model: Path) -> None:
    with serving(model) as running:
        assert running.log[0]["event"] == "listening"
        assert running.url.startswith("http://127.0.0.1:")
        assert running.call("/readyz").json["status"] == "ready"
        assert running.stop(signal.SIGINT) == 0


def test_a_port_in_use_is_one_sentence(model: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        result = subprocess.run(
            [*COMMAND, str(model), "--port", str(port)], capture_output=True, text=True, timeout=SECONDS
        )
    assert result.returncode == 2
    reason = f"got 127.0.0.1:{port} (Address already in use)"
    assert result.stderr == f"longleaf: host and port must be free to listen on; {reason}.\n"


def test_a_missing_model_is_one_sentence(tmp_path: Path) -> None:
    assert "There is no model at" in complaint("serve", tmp_path / "none.ll", "--port", 0)


def test_a_feedback_file_that_cannot_be_written_is_one_sentence(model: Path) -> None:
    said = complaint("serve", model, "--port", 0, "--feedback", model.parent / "nowhere" / "f.jsonl")
    assert "No such file or directory" in said


@pytest.mark.parametrize(
    ("missing", "code"),
    [
        ("uvicorn", "import longleaf.cli; sys.exit(longleaf.cli.main(['serve', 'model.ll']))"),
        ("starlette", "import longleaf.cli; sys.exit(longleaf.cli.main(['serve', 'model.ll']))"),
        ("httpx", "import longleaf; longleaf.Client('http://127.0.0.1:1')"),
    ],
)
def test_without_the_extra_one_sentence_says_what_to_install(missing: str, code: str) -> None:
    blocked = f"import sys; sys.modules[{missing!r}] = None; {code}"
    result = subprocess.run([sys.executable, "-c", blocked], capture_output=True, text=True, timeout=SECONDS)
    assert result.returncode != 0
    last = result.stderr.strip().splitlines()[-1]
    assert last.endswith("needs the extra serve, which is not installed: pip install 'longleaf[serve]'.")


def test_every_line_of_the_log_is_json(model: Path) -> None:
    with serving(model, "--workers", 2) as running:
        running.call("/v1/suggest", b"{")
        running.stop()
        for line in running.log_path.read_text().splitlines():
            assert {"time", "level", "event", "process"} <= json.loads(line).keys()
