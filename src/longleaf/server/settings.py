"""What a service is told when it starts."""

from __future__ import annotations

import os
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Limits:
    """What one request may ask for; beyond it is a 4xx answer that names the limit.

    Attributes
    ----------
    body_bytes : int
        Size of a request's body.
    texts, k : int
        Texts or vectors a request, and suggestions for each.
    seconds : float
        From the first byte of a request to its answer.
    waiting : int
        Rows that may wait for the searcher, over all requests of a worker.
    explained : int
        Characters of all texts to explain in a request.
    connections : int
        Open connections of a worker.
    """

    body_bytes: int = 8_000_000
    texts: int = 256
    k: int = 100
    seconds: float = 30.0
    waiting: int = 4096
    explained: int = 1_000_000
    connections: int = 512


@dataclass(frozen=True)
class Settings:
    """How a model is served.

    Attributes
    ----------
    model : str
        The model's folder; a reload reads it again.
    host, port
        Where to listen; port 0 takes any free one.
    workers : int
        Processes; they share one memory-mapped model.
    threads : int, optional
        Threads of one search; the cores, shared among the workers, if left out.
    names : str, optional
        A file of readable names of tags.
    feedback : str, optional
        A JSONL file that accepted and rejected suggestions are added to.
    api_keys : tuple of str
        If any, requests under ``/v1/`` and ``/metrics`` must bring one of them.
    cors : tuple of str
        Origins whose pages may call the service; ``*`` for all.
    drain_seconds : float
        How long running requests may take after the service was told to stop.
    access_log : bool
        Whether each request is a line in the log.
    snapshots : str, optional
        The folder for private copies of the model, which are what is served; the system's folder for
        temporary files if omitted.
    in_place : bool
        Serve the model's own files in place of a copy: nobody may then change them.
    """

    model: str
    host: str = "127.0.0.1"
    port: int = 8000
    workers: int = 1
    threads: int | None = None
    names: str | None = None
    feedback: str | None = None
    api_keys: tuple[str, ...] = ()
    cors: tuple[str, ...] = ()
    limits: Limits = field(default_factory=Limits)
    drain_seconds: float = 30.0
    access_log: bool = True
    snapshots: str | None = None
    in_place: bool = False

    def __post_init__(self) -> None:
        for key in self.api_keys:
            check_key(key)

    @property
    def search_threads(self) -> int:
        """Threads of one search."""
        if self.threads is not None:
            return self.threads
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        return max(1, cores // self.workers)


def check_key(key: str) -> None:
    """Refuse an API key that is empty, or that no header could bring back as it is; it is never quoted."""
    if not key or not all("!" <= character <= "~" for character in key):
        found = "an empty one" if not key.strip() else "one with spaces or other characters"
        raise ValueError(f"Each API key must be of printable ASCII without spaces; got {found}.")


class Refusal(Exception):  # noqa: N818 - what the caller got wrong, not what went wrong here
    """A request that is answered with an error: a status, and one sentence that says what must hold."""

    def __init__(self, status: int, sentence: str, headers: dict[str, str] | None = None) -> None:
        super().__init__(sentence)
        self.status, self.sentence, self.headers = status, sentence, headers or {}
