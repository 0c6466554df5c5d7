"""A model with an encoder is served: its texts are embedded beside the search."""

import asyncio
import math
import shutil
import signal
import subprocess
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("uvicorn", reason="needs the extra serve")

import longleaf as ll
from longleaf._validation import ModelError
from longleaf.server import batcher as batching
from longleaf.server.batcher import Batcher, search_together
from longleaf.server.engine import Engine
from longleaf.server.reader import Reader
from longleaf.server.requests import SuggestRequest
from longleaf.server.settings import Limits, Refusal
from tests.helpers import encoders as helper
from tests.helpers.serving import COMMAND, SECONDS, WORDS, Running, make_tagger, metric, serving, wait_for
from tests.server.test_batcher import request, until

helper.require_extra()

TEXTS = ["virgin olive oil", "cod and herring", "", "wheat bread", "saffron and nothing else"]
TAG = "1264"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a model, its encoder and what encoders keep."""
    return tmp_path_factory.mktemp("meaning")


@pytest.fixture(scope="module", autouse=True)
def cache(folder: Path) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LONGLEAF_CACHE", str(folder / "cache"))
        yield


@pytest.fixture(scope="module")
def tagger(folder: Path) -> ll.Tagger:
    words = sorted({word for text in WORDS.values() for word in text.split()})
    bert = helper.save_bert(folder / "bert", words=[*helper.WORDS, *words])
    trained = make_tagger(encoder=str(bert), encoder_dimensions=8, encoder_weight=1.0)
    trained.save(folder / "model.ll")
    return trained


@pytest.fixture(scope="module")
def service(folder: Path, tagger: ll.Tagger) -> Iterator[Running]:
    with serving(folder / "model.ll", "--workers", 2) as running:
        yield running


@pytest.fixture
def copied(folder: Path, tagger: ll.Tagger, tmp_path: Path) -> Path:
    """The model in another folder, with its encoder beside it; where the encoder was there is nothing."""
    shutil.copytree(folder / "bert", tmp_path / "moved")
    lost = tmp_path / "elsewhere" / "moved"
    shutil.copytree(folder / "bert", lost)
    other = make_tagger(encoder=str(lost), encoder_dimensions=8, encoder_weight=1.0)
    other.save(tmp_path / "model.ll")
    shutil.rmtree(lost)
    return tmp_path / "model.ll"


def wanted(tagger: ll.Tagger, text: Any, k: int = 5) -> list[tuple[str, float]]:
    return [(one.tag, one.numbers()["score"]) for one in tagger.suggest([text], k)[0]]


def found(row: list[dict[str, Any]]) -> list[tuple[str, float]]:
    return [(one["tag"], one["score"]) for one in row]


def logged(running: Running, k: int) -> dict[str, Any]:
    """Return what is logged of the request for k suggestions, after its response."""
    wait_for(lambda: any(line.get("k") == k for line in running.log))
    return next(line for line in running.log if line.get("k") == k)


def test_every_worker_says_what_the_tagger_says_alone_and_together(
    service: Running, tagger: ll.Tagger
) -> None:
    together = service.suggest(TEXTS)
    assert [found(row) for row in together] == [wanted(tagger, text) for text in TEXTS]
    workers: Counter[int] = Counter()
    while len(workers) < 2:
        for text, row in zip(TEXTS, together, strict=True):
            assert service.suggest([text]) == [row]
        workers.update(line["process"] for line in service.log if line.get("path") == "/v1/suggest")


def test_what_meaning_adds_is_in_the_suggestions(service: Running, tagger: ll.Tagger, folder: Path) -> None:
    words = make_tagger()
    assert wanted(words, TEXTS[0]) != wanted(tagger, TEXTS[0])


def test_the_time_for_embeddings_is_in_the_log_and_the_metrics(service: Running) -> None:
    texts, requests = (
        metric(service, name)
        for name in ("longleaf_embedded_texts_total", "longleaf_embedding_seconds_count")
    )
    service.suggest(TEXTS, k=11)
    assert metric(service, "longleaf_embedded_texts_total") == texts + len(TEXTS)
    assert metric(service, "longleaf_embedding_seconds_count") == requests + 1
    assert metric(service, "longleaf_embedding_seconds_sum") > 0
    line = logged(service, 11)
    assert 0 < line["embedding_ms"] <= line["ms"]


def test_a_request_of_vectors_is_not_embedded(service: Running, tagger: ll.Tagger) -> None:
    before = metric(service, "longleaf_embedding_seconds_count")
    n_features = tagger.estimator_.n_features_in_
    answer = service.call(
        "/v1/suggest", {"vectors": [{"indices": [0, n_features - 1], "values": [1, 0.5]}], "k": 12}
    )
    assert answer.status == 200
    assert metric(service, "longleaf_embedding_seconds_count") == before
    assert "embedding_ms" not in logged(service, 12)


def test_suggestions_name_their_words(service: Running, tagger: ll.Tagger) -> None:
    (row,) = service.suggest([TEXTS[0]], k=1, explain=True)
    (one,) = tagger.suggest([TEXTS[0]], k=1, explain=True)[0]
    assert [tuple(pair) for pair in row[0]["words"]] == list(one.words)


def test_the_model_names_its_encoder(service: Running, tagger: ll.Tagger) -> None:
    assert tagger.meaning_ is not None
    facts = service.call("/v1/model").json["encoder"]
    fingerprint = tagger.meaning_.fingerprint[:12]
    assert facts == {"name": "bert", "fingerprint": fingerprint, "columns": 8, "weight": 1.0}
    described = service.call("/openapi.json").json["paths"]["/v1/model"]["get"]["responses"]["200"]
    schema = described["content"]["application/json"]["schema"]["properties"]["encoder"]
    assert set(schema["oneOf"][1]["properties"]) == set(facts)


def test_an_explanation_has_a_line_for_meaning_or_divides_it_among_words(
    service: Running, tagger: ll.Tagger
) -> None:
    ask = {"text": TEXTS[0], "tag": TAG}
    whole = service.call("/v1/explain", ask).json
    divided = service.call("/v1/explain", ask | {"meaning_by_word": True}).json
    expected = tagger.explain(TEXTS[0], TAG, meaning_by_word=True)
    assert whole["meaning"] == tagger.explain(TEXTS[0], TAG).meaning
    assert divided["meaning"] == expected.meaning
    assert [tuple(pair) for pair in divided["words"]] == expected.contributions
    for one in (whole, divided):
        sums = math.fsum([*(value for _, value in one["words"]), one["meaning"]])
        sums += 0 if one["match"] is None else one["match"]["value"]
        assert sums == pytest.approx(math.log(one["probability"] / one["baseline"]), abs=1e-4)


def test_the_client_asks_for_meaning_by_word(service: Running) -> None:
    with ll.Client(service.url) as client:
        body = {"text": TEXTS[0], "tag": TAG, "meaning_by_word": True}
        assert client.explain(TEXTS[0], TAG, meaning_by_word=True) == service.call("/v1/explain", body).json
        assert client.model()["encoder"]["name"] == "bert"


@pytest.mark.parametrize(
    ("value", "sentence"),
    [(1, "meaning_by_word must be true or false; got a whole number."), ("x", "true or false; got a string")],
)
def test_meaning_by_word_is_true_or_false(service: Running, value: Any, sentence: str) -> None:
    answer = service.call("/v1/explain", {"text": "a", "tag": TAG, "meaning_by_word": value})
    assert answer.status == 422
    assert sentence in answer.error


def test_a_model_without_encoder_has_no_meaning_to_divide(tmp_path: Path) -> None:
    make_tagger().save(tmp_path / "model.ll")
    with serving(tmp_path / "model.ll") as running:
        body = {"text": "olive", "tag": TAG, "meaning_by_word": True}
        answer = running.call("/v1/explain", body)
        assert answer.status == 422
        assert answer.error == "meaning_by_word needs a model with an encoder; this one has none."
        assert running.call("/v1/model").json["encoder"] is None
        running.suggest(TEXTS)
        assert metric(running, "longleaf_embedding_seconds_count") == 0


@pytest.mark.parametrize("option", ["--workers=1", "--in-place"])
def test_an_encoder_beside_the_model_is_found(copied: Path, tagger: ll.Tagger, option: str) -> None:
    with serving(copied, option) as running:
        assert found(running.suggest([TEXTS[0]])[0]) == wanted(tagger, TEXTS[0])


def refusal(model: Path) -> str:
    """Return the one sentence with which a service ends."""
    process = subprocess.run(
        [*COMMAND, str(model), "--port", "0"], capture_output=True, text=True, timeout=SECONDS
    )
    assert process.returncode == 2
    assert process.stdout == ""
    return process.stderr


def test_without_its_encoder_a_service_does_not_start(copied: Path) -> None:
    shutil.rmtree(copied.parent / "moved")
    said = refusal(copied)
    assert said.startswith("longleaf: ")
    assert "the model needs encoder moved, but " in said
    assert "longleaf-serve" not in said
    assert said.count("\n") == 1


def test_with_another_encoder_a_service_does_not_start(copied: Path) -> None:
    shutil.rmtree(copied.parent / "moved")
    helper.save_bert(copied.parent / "moved", seed=1)
    said = refusal(copied)
    assert "was trained with encoder moved" in said
    assert "encoder moved is another one" in said
    assert said.count("\n") == 1


def test_a_reload_to_a_model_whose_encoder_is_missing_is_refused(
    copied: Path, tagger: ll.Tagger, folder: Path
) -> None:
    lost = copied.parent / "model.lost"
    shutil.move(copied, lost)
    encoder = shutil.move(copied.parent / "moved", copied.parent / "away")
    tagger.save(copied)
    with serving(copied, "--workers", 2) as running:
        before = running.call("/v1/model").json["model"]
        shutil.rmtree(copied)
        shutil.copytree(lost, copied)
        answer = running.call("/v1/reload", {})
        assert answer.status == 409
        assert "The old model stays" in answer.error
        reasons = [line["reason"] for line in running.log if line["event"] == "reload failed"]
        assert len(reasons) == 1
        assert "the model needs encoder moved" in reasons[0]
        assert running.call("/v1/model").json["model"] == before
        assert found(running.suggest([TEXTS[0]])[0]) == wanted(tagger, TEXTS[0])
        shutil.move(encoder, copied.parent / "moved")
        assert running.call("/v1/reload", {}).json["changed"] is True
        assert found(running.suggest([TEXTS[0]])[0]) == wanted(tagger, TEXTS[0])
        assert running.stop(signal.SIGTERM) == 0


@pytest.fixture(scope="module")
def engine(folder: Path, tagger: ll.Tagger) -> Engine:
    return Engine(str(folder / "model.ll"))


class SlowEmbeddings:
    """Stands in for the embedding of a text: counts, and holds each until it is opened."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, engine: Engine) -> None:
        self.engine, self.begun = engine, 0
        self.open = threading.Event()
        monkeypatch.setattr(engine, "embedding", self)

    def __call__(self, text: Any) -> Any:
        self.begun += 1
        assert self.open.wait(SECONDS)
        return Engine.embedding(self.engine, text)


