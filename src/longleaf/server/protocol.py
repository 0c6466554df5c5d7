"""HTTP connections with bounds on size, number and time, enforced before a request reaches a route.

uvicorn's own protocol reads headers of any size for any time, and answers what is not HTTP in plain text.
This one counts the bytes that do not advance a message: those of headers, chunk frames and trailers.
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
"""How long incoming data is discarded after a rejection; closing at once could lose the response."""
BAD_REQUEST, TIMEOUT, HEADERS_TOO_LARGE, UNAVAILABLE = 400, 408, 431, 503
NOT_HTTP = "The request must be valid HTTP/1.1."


def bounded_protocol(limits: Limits, slot: Slot) -> type[BoundedProtocol]:
    """Create the class of a worker's connections, which uvicorn instantiates."""
    return type("WorkerProtocol", (BoundedProtocol,), {"limits": limits, "slot": slot})


class BoundedProtocol(HttpToolsProtocol):
    """One connection.

    Attributes
    ----------
    limits : Limits
        How many connections a worker may have, and how long a request may take.
    slot : Slot
        Counts the requests rejected here.
    """

    limits: Limits
    slot: Slot

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the deadline of the first request; reject the connection if there are too many."""
        super().connection_made(transport)
        self._deadline: asyncio.TimerHandle | None = None
        self._stall: asyncio.TimerHandle | None = None
        self._lost = self.loop.create_future()
        self._idle_bytes = self._size = 0
        self._in_headers = self._refused = False
        self._reason = BAD_REQUEST, NOT_HTTP
        most = self.limits.connections
        if len(self.connections) > 2 * most:
            transport.abort()
        elif len(self.connections) > most:
            self._refuse(UNAVAILABLE, f"At most {most} connections may be open: try again soon.")
        else:
            self._expect(HEADER_SECONDS)

    def connection_lost(self, exc: Exception | None) -> None:
        """Cancel the deadlines, and notify the requests of this connection."""
        self._lost.set_result(None)
        self._expect(None)
        self.resume_writing()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parse data, unless too many bytes arrived that do not advance a message."""
        if self._refused or self.transport.is_closing():
            return
        self._idle_bytes += len(data)
        super().data_received(data)
        if self._idle_bytes > HEADER_BYTES:
            self._refuse(*_too_large())
        elif self._idle_bytes and self._deadline is None:  # empty lines between requests
            self._expect(self.timeout_keep_alive)

    def on_message_begin(self) -> None:
        """Start the deadline of the headers."""
        super().on_message_begin()
        self.scope[LOST] = self._lost  # type: ignore[literal-required]
        self._size, self._in_headers = 0, True
        self._expect(HEADER_SECONDS)

    def on_url(self, url: bytes) -> None:
        """Count the URL as a header."""
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
        """Start the deadline of the body, slightly later than the route's own."""
        self._idle_bytes, self._in_headers = 0, False
        self._expect(self.limits.seconds + 1)
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Reset the count: the message advanced."""
        self._idle_bytes = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        """Cancel the deadline."""
        self._idle_bytes = 0
        self._expect(None)
        super().on_message_complete()

    def pause_writing(self) -> None:
        """Start the deadline for a client that stopped reading."""
        super().pause_writing()
        self._stall = self.loop.call_later(self.limits.seconds, self.transport.abort)

    def resume_writing(self) -> None:
        """Cancel that deadline."""
        if self._stall is not None:
            self._stall.cancel()
            self._stall = None
        super().resume_writing()

    def send_400_response(self, msg: str) -> None:
        """Reject what the parser could not read or `on_header` did not accept."""
        self._refuse(*self._reason)

    def _count(self, *pieces: bytes) -> None:
        self._size += sum(map(len, pieces)) + 4
        if self._size > HEADER_BYTES:
            self._reason = _too_large()
            raise ValueError(self._reason)

    def _expect(self, seconds: float | None) -> None:
        """Set or cancel the deadline."""
        if self._deadline is not None:
            self._deadline.cancel()
        self._deadline = None if seconds is None else self.loop.call_later(seconds, self._late)

    def _late(self) -> None:
        if self._answering():  # an earlier request of this connection is answered first
            self._expect(HEADER_SECONDS)
        elif self._in_headers:
            self._refuse(TIMEOUT, f"The headers of a request must arrive within {HEADER_SECONDS:g} s.")
        else:
            self.transport.close()

    def _answering(self) -> bool:
        """Return whether a complete request, or one whose response has started, is being answered."""
        cycle = self.cycle
        if self.pipeline:
            return True
        return cycle is not None and not cycle.response_complete and not cycle.more_body

    def _refuse(self, status: int, sentence: str) -> None:
        """Respond with an error, unless it could be taken for another request's response, and close."""
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
        if cycle is not None and not cycle.response_complete:  # it is waiting for the rest of a broken body
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
