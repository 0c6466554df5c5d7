"""Work that nobody waits for any more is not begun, or stops."""

import asyncio
import json
import socket
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("uvicorn", reason="needs the extra serve")

from longleaf.server.reader import Reader, stop_if_abandoned
from tests.helpers.processes import cpu_seconds, wait_until_used
from tests.helpers.serving import Running, children, make_tagger, serving, wait_for


def test_abandoned_work_stops_and_what_waits_behind_it_is_skipped() -> None:
    async def main() -> None:
        reader, begun, stopped, done = Reader(), threading.Event(), threading.Event(), []

        def endless() -> None:
            begun.set()
            try:
                while True:
                    stop_if_abandoned()
                    time.sleep(0.001)
            finally:
                stopped.set()

        first = asyncio.create_task(reader.run(endless))
        skipped = asyncio.create_task(reader.run(done.append, "skipped"))
        await asyncio.to_thread(begun.wait)
        last = asyncio.create_task(reader.run(done.append, "last"))
        skipped.cancel()
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(first, 0.05)
        await last
        assert stopped.is_set()
        assert done == ["last"]
        reader.close()

    asyncio.run(main())


def test_outside_of_a_request_nothing_is_abandoned() -> None:
    stop_if_abandoned()


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    path = tmp_path_factory.mktemp("reader") / "tagger.ll"
    make_tagger().save(path)
    options = ("--max-explained", 2_000_000, "--max-texts", 2000, "--timeout", 3)
    with serving(path, *options) as running:
        yield running


SLOW: dict[str, Any] = {"texts": ["olive oil and cod " * 50] * 2000, "explain": True, "k": 5}


def worker_of(running: Running) -> int:
    [worker] = children(running)
    return worker


def check_idle(running: Running) -> None:
    """The service answers the next one at once: what was abandoned would take it many seconds more."""
    begin = cpu_seconds(worker_of(running))
    assert running.call("/v1/explain", {"text": "olive oil", "tag": "1264"}).status == 200
    wait_for(lambda: not is_busy(running))
    assert cpu_seconds(worker_of(running)) - begin < 2, "it works on for nobody"


def is_busy(running: Running) -> bool:
    before = cpu_seconds(worker_of(running))
    time.sleep(0.2)
    return cpu_seconds(worker_of(running)) - before >= 0.1


def test_after_a_timeout_nothing_goes_on(service: Running) -> None:
    assert service.call("/v1/suggest", SLOW).status == 408
    check_idle(service)


def test_when_the_client_is_gone_nothing_goes_on(service: Running) -> None:
    host, port = service.url.removeprefix("http://").split(":")
    body = json.dumps(SLOW).encode()
    head = f"POST /v1/suggest HTTP/1.1\r\nContent-Type: application/json\r\nContent-Length: {len(body)}"
    with socket.create_connection((host, int(port))) as connection:
        connection.sendall(head.encode() + b"\r\n\r\n" + body)
        wait_until_used(worker_of(service), 0.5)
    wait_for(lambda: 499 in [line.get("status") for line in service.log])
    check_idle(service)


def test_texts_to_explain_have_a_limit(service: Running) -> None:
    said = "Texts to explain must have at most 2000000 characters in one request; got 2000001."
    text = "a" * 2_000_001
    for path, body in (
        ("/v1/explain", {"text": text, "tag": "1264"}),
        ("/v1/suggest", {"texts": [text[:-1], "b"], "explain": True}),
    ):
        answer = service.call(path, body)
        assert (answer.status, answer.error) == (422, said)
    assert service.call("/v1/suggest", {"texts": [text, text]}).status == 200
