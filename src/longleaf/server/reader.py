"""Slow reading in a separate thread, which stops when its client disconnects."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from starlette.requests import ClientDisconnect, Request

Result = TypeVar("Result")

LOST = "longleaf.lost"
"""Key in the scope of a request: a future that completes when its connection is lost."""


class AbandonedError(Exception):
    """The client of this work has disconnected."""


class _Current(threading.local):
    over: threading.Event | None = None


_current = _Current()


def stop_if_abandoned() -> None:
    """Raise `AbandonedError` if the request of this thread's work is over; called between its steps."""
    if _current.over is not None and _current.over.is_set():
        raise AbandonedError


class Reader:
    """One thread. Work cancelled while queued never starts; running work stops at `stop_if_abandoned`."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, "longleaf-reader")

    async def run(self, work: Callable[..., Result], *arguments: Any) -> Result:
        """Run work in the thread and wait for its result."""
        over = threading.Event()

        def run_in_reader() -> Result:
            _current.over = over
            stop_if_abandoned()
            return work(*arguments)

        try:
            return await asyncio.get_running_loop().run_in_executor(self._thread, run_in_reader)
        finally:
            over.set()

    def close(self) -> None:
        """Stop the thread after its current work."""
        self._thread.shutdown()


async def while_connected(request: Request, work: Awaitable[Result]) -> Result:
    """Wait for the work of a request; cancel it if the client disconnects."""
    lost: asyncio.Future[None] = request.scope[LOST]
    task = asyncio.current_task()
    assert task is not None

    def cancel(_: asyncio.Future[None]) -> None:
        task.cancel()

    lost.add_done_callback(cancel)
    try:
        return await work
    except asyncio.CancelledError:
        if not lost.done():
            raise
        task.uncancel()
        raise ClientDisconnect from None
    finally:
        lost.remove_done_callback(cancel)
