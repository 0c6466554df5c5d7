"""The settings of a service."""

from __future__ import annotations

import os
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Limits:
    """Limits of a request; beyond them, the response is a 4xx error that names the limit.

    Attributes
    ----------
    body_bytes : int
        Size of a request's body.
    texts, k : int
        Texts or vectors per request, and suggestions for each.
    seconds : float
        Time from the first byte of a request to its response.
    waiting : int
        Rows waiting for the searcher, over all requests of a worker.
    explained : int
        Total characters of the texts to explain in a request.
    connections : int
        Open connections per worker.
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
        Address to listen on; port 0 picks a free one.
    workers : int
        Worker processes, which share one memory-mapped model.
    threads : int, optional
        Threads per search; by default, the cores are divided among the workers.
    names : str, optional
        A file of readable names of tags.
    names_languages : tuple of str
        The languages of these names to display, the best first.
    feedback : str, optional
        A JSONL file to which accepted and rejected suggestions are appended.
    api_keys : tuple of str
        If any, requests under ``/v1/`` and ``/metrics`` must send one of them.
    cors : tuple of str
        Origins whose pages may call the service; ``*`` for all.
    drain_seconds : float
        How long running requests may take to finish on shutdown.
    access_log : bool
        Whether each request is logged.
    snapshots : str, optional
        Folder for the private copies of the model that are served; the system's temporary folder by default.
    in_place : bool
        Serve the model's own files instead of a copy; they must then not be changed.
    """

    model: str
    host: str = "127.0.0.1"
    port: int = 8000
    workers: int = 1
    threads: int | None = None
    names: str | None = None
    names_languages: tuple[str, ...] = ()
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
        """The number of threads per search."""
        if self.threads is not None:
            return self.threads
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        return max(1, cores // self.workers)


def check_key(key: str) -> None:
    """Reject an API key that is empty or cannot be sent in a header; the message never quotes it."""
    if not key or not all("!" <= character <= "~" for character in key):
        found = "an empty one" if not key.strip() else "one with spaces or other characters"
        raise ValueError(f"Each API key must be printable ASCII without spaces; got {found}.")


class Refusal(Exception):  # noqa: N818 - an error of the client, not of the service
    """A rejected request: a status, and one sentence that says what must hold."""

    def __init__(self, status: int, sentence: str, headers: dict[str, str] | None = None) -> None:
        super().__init__(sentence)
        self.status, self.sentence, self.headers = status, sentence, headers or {}
