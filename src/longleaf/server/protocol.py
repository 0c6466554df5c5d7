"""HTTP on a connection, bounded in size, number and time before any of it reaches a route.

uvicorn's protocol reads headers of any size for any time, and answers what is no HTTP in plain text. This one
counts the bytes that bring a message no further: those of headers, of chunks' frames and of trailers.
"""

from __future__ import annotations

import asyncio
from http import HTTPStatus

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from longleaf.server.answers import error_body
from longleaf.server.board import Slot
from longleaf.server.logs import log
from longleaf.server.reader import LOST
from longleaf.server.settings import Limits

HEADER_BYTES = 1 << 16
HEADERS = 100
HEADER_SECONDS = 10.0
LINGER_SECONDS = 1.0
"""How long what still arrives is thrown away after a refusal: closing at once could lose the answer."""
BAD_REQUEST, TIMEOUT, HEADERS_TOO_LARGE, UNAVAILABLE = 400, 408, 431, 503
NO_HTTP = "The request must be valid HTTP/1.1."


def bounded_protocol(limits: Limits, slot: Slot) -> type[BoundedProtocol]:
    """Make the class of a worker's connections; uvicorn makes its instances."""
    return type("WorkerProtocol", (BoundedProtocol,), {"limits": limits, "slot": slot})


class BoundedProtocol(HttpToolsProtocol):
    """One connection.

    Attributes
    ----------
    limits : Limits
        How many connections a worker may have, and how long a request may take.
    slot : Slot
        Counts what is refused here.
    """

    limits: Limits
    slot: Slot

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Expect a request soon, unless there are too many connections."""
        super().connection_made(transport)
        self._deadline: asyncio.TimerHandle | None = None
        self._stall: asyncio.TimerHandle | None = None
        self._lost = self.loop.create_future()
        self._idle_bytes = self._size = 0
        self._in_headers = self._refused = False
        self._reason = BAD_REQUEST, NO_HTTP
        most = self.limits.connections
        if len(self.connections) > 2 * most:
            transport.abort()
        elif len(self.connections) > most:
            self._refuse(UNAVAILABLE, f"At most {most} connections may be open here: try again soon.")
        else:
            self._expect(HEADER_SECONDS)

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the deadlines, and tell those who work for this connection."""
        self._lost.set_result(None)
        self._expect(None)
        self.resume_writing()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Read on, unless too much has come that brings no message further."""
        if self._refused or self.transport.is_closing():
            return
        self._idle_bytes += len(data)
        super().data_received(data)
        if self._idle_bytes > HEADER_BYTES:
            self._refuse(*_too_large())
        elif self._idle_bytes and self._deadline is None:  # empty lines between requests
            self._expect(self.timeout_keep_alive)

    def on_message_begin(self) -> None:
        """Give the headers their time."""
        super().on_message_begin()
        self.scope[LOST] = self._lost  # type: ignore[literal-required]
        self._size, self._in_headers = 0, True
        self._expect(HEADER_SECONDS)

    def on_url(self, url: bytes) -> None:
        """Count the address as a header."""
        self._count(url)
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        """Count a header, or a trailer after the body."""
        self._count(name, value)
        if len(self.headers) >= HEADERS:
            self._reason = HEADERS_TOO_LARGE, f"A request must have at most {HEADERS} headers."
            raise ValueError(self._reason)
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Give the body its time, a moment more than the route has to say so itself."""
        self._idle_bytes, self._in_headers = 0, False
        self._expect(self.limits.seconds + 1)
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Note that the message got further."""
        self._idle_bytes = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        """Expect nothing more."""
        self._idle_bytes = 0
        self._expect(None)
        super().on_message_complete()

    def pause_writing(self) -> None:
        """Give the client the time of a request to read on."""
        super().pause_writing()
        self._stall = self.loop.call_later(self.limits.seconds, self.transport.abort)

    def resume_writing(self) -> None:
        """Forget that the client had stopped reading."""
        if self._stall is not None:
            self._stall.cancel()
            self._stall = None
        super().resume_writing()

    def send_400_response(self, msg: str) -> None:
        """Refuse what the parser could not read, or what `on_header` did not let it."""
        self._refuse(*self._reason)

    def _count(self, *pieces: bytes) -> None:
        self._size += sum(map(len, pieces)) + 4
        if self._size > HEADER_BYTES:
            self._reason = _too_large()
            raise ValueError(self._reason)

    def _expect(self, seconds: float | None) -> None:
        """Set the time by which something must have happened, or none."""
        if self._deadline is not None:
            self._deadline.cancel()
        self._deadline = None if seconds is None else self.loop.call_later(seconds, self._late)

    def _late(self) -> None:
        if self._answering():  # an earlier request of this connection: its answer comes first
            self._expect(HEADER_SECONDS)
        elif self._in_headers:
            self._refuse(TIMEOUT, f"The headers of a request must arrive within {HEADER_SECONDS:g} s.")
        else:
            self.transport.close()

    def _answering(self) -> bool:
        """Tell whether a request that has arrived in full, or whose answer has begun, is being answered."""
        cycle = self.cycle
        if self.pipeline:
            return True
        return cycle is not None and not cycle.response_complete and not cycle.more_body

    def _refuse(self, status: int, sentence: str) -> None:
        """Answer with an error, unless that would be taken for another request's answer, and close."""
        if self._refused or self.transport.is_closing():
            return
        self._refused = True
        self._expect(None)
        log("connection refused", status=status)
        self.slot.request("other", status, 0.0)
        cycle = self.cycle
        begun = cycle is not None and cycle.response_started and not cycle.response_complete
        if self._answering() or begun:
            self.transport.close()
            return
        if cycle is not None and not cycle.response_complete:  # it waits for the rest of a broken body
            cycle.disconnected = True
            cycle.message_event.set()
        body = error_body(sentence)
        head = (
            f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\ncontent-type: application/json\r\n"
            f"content-length: {len(body)}\r\nconnection: close\r\n\r\n"
        )
        self.transport.write(head.encode("ascii") + body)
        if self.transport.can_write_eof():
            self.transport.write_eof()
        self.loop.call_later(LINGER_SECONDS, self.transport.close)


def _too_large() -> tuple[int, str]:
    return HEADERS_TOO_LARGE, f"The headers of a request must have at most {HEADER_BYTES} bytes."