def test_an_abandoned_request_embeds_no_more_texts(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        slow, batcher = SlowEmbeddings(monkeypatch, engine), Batcher(100, threads=2)
        task = asyncio.create_task(batcher.embedded(request(engine, TEXTS * 4)))
        await until(lambda: slow.begun == 2)
        assert batcher.waiting_rows == 20
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert batcher.waiting_rows == 0
        slow.open.set()
        after = await batcher.embedded(request(engine, TEXTS[:1]))
        assert after.embeddings is not None
        assert slow.begun == 3
        batcher.close()

    asyncio.run(main())


def test_rows_that_wait_for_embeddings_count_as_waiting(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def main() -> None:
        slow, batcher = SlowEmbeddings(monkeypatch, engine), Batcher(5)
        first = asyncio.create_task(batcher.embedded(request(engine, TEXTS)))
        await until(lambda: slow.begun == 1)
        with pytest.raises(Refusal, match="At most 5 rows may wait; 5 do"):
            await batcher.embedded(request(engine, TEXTS[:1]))
        slow.open.set()
        await first
        batcher.close()

    asyncio.run(main())


def test_texts_are_embedded_while_a_batch_is_searched(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    searching, opened = threading.Event(), threading.Event()

    def search(requests: list[SuggestRequest]) -> Any:
        searching.set()
        assert opened.wait(SECONDS)
        return search_together(requests)

    monkeypatch.setattr(batching, "search_together", search)

    async def main() -> None:
        told: list[int] = []
        batcher = Batcher(100, observe_embedding=lambda texts, seconds: told.append(texts))
        first = await batcher.embedded(request(engine, TEXTS[:1]))
        running = asyncio.create_task(batcher.suggest(first))
        await until(searching.is_set)
        second = await batcher.embedded(request(engine, TEXTS[1:]))
        assert told == [1, 4]
        opened.set()
        answers = [*await running, *await batcher.suggest(second)]
        assert answers == search_together([request(engine, TEXTS)])[0]
        batcher.close()

    asyncio.run(main())


def test_a_text_that_cannot_be_embedded_fails_its_own_request(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def embedding(text: Any) -> Any:
        if text == "boom":
            raise ModelError("boom")
        return Engine.embedding(engine, text)

    monkeypatch.setattr(engine, "embedding", embedding)

    async def main() -> None:
        batcher = Batcher(100)
        bad, good = await asyncio.gather(
            batcher.embedded(request(engine, ["boom", *TEXTS])),
            batcher.embedded(request(engine, TEXTS)),
            return_exceptions=True,
        )
        assert isinstance(bad, ModelError)
        assert isinstance(good, SuggestRequest)
        assert batcher.waiting_rows == 0
        batcher.close()

    asyncio.run(main())


def test_meaning_by_word_stops_when_its_client_is_gone(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = " ".join(f"word{number}" for number in range(100))
    X = engine.rows([text])
    begun, opened = threading.Event(), threading.Event()
    embedded: list[int] = []
    real = engine.suggester.embeddings

    def slow(texts: Any, n_jobs: Any = None) -> Any:
        embedded.append(1)
        begun.set()
        assert opened.wait(SECONDS)
        return real(texts, n_jobs)

    monkeypatch.setattr(engine.suggester, "embeddings", slow)

    async def main() -> None:
        reader = Reader()
        task = asyncio.create_task(reader.run(engine.explain, X, text, TAG, True))
        await until(begun.is_set)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        opened.set()
        reader.close()  # waits for the thread

    asyncio.run(main())
    assert len(embedded) == 1


def test_only_the_words_that_an_encoder_reads_are_taken_out(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    embedded: list[str] = []
    real = engine.suggester.embeddings

    def counting(texts: Any, n_jobs: Any = None) -> Any:
        kept = list(texts)
        embedded.extend(kept)
        return real(kept, n_jobs)

    monkeypatch.setattr(engine.suggester, "embeddings", counting)
    text = " ".join(f"olive{number}" for number in range(3000))
    engine.explain(engine.rows([text]), text, TAG, True)
    assert engine.suggester.meaning is not None
    assert len(embedded) == engine.suggester.meaning.encoder().max_tokens == 40


def test_records_bring_their_embeddings(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    texts = [" ".join(WORDS[tag].split()) for tag in WORDS] * 20
    records = [{"text": text, "vector": random.normal(size=4).tolist()} for text in texts]
    tags = [[tag] for tag in WORDS] * 20
    trained = ll.Tagger(ll.PLT(n_trees=1, random_state=1), encoder="column:vector").fit(records, tags)
    trained.save(tmp_path / "model.ll")
    asked = [records[0], {"text": "olive oil"}, {"text": "cod", "vector": "1 2 3 4"}, "olive"]
    with serving(tmp_path / "model.ll") as running:
        assert [found(row) for row in running.suggest(asked)] == [wanted(trained, one) for one in asked]
        answer = running.call("/v1/suggest", {"texts": ["a", {"text": "cod", "vector": [1, 2]}]})
        assert answer.status == 422
        assert answer.error == "texts[1]['vector'] must be 4 numbers, as others are; got 2."
        with ll.Client(running.url) as client:
            array = {"text": "cod", "vector": np.array([1.0, 2, 3, 4])}
            assert [one.tag for one in client.suggest([array])[0]] == [
                tag for tag, _ in wanted(trained, array)
            ]
        body = {"text": records[0], "tag": TAG}
        assert running.call("/v1/explain", body).json["meaning"] == trained.explain(records[0], TAG).meaning
        by_word = running.call("/v1/explain", body | {"meaning_by_word": True})
        assert by_word.error == "meaning_by_word needs an encoder that reads words; got column:vector."


def test_the_limits_hold_for_texts_of_a_model_with_an_encoder(engine: Engine) -> None:
    with pytest.raises(Refusal, match="texts must be 1 to 2 in one request; got 3"):
        SuggestRequest.parse({"texts": TEXTS[:3]}, engine, Limits(texts=2))
