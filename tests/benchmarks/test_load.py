"""The load benchmark: its schedule, its reader of answers, its sums, and one short run against a service."""

import asyncio
import io
import json
from itertools import pairwise

import numpy as np
import pytest
from rich.console import Console

from benchmarks.load import client, models, report
from benchmarks.load.client import LOST, Job

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"


def sent(due, end, status=200, begin=None):
    return {"body": 0, "due": due, "begin": due if begin is None else begin, "end": end, "status": status}


def record(system, p99=1.0, rate=100.0, loop="open", failed=0):
    named = {"system": system, "workers": 1, "loop": loop, "case": "1 law", "place": 0}
    return named | {"p99_ms": p99, "requests_per_second": rate, "failed": failed}


def test_requests_are_due_at_even_intervals_for_as_long_as_was_asked():
    assert client.schedule(4, 1.5) == [0, 0.25, 0.5, 0.75, 1.0, 1.25]
    assert len(client.schedule(300, 60)) == 18_000


def test_the_head_of_an_answer_gives_its_status_and_length():
    assert client.read_head(b"HTTP/1.1 429 Too Many\r\nserver: x\r\nContent-Length: 17") == (429, 17)
    with pytest.raises(ValueError, match="must have a content-length"):
        client.read_head(b"HTTP/1.1 200 OK\r\nserver: x")


def test_percentiles_are_values_that_occurred():
    assert report.percentiles(np.arange(1, 101) / 1000) == pytest.approx(
        {"p50_ms": 51, "p95_ms": 96, "p99_ms": 100}
    )
    assert report.percentiles([]) == {}


def test_latencies_count_from_when_requests_were_due_not_from_when_they_were_sent():
    found = report.summarize([sent(0, 0.5, begin=0.4), sent(0.5, 1.0), sent(1.0, 2.0, LOST)], texts=10)
    assert (found["requests"], found["failed"]) == (3, 1)
    assert found["p50_ms"] == pytest.approx(500)
    assert found["sent_late_p99_ms"] == pytest.approx(400)
    assert (found["requests_per_second"], found["texts_per_second"]) == (2, 20)


def test_the_warm_up_does_not_count():
    found = report.summarize([sent(0, 9), sent(10, 10.25), sent(10.25, 10.5)], texts=1, warm_seconds=10)
    assert (found["requests"], found["most_ms"], found["requests_per_second"]) == (2, 250, 4)


def test_a_run_in_which_all_failed_has_no_latencies():
    assert report.summarize([sent(0, 0, LOST)], texts=1) == {"requests": 1, "failed": 1}


def test_the_best_run_of_a_case_is_kept_and_no_failure_is_forgotten():
    runs = [record("longleaf", p99=9.0, failed=2), record("longleaf", p99=5.0), record("omikuji", p99=7.0)]
    kept = report.best(runs)
    assert [(one["system"], one["p99_ms"], one["failed_in_all"], one["runs"]) for one in kept] == [
        ("longleaf", 5.0, 2, 2),
        ("omikuji", 7.0, 0, 1),
    ]
    closed = [record("longleaf", p99=1.0, rate=10, loop="closed"), record("longleaf", rate=20, loop="closed")]
    assert report.best(closed)[0]["requests_per_second"] == 20


def test_the_table_has_a_line_a_case_and_leaves_out_what_was_not_measured():
    page = io.StringIO()
    Console(file=page, width=200).print(report.render([record("longleaf", p99=1234.5), record("omikuji")]))
    line = next(line for line in page.getvalue().splitlines() if "longleaf" in line)
    cells = [cell.strip() for cell in line.strip("│").split("│")]
    assert cells[:3] == ["1 law", "longleaf", "1"]
    assert "1,234.50" in cells
    assert "" in cells


def test_laws_are_distinct_and_the_unseen_ones_come_first():
    unseen, seen = [f"u{i}" for i in range(5)], [f"s{i}" for i in range(20)]
    laws, is_unseen = models.distinct_laws(unseen, seen, 12)
    assert len(set(laws)) == 12
    assert {law for law, new in zip(laws, is_unseen, strict=True) if new} == set(unseen)
    with pytest.raises(ValueError, match="at most 25 distinct laws"):
        models.distinct_laws(unseen, seen, 26)


def test_bodies_hold_so_many_laws_each_and_a_rest_is_left_out(tmp_path):
    lines = models.write_bodies(tmp_path / "b", ["a", "b", "c"], 2, True).read_text().splitlines()
    assert [json.loads(line) for line in lines] == [
        {"texts": ["a", "b"], "k": 5, "tail": 1.0, "explain": True}
    ]


async def call(job, answer, calls):
    """Run a job against a service that counts its calls and answers so."""

    async def serve(reader, writer):
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = int(head.lower().split(b"content-length:")[1].split()[0])
                calls.append(await reader.readexactly(length))
                await answer(writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    caller = client.Caller(
        Job("127.0.0.1", server.sockets[0].getsockname()[1], "", **job),
        [client.message(body, "127.0.0.1", 1) for body in (b"one", b"two", b"three", b"four")],
    )
    found = await caller.run()
    caller.close()
    server.close()
    return found


async def at_once(writer):
    writer.write(ANSWER[:20])
    await writer.drain()
    writer.write(ANSWER[20:])


def when_all_are_there(calls):
    """Answer nobody before the fourth call has come."""

    async def answer(writer):
        async with asyncio.timeout(60):
            while len(calls) < 4:
                await asyncio.sleep(0.001)
        writer.write(ANSWER)

    return answer


async def never(writer):
    writer.close()


def test_the_open_loop_sends_each_body_when_it_is_due_although_answers_are_slow():
    calls = []
    job = {"connections": 1, "seconds": 0.04, "rate": 100.0}
    found = asyncio.run(call(job, when_all_are_there(calls), calls))
    assert sorted(calls) == [b"four", b"one", b"three", b"two"]
    assert [one.status for one in found] == [200] * 4
    assert np.diff([one.due for one in found]) == pytest.approx(0.01)
    last_begin = max(one.begin for one in found)
    # nobody waits for the answer of another
    assert all(one.end > last_begin >= one.begin >= one.due for one in found), (
        "nobody waits for another's answer"
    )


def test_the_closed_loop_waits_for_each_answer_and_begins_again_at_the_end():
    calls = []
    found = asyncio.run(call({"connections": 1, "seconds": 1.0}, at_once, calls))
    assert len(found) == len(calls) > 4
    assert calls[:5] == [b"one", b"two", b"three", b"four", b"one"]
    assert all(later.begin >= earlier.end for earlier, later in pairwise(found))


def test_a_lost_connection_is_a_failed_request():
    found = asyncio.run(call({"connections": 1, "seconds": 0.02, "rate": 100.0}, never, []))
    assert [one.status for one in found] == [LOST, LOST]
