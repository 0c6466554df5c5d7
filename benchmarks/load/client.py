"""The caller of the load benchmark, a process of its own: ``python -m benchmarks.load.client < job.json``.

Standard library only, so that it is light: bodies are made beforehand, connections are kept, and an answer is
read no further than its status and length.
"""

from __future__ import annotations

import asyncio
import gc
import json
import selectors
import sys
import time
from collections import deque
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

PATH = "/v1/suggest"
GRACE_SECONDS = 30.0
"""How long answers are waited for after the last request."""
MOST_CONNECTIONS = 512
LOST = 0
"""The status of a request whose connection was closed, or that was never answered."""


@dataclass(frozen=True)
class Job:
    """What to send, and when.

    With ``rate``, that many requests a second are due at fixed times, whatever the answers (open loop), each
    body once. Without it, every connection sends the next body as soon as it has its answer (closed loop).
    """

    host: str
    port: int
    bodies: str
    connections: int
    seconds: float
    rate: float | None = None


@dataclass
class Sent:
    """One request; moments in seconds of the clock of the event loop."""

    body: int
    due: float
    begin: float = 0.0
    end: float = 0.0
    status: int = LOST


def schedule(rate: float, seconds: float) -> list[float]:
    """Give the moments at which requests are due, in seconds from the start."""
    return [number / rate for number in range(round(rate * seconds))]


def message(body: bytes, host: str, port: int) -> bytes:
    """Give a whole request."""
    lines = (
        f"POST {PATH} HTTP/1.1",
        f"host: {host}:{port}",
        "content-type: application/json",
        f"content-length: {len(body)}",
        "",
        "",
    )
    return "\r\n".join(lines).encode() + body


def read_head(head: bytes) -> tuple[int, int]:
    """Give the status and the length of the body that the head of an answer tells."""
    first, *lines = head.split(b"\r\n")
    for line in lines:
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            return int(first.split()[1]), int(value)
    raise ValueError(f"An answer must have a content-length; got {head!r}.")


class Connection(asyncio.Protocol):
    """A kept connection with at most one request on its way; ``free`` is called whenever it has none."""

    def __init__(self, free: Callable[[Connection], None]) -> None:
        self._free = free
        self._buffer = bytearray()
        self._status, self._whole = LOST, 0
        self._answered: Callable[[int], None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Be of use."""
        assert isinstance(transport, asyncio.WriteTransport)
        self.transport = transport
        self._free(self)

    def send(self, whole: bytes, answered: Callable[[int], None]) -> None:
        """Send a request; ``answered`` is called with the status of the answer."""
        self._answered = answered
        self.transport.write(whole)

    def data_received(self, data: bytes) -> None:
        """Read until the answer is whole."""
        self._buffer += data
        if not self._whole:
            end = self._buffer.find(b"\r\n\r\n")
            if end < 0:
                return
            self._status, length = read_head(bytes(self._buffer[:end]))
            self._whole = end + 4 + length
        if len(self._buffer) >= self._whole:
            self._buffer.clear()
            self._whole = 0
            self._tell(self._status)
            self._free(self)

    def connection_lost(self, error: Exception | None) -> None:
        """Count what was on its way as lost."""
        self._tell(LOST)

    def _tell(self, status: int) -> None:
        answered, self._answered = self._answered, None
        if answered is not None:
            answered(status)


class Caller:
    """Sends what is due over whatever connection is free, the one that has rested longest first."""

    def __init__(self, job: Job, messages: list[bytes]) -> None:
        self.job, self.messages = job, messages
        self.sent: list[Sent] = []
        self._loop = asyncio.get_running_loop()
        self._idle: deque[Connection] = deque()
        self._waiting: deque[Sent] = deque()
        self._connecting: set[asyncio.Task[Any]] = set()
        self._opened = self._unanswered = 0

    async def run(self) -> list[Sent]:
        """Do the job."""
        for _ in range(self.job.connections):
            self._connect()
        await asyncio.gather(*self._connecting)
        start = self._loop.time() + 0.05
        if self.job.rate is None:
            self._last = start + self.job.seconds
            for _ in range(self.job.connections):
                self._again()
            await asyncio.sleep(self.job.seconds)
        else:
            for number, moment in enumerate(schedule(self.job.rate, self.job.seconds)):
                await self._sleep_until(start + moment)
                self._begin(Sent(number, start + moment))
        last = self._loop.time() + GRACE_SECONDS
        while self._unanswered and self._loop.time() < last:
            await asyncio.sleep(0.01)
        return self.sent

    def close(self) -> None:
        """Close the connections."""
        for connection in self._idle:
            connection.transport.close()

    async def _sleep_until(self, moment: float) -> None:
        delay = moment - self._loop.time()
        if delay > 0:
            await asyncio.sleep(delay)

    def _connect(self) -> None:
        self._opened += 1
        made = self._loop.create_connection(lambda: Connection(self._free), self.job.host, self.job.port)
        task = self._loop.create_task(made)
        self._connecting.add(task)
        task.add_done_callback(self._connecting.discard)

    def _free(self, connection: Connection) -> None:
        self._idle.append(connection)
        if self._waiting:
            self._send(self._waiting.popleft())

    def _again(self) -> None:
        """Send the next body of the closed loop, from the start when all were sent."""
        now = self._loop.time()
        if now < self._last:
            self._begin(Sent(len(self.sent) % len(self.messages), now))

    def _begin(self, one: Sent) -> None:
        self.sent.append(one)
        self._unanswered += 1
        if not self._idle:
            self._waiting.append(one)
            if self._opened < MOST_CONNECTIONS:
                self._connect()
        else:
            self._send(one)

    def _send(self, one: Sent) -> None:
        def answered(status: int) -> None:
            one.end, one.status = self._loop.time(), status
            self._unanswered -= 1
            if self.job.rate is None:
                self._loop.call_soon(self._again)

        one.begin = self._loop.time()
        self._idle.popleft().send(self.messages[one.body], answered)


async def call(job: Job) -> list[Sent]:
    """Send the bodies of a job, a line of its file each."""
    bodies = Path(job.bodies).read_bytes().splitlines()
    needed = 1 if job.rate is None else len(schedule(job.rate, job.seconds))
    if len(bodies) < needed:
        raise ValueError(f"{job.bodies} must have {needed} bodies; got {len(bodies)}.")
    caller = Caller(job, [message(body, job.host, job.port) for body in bodies])
    gc.freeze()
    gc.disable()  # a pause of the caller would look like one of the service
    sent = await caller.run()
    caller.close()
    return sent


def fine_loop() -> asyncio.AbstractEventLoop:
    """Make an event loop that wakes to the microsecond; timeouts of epoll and libuv are milliseconds."""
    return asyncio.SelectorEventLoop(selectors.SelectSelector())


def main() -> None:
    job = Job(**json.load(sys.stdin))
    with asyncio.Runner(loop_factory=fine_loop) as runner:
        sent = [asdict(one) for one in runner.run(call(job))]
    json.dump({"sent": sent, "cpu_seconds": time.process_time()}, sys.stdout)


if __name__ == "__main__":
    main()
