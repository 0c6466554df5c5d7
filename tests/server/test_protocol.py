"""HTTP below the routes: what is too large, too slow, too much or no HTTP is refused in JSON, and cut off."""

import json
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.helpers.serving import SECONDS, Running, make_tagger, serving, wait_for

pytest.importorskip("uvicorn", reason="needs the extra serve")

from longleaf.server import protocol

GET = b"GET /healthz HTTP/1.1\r\nHost: a\r\n"
POST = b"POST /v1/suggest HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n"


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    path = tmp_path_factory.mktemp("protocol") / "tagger.ll"
    make_tagger().save(path)
    with serving(path, "--max-connections", 8, "--timeout", 2) as running:
        yield running


def connect(running: Running) -> socket.socket:
    host, port = running.url.removeprefix("http://").split(":")
    return socket.create_connection((host, int(port)), SECONDS)


def read_all(connection: socket.socket) -> bytes:
    """Give what arrives until the service closes."""
    parts = []
    while part := connection.recv(65536):
        parts.append(part)
    return b"".join(parts)


def read_ok(connection: socket.socket) -> None:
    """Read one answer of ``/healthz``."""
    answer = b""
    while not answer.endswith(b'{"status": "ok"}'):
        part = connection.recv(65536)
        assert part, answer
        answer += part
    assert answer.startswith(b"HTTP/1.1 200 OK\r\n")


def talk(running: Running, *pieces: bytes) -> tuple[int, str]:
    """Send pieces, and give the status and the sentence of the refusal that ends the connection."""
    with connect(running) as connection:
        for piece in pieces:
            try:
                connection.sendall(piece)
            except OSError:
                break  # refused before the end
        head, _, body = read_all(connection).partition(b"\r\n\r\n")
    assert b"content-type: application/json" in head
    assert b"connection: close" in head
    return int(head.split()[1]), json.loads(body)["error"]


