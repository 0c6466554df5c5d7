"""Slow reading, in a thread of its own, that stops when nobody waits for it any more."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from starlette.requests import ClientDisconnect, Request

Result = TypeVar("Result")

LOST = "longleaf.lost"
"""In the scope of a request: a future that is done once its connection is lost."""


class AbandonedError(Exception):
    """Nobody waits for this work any more."""


class _Current(threading.local):
    over: threading.Event | None = None


_current = _Current()


def stop_if_abandoned() -> None:
    """Stop the work of this thread if the request that it is for is over; called between its steps."""
    if _current.over is not None and _current.over.is_set():
        raise AbandonedError


class Reader:
    """One thread. Work cancelled while it waits is never begun; begun, it ends at `stop_if_abandoned`."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, "longleaf-reader")

    async def run(self, work: Callable[..., Result], *arguments: Any) -> Result:
        """Do some work, and wait for what it returns."""
        over = threading.Event()

        def attended() -> Result:
            _current.over = over
            stop_if_abandoned()
            return work(*arguments)

        try:
            return await asyncio.get_running_loop().run_in_executor(self._thread, attended)
        finally:
            over.set()

    def close(self) -> None:
        """End the thread once it has done its work."""
        self._thread.shutdown()


async def while_connected(request: Request, work: Awaitable[Result]) -> Result:
    """Wait for some work of a request; when its client goes away, cancel the work."""
    lost: asyncio.Future[None] = request.scope[LOST]
    task = asyncio.current_task()
    assert task is not None

    def give_up(_: asyncio.Future[None]) -> None:
        task.cancel()

    lost.add_done_callback(give_up)
    try:
        return await work
    except asyncio.CancelledError:
        if not lost.done():
            raise
        task.uncancel()
        raise ClientDisconnect from None
    finally:
        lost.remove_done_callback(give_up)
