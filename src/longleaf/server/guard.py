"""Middleware around every request: the API key, the counters, the access log."""

from __future__ import annotations

import hmac
import time
from collections.abc import MutableMapping
from typing import Any

from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Receive, Scope, Send

from longleaf.server.answers import error_answer
from longleaf.server.board import PATHS
from longleaf.server.logs import log, log_error
from longleaf.server.page import FILES
from longleaf.server.service import Service

UNAUTHORIZED, INTERNAL = 401, 500
INTERNAL_ERROR = "Internal server error."
KNOWN = frozenset({*PATHS, *FILES, "/openapi.json"})
CLOSED = 499
"""Status that is logged when the client disconnected before the response."""


class Guard:
    """Count and log each request; hide details of internal errors from clients, and texts from the log."""

    def __init__(self, app: ASGIApp, service: Service) -> None:
        self.app, self.service = app, service

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        slot, begin, status = self.service.slot, time.perf_counter(), CLOSED

        async def watch(message: MutableMapping[str, Any]) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        slot.add("in_flight")
        try:
            await self.app(scope, receive, watch)
        except ClientDisconnect:
            pass
        except Exception:
            log_error("request failed", path=_known(scope["path"]))
            if status == CLOSED:
                await error_answer(INTERNAL, INTERNAL_ERROR)(scope, receive, watch)
        finally:
            seconds = time.perf_counter() - begin
            slot.add("in_flight", -1)
            slot.set("waiting_rows", self.service.batcher.waiting_rows)
            slot.request(scope["path"], status, seconds)
            if self.service.settings.access_log:
                self._log(scope, status, seconds)

    def _log(self, scope: Scope, status: int, seconds: float) -> None:
        facts = scope.get("longleaf", {})
        log(
            "request",
            method=scope["method"],
            path=_known(scope["path"]),
            status=status,
            ms=round(1000 * seconds, 2),
            **facts,
        )


def _known(path: str) -> str:
    """Return a path for the log; an unknown path may be anything, even a text, and is not logged."""
    return path if path in KNOWN else "other"


class KeyCheck:
    """Require an API key, except for the page and health checks."""

    def __init__(self, app: ASGIApp, keys: tuple[str, ...]) -> None:
        self.app, self.keys = app, [key.encode() for key in keys]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Reject a request without a valid key, or pass it on."""
        guarded = scope["type"] == "http" and (
            scope["path"].startswith("/v1/") or scope["path"] == "/metrics"
        )
        if guarded and not self._has_key(dict(scope["headers"])):
            sentence = "A valid API key must be given, as Authorization: Bearer KEY or as X-API-Key."
            answer = error_answer(UNAUTHORIZED, sentence, {"WWW-Authenticate": "Bearer"})
            return await answer(scope, receive, send)
        await self.app(scope, receive, send)

    def _has_key(self, headers: dict[bytes, bytes]) -> bool:
        given = headers.get(b"x-api-key", b"")
        scheme, _, token = headers.get(b"authorization", b"").partition(b" ")
        if scheme.lower() == b"bearer":
            given = token.strip()
        return any([hmac.compare_digest(given, key) for key in self.keys])  # noqa: C419 - in constant time
