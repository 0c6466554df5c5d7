"""A small tagger, and services of it that run in processes of their own."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import longleaf as ll

COMMAND = [sys.executable, "-W", "error", "-m", "longleaf.cli", "serve"]
SECONDS = 60
"""Patience with a busy machine."""

NAMES = {"1264": "olive oil", "2437": "sea fish", "1085": "France", "2002": "wheat"}
WORDS = {
    "1264": "olive oil press grove virgin",
    "2437": "cod herring catch vessel net",
    "1085": "paris french republic loire",
    "2002": "wheat flour grain mill bread",
    "rare": "saffron crocus stigma",
}
_OPEN = urllib.request.build_opener(urllib.request.ProxyHandler({})).open


def make_tagger(seed: int = 1, n_trees: int = 2, **options: Any) -> ll.Tagger:
    """Train on texts of a few words each; the tag "rare" occurs twice, "1264" most often."""
    random = np.random.RandomState(0)
    texts, tags = [], []
    for tag, count in zip(WORDS, (40, 20, 15, 10, 2), strict=True):
        for _ in range(count):
            other = str(random.choice([one for one in WORDS if one != "rare"]))
            words = [*random.choice(WORDS[tag].split(), 4), random.choice(WORDS[other].split())]
            texts.append(" ".join(["the import of", *words]))
            tags.append(sorted({tag, other} if random.rand() < 0.3 else {tag}))
    estimator = ll.PLT.paper(n_trees=n_trees, max_leaf=2, random_state=seed, n_jobs=1)
    return ll.Tagger(estimator, names=NAMES, **options).fit(texts, tags)


def make_vector_model() -> ll.PLT:
    """Train on 12 features and 5 labels."""
    random = np.random.RandomState(1)
    Y = np.eye(5)[np.arange(60) % 5]
    X = np.hstack([Y, np.zeros((60, 7))]) + 0.3 * random.rand(60, 12)
    return ll.PLT(n_trees=1, max_leaf=2, random_state=1).fit(X, Y)


@dataclass(frozen=True)
class Answer:
    """What came back."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def error(self) -> str:
        return str(self.json["error"])


@dataclass
class Running:
    """A service that runs."""

    process: subprocess.Popen[str]
    url: str
    log_path: Path

    def call(self, path: str, body: Any = None, **headers: str) -> Answer:
        """Send a request: a POST of JSON, or of bytes as they are, if there is a body."""
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        sent = {"content-type": "application/json"} | {n.replace("_", "-"): v for n, v in headers.items()}
        method = sent.pop("method", None)
        request = urllib.request.Request(self.url + path, data, sent, method=method)
        try:
            with _OPEN(request, timeout=SECONDS) as answer:
                return Answer(answer.status, {n.lower(): v for n, v in answer.headers.items()}, answer.read())
        except urllib.error.HTTPError as error:
            with error:
                return Answer(error.code, {n.lower(): v for n, v in error.headers.items()}, error.read())

    def suggest(self, texts: list[Any], **options: Any) -> list[list[dict[str, Any]]]:
        """Give the suggestions of texts or records."""
        answer = self.call("/v1/suggest", {"texts": texts} | options)
        assert answer.status == 200, answer.body
        return [result["suggestions"] for result in answer.json["results"]]

    @property
    def log(self) -> list[dict[str, Any]]:
        """The lines that it has logged."""
        whole, _, _ = self.log_path.read_text().rpartition("\n")  # the last line may be half written
        return [json.loads(line) for line in whole.splitlines()]

    def stop(self, number: int = signal.SIGTERM) -> int:
        """Tell it to stop, and give its exit status."""
        self.process.send_signal(number)
        return self.process.wait(SECONDS)


@contextmanager
def serving(model: Path, *options: object, environment: dict[str, str] | None = None) -> Iterator[Running]:
    """Run a service on a free port of this machine."""
    log_path = model.parent / f"log-{os.urandom(4).hex()}.jsonl"
    with open(log_path, "w") as log:
        process = subprocess.Popen(
            [*COMMAND, str(model), "--port", "0", *map(str, options)],
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            env=os.environ | (environment or {}),
        )
    assert process.stdout is not None
    try:
        said = process.stdout.readline()
        assert said.startswith("longleaf serves at http://"), log_path.read_text()
        yield Running(process, said.split()[3], log_path)
    finally:
        if process.poll() is None:
            process.terminate()
            try:
                process.wait(SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
        process.stdout.close()
        process.wait()


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < deadline, "in vain"
        time.sleep(0.02)


def children(running: Running) -> list[int]:
    path = Path(f"/proc/{running.process.pid}/task/{running.process.pid}/children")
    return [int(process) for process in path.read_text().split()]


def metric(running: Running, name: str) -> float:
    found = re.search(rf"^{re.escape(name)} (\S+)$", running.call("/metrics").body.decode(), re.MULTILINE)
    return float(found[1]) if found else 0.0