TOO_LARGE = (431, "The headers of a request must have at most 65536 bytes.")
NO_HTTP = (400, "The request must be valid HTTP/1.1.")
REFUSED = {
    "a large header": ([GET + b"X: " + b"a" * 70_000 + b"\r\n\r\n"], TOO_LARGE),
    "a header without an end": ([GET + b"X: ", *[b"a" * 1000] * 3000], TOO_LARGE),
    "a name without an end": ([GET, *[b"a" * 1000] * 3000], TOO_LARGE),
    "a long address": ([b"GET /" + b"a" * 70_000 + b" HTTP/1.1\r\n\r\n"], TOO_LARGE),
    "an address without an end": ([b"GET /", *[b"a" * 1000] * 3000], TOO_LARGE),
    "many small headers": (
        [GET + b"X: a\r\n" * 100 + b"\r\n"],
        (431, "A request must have at most 100 headers."),
    ),
    "trailers without an end": (
        [POST + b"Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n0\r\n", *[b"X: " + b"a" * 1000] * 3000],
        TOO_LARGE,
    ),
    "empty lines": ([b"\r\n" * 40_000], TOO_LARGE),
    "no HTTP": ([b"hello\r\n\r\n"], NO_HTTP),
    "TLS": ([bytes.fromhex("1603010200010001fc0303") + b"\0" * 50], NO_HTTP),
    "a broken chunk": ([POST + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n"], NO_HTTP),
    "two lengths": ([POST + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}"], NO_HTTP),
    "a length of -1": ([POST + b"Content-Length: -1\r\n\r\n{}"], NO_HTTP),
    "a length beyond 64 bits": ([POST + b"Content-Length: " + b"9" * 5000 + b"\r\n\r\n{}"], NO_HTTP),
    "a broken address": ([b"GET http://[::1/ HTTP/1.1\r\n\r\n"], NO_HTTP),
    "a header outside ASCII": ([b"GET /\xff HTTP/1.1\r\n\r\n"], NO_HTTP),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_too_much_or_no_http_is_refused_in_json(service: Running, case: str) -> None:
    pieces, wanted = REFUSED[case]
    assert talk(service, *pieces) == wanted
    assert service.call("/healthz").status == 200


def test_headers_within_the_limits_pass(service: Running) -> None:
    with connect(service) as connection:
        connection.sendall(GET + b"X: a\r\n" * 97 + b"Y: " + b"a" * 60_000 + b"\r\nConnection: close\r\n\r\n")
        assert read_all(connection).startswith(b"HTTP/1.1 200 OK\r\n")


def test_a_length_of_thousands_of_zeros_is_zero(service: Running) -> None:
    with connect(service) as connection:
        length = b"Content-Length: " + b"0" * 5000 + b"\r\nConnection: close\r\n\r\n"
        connection.sendall(POST + length)
        assert read_all(connection).startswith(b"HTTP/1.1 400 ")


def test_half_sent_headers_have_ten_seconds(service: Running) -> None:
    with connect(service) as slow, connect(service) as silent, connect(service) as second:
        begin = time.monotonic()
        second.sendall(GET + b"\r\n")
        read_ok(second)
        second.sendall(b"GET /healthz")  # on a connection that has had an answer
        slow.sendall(GET)
        answers = [read_all(one) for one in (slow, second, silent)]
        assert time.monotonic() - begin > protocol.HEADER_SECONDS - 1
    for answer in answers[:2]:
        assert answer.startswith(b"HTTP/1.1 408 Request Timeout\r\n")
        assert answer.endswith(b'{"error": "The headers of a request must arrive within 10 s."}')
    assert answers[2] == b"", "who has said nothing gets no answer"


def test_a_body_has_the_time_of_a_request(service: Running) -> None:
    with connect(service) as awaited, connect(service) as unread:
        begin = time.monotonic()
        awaited.sendall(POST + b"Content-Length: 10\r\n\r\n{")
        unread.sendall(b"POST /nothing HTTP/1.1\r\nContent-Length: 10\r\n\r\n{")  # answered at once
        answers = [read_all(one) for one in (awaited, unread)]
        assert time.monotonic() - begin > 1
    assert answers[0].startswith(b"HTTP/1.1 408 ")
    assert b"connection: close" in answers[0].lower()
    assert answers[1].startswith(b"HTTP/1.1 404 ")


def test_connections_beyond_the_limit_are_told_so(service: Running) -> None:
    with ExitStack() as stack:
        kept = [stack.enter_context(connect(service)) for _ in range(8)]
        for one in kept:
            one.sendall(GET + b"\r\n")
            read_ok(one)
        assert talk(service, GET + b"\r\n") == (
            503,
            "At most 8 connections may be open: try again soon.",
        )
        kept[0].sendall(GET + b"\r\n")
        read_ok(kept[0])  # the others go on
    deadline = time.monotonic() + SECONDS
    while service.call("/healthz").status != 200:
        assert time.monotonic() < deadline


def test_requests_one_after_the_other_in_one_piece_are_all_answered(service: Running) -> None:
    with connect(service) as connection:
        connection.sendall((GET + b"\r\n") * 3 + GET + b"Connection: close\r\n\r\n")
        assert read_all(connection).count(b'{"status": "ok"}') == 4


def is_held(connection: socket.socket) -> bool:
    """Whether the service still has its end of a connection open."""
    port = connection.getsockname()[1]
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        _, _, remote, *_, inode = line.split()[:10]
        if int(remote.rpartition(":")[2], 16) == port:
            return inode != "0"
    return False


def test_a_client_that_stops_reading_is_cut_off(service: Running) -> None:
    with connect(service) as connection:
        connection.sendall(b"GET /openapi.json HTTP/1.1\r\nHost: a\r\n\r\n" * 3000)
        wait_for(lambda: is_held(connection))
        wait_for(lambda: not is_held(connection))
        answers = 0
        try:
            while part := connection.recv(1 << 20):
                answers += part.count(b"HTTP/1.1 200 OK")
        except ConnectionError:
            pass
        assert 0 < answers < 3000


def test_refusals_below_the_routes_are_counted(service: Running) -> None:
    assert talk(service, b"hello\r\n\r\n")[0] == 400
    page = service.call("/metrics").body.decode()
    assert 'longleaf_requests_total{path="other",status="400"}' in page


def test_an_upgrade_to_a_websocket_is_answered_as_http(service: Running) -> None:
    with connect(service) as connection:
        connection.sendall(GET + b"Upgrade: websocket\r\nConnection: Upgrade\r\n\r\n")
        read_ok(connection)
