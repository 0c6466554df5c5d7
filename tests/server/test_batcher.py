"""Requests that arrive together are searched together, and a lone one is not held back."""

import asyncio
import threading
import time
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("uvicorn", reason="needs the extra serve")

from longleaf.server import batcher as batching
from longleaf.server.batcher import Batcher, search_together
from longleaf.server.engine import MOST_QUERIES, Engine
from longleaf.server.requests import SuggestRequest
from longleaf.server.settings import Limits, Refusal
from tests.helpers.serving import SECONDS, make_tagger

TEXTS = ["virgin olive oil", "cod and herring", "wheat bread", "saffron"]


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Engine:
    path = tmp_path_factory.mktemp("engine") / "model.ll"
    make_tagger().save(path)
    return Engine(str(path))


def request(engine: Engine, texts: list[str], **options: Any) -> SuggestRequest:
    return SuggestRequest.parse({"texts": texts} | options, engine, Limits())


class Gate:
    """Stands in for the search: notes each batch, and holds it until it is opened."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.batches: list[int] = []
        self.open = threading.Event()
        monkeypatch.setattr(batching, "search_together", self)

    def __call__(self, requests: list[SuggestRequest]) -> Any:
        self.batches.append(len(requests))
        assert self.open.wait(30)
        return search_together(requests)


async def until(condition: Any) -> None:
    deadline = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < deadline
        await asyncio.sleep(0.001)


def test_a_lone_request_starts_at_once_and_those_behind_it_go_together(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        gate, batcher = Gate(monkeypatch), Batcher(100)
        first = asyncio.create_task(batcher.suggest(request(engine, TEXTS[:1])))
        await until(lambda: gate.batches == [1])
        rest = [asyncio.create_task(batcher.suggest(request(engine, [text]))) for text in TEXTS]
        await until(lambda: batcher.waiting_rows == 4)
        gate.open.set()
        answers = await asyncio.gather(first, *rest)
        assert gate.batches == [1, 4]
        for answer, text in zip(answers[1:], TEXTS, strict=True):
            assert answer == search_together([request(engine, [text])])[0]
        assert batcher.waiting_rows == 0
        batcher.close()

    asyncio.run(main())


def test_requests_of_one_moment_share_a_batch(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        gate, batcher = Gate(monkeypatch), Batcher(100)
        gate.open.set()
        await asyncio.gather(*(batcher.suggest(request(engine, [text])) for text in TEXTS))
        assert gate.batches == [4]
        batcher.close()

    asyncio.run(main())


def test_answers_do_not_depend_on_the_company(engine: Engine) -> None:
    wishes = [
        request(engine, TEXTS, k=2),
        request(engine, TEXTS[:2], k=2),
        request(engine, TEXTS, k=3, tail=1.0),
        request(engine, TEXTS[1:], k=2, only=["2437", "rare"]),
        request(engine, TEXTS[:1], k=2),
        request(engine, TEXTS, k=2, utility=[{"tag": "rare", "a": 9}]),
        request(engine, TEXTS, k=2, utility=[{"tag": "rare", "a": 8}]),
        request(engine, TEXTS, k=2, search="beam", beam=1),
        request(engine, TEXTS, k=2, search="beam", beam=1, max_nodes=2),
    ]
    alone = [search_together([wish])[0] for wish in wishes]
    assert search_together(wishes) == alone
    assert search_together(wishes[::-1]) == alone[::-1]


def test_only_requests_that_ask_for_the_same_are_one_search(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    searched = []
    monkeypatch.setattr(engine, "rows", lambda texts, _: searched.append(len(texts)) or _rows(engine, texts))
    same = [request(engine, [text], k=2, tail=0.5) for text in TEXTS]
    search_together([*same, request(engine, TEXTS[:1], k=3, tail=0.5)])
    assert searched == [4, 1]


def test_a_utility_that_is_sent_again_is_the_same_to_the_search(engine: Engine) -> None:
    rows = [{"tag": "rare", "a": 9}]
    first, again = (request(engine, [text], utility=rows).query for text in TEXTS[:2])
    assert first is again
    other = request(engine, TEXTS[:1], utility=[{"tag": "rare", "a": 8}]).query
    assert other is not first
    for a in range(20):
        request(engine, TEXTS[:1], utility=[{"tag": "rare", "a": a}])
    assert len(engine._queries) == MOST_QUERIES


def test_a_utility_has_at_most_so_many_rows(engine: Engine) -> None:
    with pytest.raises(Refusal, match="utility must have at most 10000 rows; got 10001"):
        request(engine, TEXTS, utility=[{"tag": "rare"}] * 10001)


def _rows(engine: Engine, texts: list[str]) -> Any:
    return Engine.rows(engine, texts)


def test_a_failure_stays_with_its_request(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    def rows(texts: list[str], embeddings: Any) -> Any:
        if "boom" in texts:
            raise RuntimeError("boom")
        return _rows(engine, texts)

    monkeypatch.setattr(engine, "rows", rows)
    good, bad, other = search_together([request(engine, [text]) for text in ("olive", "boom", "cod")])
    assert isinstance(bad, RuntimeError)
    assert good == search_together([request(engine, ["olive"])])[0]
    assert other == search_together([request(engine, ["cod"])])[0]


def test_who_gave_up_is_not_searched_for(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        gate, batcher = Gate(monkeypatch), Batcher(100)
        first = asyncio.create_task(batcher.suggest(request(engine, TEXTS[:1])))
        await until(lambda: gate.batches == [1])
        impatient = asyncio.create_task(batcher.suggest(request(engine, TEXTS)))
        patient = asyncio.create_task(batcher.suggest(request(engine, TEXTS[:2])))
        await until(lambda: batcher.waiting_rows == 6)
        impatient.cancel()
        gate.open.set()
        await asyncio.gather(first, patient)
        assert gate.batches == [1, 1]
        batcher.close()

    asyncio.run(main())


def test_when_too_much_waits_a_request_is_told_to_come_again(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        gate, batcher = Gate(monkeypatch), Batcher(5)
        first = asyncio.create_task(batcher.suggest(request(engine, TEXTS[:1])))
        await until(lambda: gate.batches == [1])
        waiting = asyncio.create_task(batcher.suggest(request(engine, TEXTS)))
        await until(lambda: batcher.waiting_rows == 4)
        with pytest.raises(Refusal, match="At most 5 rows may wait; 4 do") as refused:
            await batcher.suggest(request(engine, TEXTS[:2]))
        assert refused.value.status == 429
        assert refused.value.headers == {"Retry-After": "1"}
        gate.open.set()
        await asyncio.gather(first, waiting)
        batcher.close()

    asyncio.run(main())


def test_a_model_that_is_replaced_while_it_is_read_has_the_version_of_its_bytes(tmp_path: Path) -> None:
    make_tagger(seed=1).save(tmp_path / "model.ll")
    first = Engine(str(tmp_path / "model.ll"))
    make_tagger(seed=2).save(tmp_path / "model.ll", force=True)
    second = Engine(str(tmp_path / "model.ll"))
    make_tagger(seed=1).save(tmp_path / "model.ll", force=True)
    assert first.version != second.version
    assert Engine(str(tmp_path / "model.ll")).version == first.version
