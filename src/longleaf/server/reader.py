"""Slow reading, in a thread of its own, that stops when nobody waits for it any more."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from starlette.requests import ClientDisconnect, Request

Result = TypeVar("Result")


class AbandonedError(Exception):
    """Nobody waits for this work any more."""


class _Current(threading.local):
    over: threading.Event | None = None


_current = _Current()


def checkpoint() -> None:
    """Stop the work of this thread if the request that it is for is over; called between its steps."""
    if _current.over is not None and _current.over.is_set():
        raise AbandonedError


class Reader:
    """One thread. Work that is cancelled while it waits is never begun; begun, it ends at a `checkpoint`."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, "longleaf-reader")

    async def run(self, work: Callable[..., Result], *arguments: Any) -> Result:
        """Do some work, and wait for what it returns."""
        over = threading.Event()

        def attended() -> Result:
            _current.over = over
            checkpoint()
            return work(*arguments)

        try:
            return await asyncio.get_running_loop().run_in_executor(self._thread, attended)
        finally:
            over.set()

    def close(self) -> None:
        """End the thread once it has done its work."""
        self._thread.shutdown()


async def while_connected(request: Request, work: Awaitable[Result]) -> Result:
    """Wait for some work of a request whose body was read; when its client goes away, cancel the work."""
    working, leaving = asyncio.ensure_future(work), asyncio.ensure_future(_disconnected(request))
    try:
        await asyncio.wait((working, leaving), return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise ClientDisconnect
        return await working
    finally:
        working.cancel()
        leaving.cancel()


async def _disconnected(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
