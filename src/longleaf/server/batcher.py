"""Batching: waiting requests are searched together, and a single one never waits for others.

There is one searcher. Whenever it is free and requests are queued, it takes all of them. Batches therefore
grow with the load, and there is no waiting time to configure.

Of a model with an encoder, texts are embedded first, in threads of their own: while one batch is searched,
the texts of the next are embedded. An encoder gains nothing by batches, so that each text is a task by
itself; those of a request that was abandoned never start.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from longleaf.server.requests import SuggestRequest
from longleaf.server.settings import Refusal

TOO_MANY = 429
MOST_ROWS = 512
"""Maximum rows of a batch, unless a single request has more; bounds the wait of the next batch."""

Results = list[dict[str, Any]]
"""One for each row of a request."""


@dataclass(eq=False)
class Job:
    """A waiting request and the future of its result."""

    request: SuggestRequest
    answer: asyncio.Future[Results]


class Batcher:
    """A queue in front of one searching thread, and threads that embed texts before they are queued.

    Parameters
    ----------
    most_waiting : int
        Maximum number of waiting rows; requests beyond it are rejected.
    observe : callable, optional
        Called in the event loop after each batch, with its number of rows and seconds.
    threads : int
        How many texts are embedded at the same time.
    observe_embedding : callable, optional
        Called in the event loop after the texts of a request were embedded, with their number and the seconds
        that the request waited for them.
    """

    def __init__(
        self,
        most_waiting: int,
        observe: Callable[[int, float], None] | None = None,
        *,
        threads: int = 1,
        observe_embedding: Callable[[int, float], None] | None = None,
    ) -> None:
        self._most_waiting, self._observe = most_waiting, observe
        self._observe_embedding = observe_embedding
        self._queue: deque[Job] = deque()
        self._searcher = ThreadPoolExecutor(1, "longleaf-searcher")
        self._embedder = ThreadPoolExecutor(threads, "longleaf-embedder")
        self._busy = False
        self._running: asyncio.Task[None] | None = None  # asyncio keeps only a weak reference to tasks
        self.waiting_rows = 0

    async def embedded(self, request: SuggestRequest) -> SuggestRequest:
        """Return a request with the embeddings of its texts."""
        self._enter(request)
        begin, loop = time.perf_counter(), asyncio.get_running_loop()
        tasks = [
            loop.run_in_executor(self._embedder, request.engine.embedding, text) for text in request.texts
        ]
        try:
            found = np.concatenate(await asyncio.gather(*tasks))
        finally:
            self.waiting_rows -= request.n_rows
            for task in tasks:
                task.cancel()  # what has not begun, if the request was abandoned or a text failed
        if self._observe_embedding is not None:
            self._observe_embedding(request.n_rows, time.perf_counter() - begin)
        return replace(request, embeddings=found)

    async def suggest(self, request: SuggestRequest) -> Results:
        """Wait for the results of a request's rows."""
        self._enter(request)
        loop = asyncio.get_running_loop()
        job = Job(request, loop.create_future())
        self._queue.append(job)
        loop.call_soon(self._begin)  # after other requests of the same loop iteration
        return await job.answer

    def close(self) -> None:
        """Let the threads finish what they have begun, then stop them."""
        self._embedder.shutdown(cancel_futures=True)
        self._searcher.shutdown()

    def _enter(self, request: SuggestRequest) -> None:
        """Count the rows of a request as waiting; reject it if too many wait already."""
        if self.waiting_rows and self.waiting_rows + request.n_rows > self._most_waiting:
            raise Refusal(
                TOO_MANY,
                f"At most {self._most_waiting} rows may wait; {self.waiting_rows} do: try again soon.",
                {"Retry-After": "1"},
            )
        self.waiting_rows += request.n_rows

    def _begin(self) -> None:
        if self._busy or not self._queue:
            return
        jobs: list[Job] = []
        rows = 0
        while self._queue and (not jobs or rows + self._queue[0].request.n_rows <= MOST_ROWS):
            job = self._queue.popleft()
            self.waiting_rows -= job.request.n_rows
            if not job.answer.done():  # its client may have disconnected
                jobs.append(job)
                rows += job.request.n_rows
        if jobs:
            self._busy = True
            self._running = asyncio.get_running_loop().create_task(self._search(jobs, rows))

    async def _search(self, jobs: list[Job], rows: int) -> None:
        begin, requests = time.perf_counter(), [job.request for job in jobs]
        answers: list[Results | BaseException]
        try:
            loop = asyncio.get_running_loop()
            answers = await loop.run_in_executor(self._searcher, search_together, requests)
        except Exception as error:  # every waiting request must get a result
            answers = [error] * len(jobs)
        self._busy = False
        self._begin()
        if self._observe is not None:
            self._observe(rows, time.perf_counter() - begin)
        for job, answer in zip(jobs, answers, strict=True):
            if job.answer.done():
                continue
            if isinstance(answer, BaseException):
                job.answer.set_exception(answer)
            else:
                job.answer.set_result(answer)


def search_together(requests: list[SuggestRequest]) -> list[Results | BaseException]:
    """Answer requests; those with the same key share a search, and an error affects only its own request."""
    groups: dict[str, list[int]] = {}
    for place, request in enumerate(requests):
        groups.setdefault(request.key, []).append(place)
    answers: list[Results | BaseException] = [[] for _ in requests]
    for places in groups.values():
        try:
            found = _search([requests[place] for place in places])
        except Exception as error:
            alone = len(places) == 1
            found = [error] if alone else [search_together([requests[place]])[0] for place in places]
        for place, answer in zip(places, found, strict=True):
            answers[place] = answer
    return answers


def _search(requests: list[SuggestRequest]) -> list[Results | BaseException]:
    first = requests[0]
    if first.X is None:
        texts = [text for request in requests for text in request.texts]
        known = [request.embeddings for request in requests if request.embeddings is not None]
        X = first.engine.rows(texts, np.concatenate(known) if len(known) == len(requests) else None)
    else:
        X = sp.vstack([request.X for request in requests], format="csr")
    found = first.engine.suggest(X, first.query)
    results: list[Results | BaseException] = []
    begin = 0
    for request in requests:
        results.append(found[begin : begin + request.n_rows])
        begin += request.n_rows
    return results
