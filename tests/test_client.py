"""The clients answer as the tagger does, try again where that helps, and say what went wrong."""

import asyncio
from collections.abc import Callable, Iterator
from types import MappingProxyType
from typing import Any, cast

import pytest

import longleaf as ll
from tests.helpers.serving import Running, make_tagger, serving
from tests.server.records import RECORDS, make_record_tagger

httpx = pytest.importorskip("httpx", reason="needs the extra serve")

from longleaf import client as clients  # noqa: E402 - after the check for the extra

TEXTS = ["virgin olive oil", "cod and herring", "saffron"]
SUGGESTION = {"tag": "a", "name": "a", "score": 1.0, "probability": 0.5}


@pytest.fixture(scope="module")
def tagger() -> ll.Tagger:
    return make_tagger()


@pytest.fixture(scope="module")
def service(tagger: ll.Tagger, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    path = tmp_path_factory.mktemp("client") / "tagger.ll"
    tagger.save(path)
    with serving(path, environment={"LONGLEAF_API_KEY": "open-sesame"}) as running:
        yield running


def plain(found: list[list[Any]]) -> list[Any]:
    return [
        [
            (one.tag, one.name, pytest.approx(one.score), pytest.approx(one.probability), one.words)
            for one in row
        ]
        for row in found
    ]


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"tail": 1.0},
        {"gain": {"rare": 9}},
        {"only": ("2437", "rare")},
        {"never": ("1264",)},
        {"explain": True},
        {"utility": {"*": {"b": -0.1}, "rare": {"a": 9, "b": -1}, "1264": {"allowed": False}}},
        {"utility": [{"tag": "rare", "a": 9, "b": -0.5}], "threshold": 0.0, "never": {"2437"}},
        {"search": "auto", "beam": 1},
    ],
    ids=str,
)
def test_both_clients_suggest_what_the_tagger_does(
    service: Running, tagger: ll.Tagger, options: dict[str, Any]
) -> None:
    wanted = plain(tagger.suggest(TEXTS, k=2, **options))
    with ll.Client(service.url, api_key="open-sesame", batch=2) as client:
        assert plain(client.suggest(TEXTS, k=2, **options)) == wanted

    async def ask() -> list[Any]:
        async with ll.AsyncClient(service.url + "/", api_key="open-sesame", batch=2) as client:
            return await client.suggest(iter(TEXTS), k=2, **options)

    assert plain(asyncio.run(ask())) == wanted


def test_a_client_knows_whether_a_search_that_may_end_early_was_exact(
    service: Running, tagger: ll.Tagger
) -> None:
    options: dict[str, Any] = {"k": 4, "search": "beam", "beam": 1}
    wanted = [(row.exact, row.gap) for row in tagger.suggest(TEXTS, **options)]
    with ll.Client(service.url, api_key="open-sesame", batch=2) as client:
        found = [(row.exact, row.gap) for row in client.suggest(TEXTS, **options)]
        assert found == [(exact, pytest.approx(gap)) for exact, gap in wanted]
        assert not all(exact for exact, _ in found)
        assert all(row.exact and row.gap == 0 for row in client.suggest(TEXTS, k=4))


def test_a_client_knows_no_order_of_tags_for_a_utility(service: Running) -> None:
    with ll.Client(service.url, api_key="open-sesame") as client:
        with pytest.raises(TypeError, match="utility must be rows by tag; got Utility"):
            client.suggest(TEXTS, utility=ll.Utility([1.0, 2.0]))
        with pytest.raises(ValueError, match=r"utility\[0\] must name tags of the model; 'beer' is none\."):
            client.suggest(TEXTS, utility={"beer": {"a": 2}})


@pytest.fixture(scope="module")
def record_tagger() -> ll.Tagger:
    return make_record_tagger()


@pytest.fixture(scope="module")
def record_service(record_tagger: ll.Tagger, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    path = tmp_path_factory.mktemp("records") / "tagger.ll"
    record_tagger.save(path)
    with serving(path) as running:
        yield running


@pytest.mark.parametrize(
    "options", [{"k": 2}, {"k": "auto"}, {"k": "auto", "max_k": 1}, {"explain": True}], ids=str
)
def test_both_clients_take_records(
    record_service: Running, record_tagger: ll.Tagger, options: dict[str, Any]
) -> None:
    records = [MappingProxyType(record) for record in RECORDS]  # any mapping, not only a dict
    wanted = plain(record_tagger.suggest(RECORDS, **options))
    with ll.Client(record_service.url, batch=3) as client:
        assert plain(client.suggest(records, **options)) == wanted
        explained = client.explain(records[0], "1264")
        assert client.model()["fields"] == list(explained["spans"]) == ["title", "text"]

    async def ask() -> tuple[list[Any], dict[str, Any]]:
        async with ll.AsyncClient(record_service.url, batch=3) as client:
            return await client.suggest(iter(records), **options), await client.explain(records[0], "1264")

    answer, explained_too = asyncio.run(ask())
    assert plain(answer) == wanted
    assert explained_too == explained


def test_a_data_frame_is_a_record_per_row(record_service: Running, record_tagger: ll.Tagger) -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(
        {"year": [2004, 2005], "title": ["olive oil", float("nan")], "text": ["cod", "wheat"]}
    )
    with ll.Client(record_service.url) as client:
        assert plain(client.suggest(frame)) == plain(record_tagger.suggest(frame))


def test_a_single_record_is_not_a_list_of_texts(record_service: Running) -> None:
    with ll.Client(record_service.url) as client:
        with pytest.raises(TypeError, match="must be an iterable of strings; got a single dict"):
            client.suggest(RECORDS[0])
        with pytest.raises(
            ValueError, match=r"texts\[1\] must have one of the fields title, text; got author"
        ):
            client.suggest([RECORDS[0], {"author": "a"}])
        with pytest.raises(ValueError, match=r"text\['title'\] must be a string, a list of strings or null"):
            client.explain(cast(Any, {"title": 7}), "1264")


def test_a_matrix_is_sent_as_vectors(service: Running, tagger: ll.Tagger) -> None:
    with ll.Client(service.url, api_key="open-sesame") as client:
        X = tagger.vectorizer_.transform(TEXTS)
        assert plain(client.suggest(X, k=3)) == plain(tagger.suggest(TEXTS, k=3))
        assert client.suggest([]) == []
        assert client.model()["labels"] == len(tagger.classes_)
        explained = client.explain(TEXTS[0], "1264")
        assert explained["words"][0][0] in TEXTS[0]
        assert explained["records"] == []


def test_what_cannot_be_is_a_value_error_with_the_services_sentence(service: Running) -> None:
    with ll.Client(service.url, api_key="open-sesame") as client:
        with pytest.raises(ValueError, match="only must name tags of the model; 'x' is none"):
            client.suggest(["a"], only=["x"])
        with pytest.raises(TypeError, match="got a single str"):
            client.suggest("a")
    with (
        ll.Client(service.url, api_key="wrong") as client,
        pytest.raises(clients.ServiceError, match="A valid API key must be given") as refused,
    ):
        client.suggest(["a"])
    assert refused.value.status == 401


def faked(
    monkeypatch: pytest.MonkeyPatch, answers: list[Any], **options: Any
) -> tuple[ll.Client, list[float]]:
    """Give a client whose service answers as listed, and what it waited."""
    waits: list[float] = []
    monkeypatch.setattr(clients.time, "sleep", waits.append)
    queue = iter(answers)

    def answer(request: Any) -> Any:
        one = next(queue)
        if isinstance(one, Exception):
            raise one
        return one

    client = ll.Client("http://127.0.0.1:1", **options)
    client._http.close()
    client._http = httpx.Client(base_url=client.url, transport=httpx.MockTransport(answer))
    return client, waits


def good() -> Any:
    return httpx.Response(200, json={"results": [{"suggestions": [SUGGESTION]}]})


@pytest.mark.parametrize(
    "first",
    [
        lambda: httpx.ConnectError("refused"),
        lambda: httpx.ReadTimeout("slow"),
        lambda: httpx.Response(503, json={"error": "The service is shutting down."}),
        lambda: httpx.Response(429, json={"error": "…"}, headers={"retry-after": "2"}),
    ],
    ids=["no connection", "no answer", "unavailable", "busy"],
)
def test_what_may_pass_is_tried_again(monkeypatch: pytest.MonkeyPatch, first: Callable[[], Any]) -> None:
    client, waits = faked(monkeypatch, [first(), first(), good()])
    with client:
        assert client.suggest(["a"])[0][0].tag == "a"
    assert len(waits) == 2
    if getattr(first(), "status_code", 0) == 429:
        assert waits == [2.0, 2.0]
    else:
        assert 0 < waits[0] < waits[1] * 2 <= 0.4


def test_in_the_end_it_gives_up(monkeypatch: pytest.MonkeyPatch) -> None:
    client, waits = faked(monkeypatch, [httpx.ConnectError("refused")] * 3, retries=2)
    with (
        client,
        pytest.raises(clients.ServiceError, match="must be a running longleaf service; refused"),
    ):
        client.suggest(["a"])
    assert len(waits) == 2
    client, _ = faked(monkeypatch, [httpx.Response(503, text="<html>")], retries=0)
    with client, pytest.raises(clients.ServiceError, match="responded with status 503"):
        client.suggest(["a"])


def test_a_refusal_is_not_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    client, waits = faked(monkeypatch, [httpx.Response(422, json={"error": "k must be less."})])
    with client, pytest.raises(ValueError, match="k must be less"):
        client.suggest(["a"], k=9)
    assert waits == []


def test_nobody_answers_on_a_closed_port() -> None:
    async def ask() -> None:
        async with ll.AsyncClient("http://127.0.0.1:1", retries=1) as client:
            await client.suggest(["a"])

    with pytest.raises(clients.ServiceError, match="must be a running longleaf service"):
        asyncio.run(ask())


def test_a_url_must_be_one() -> None:
    with pytest.raises(ValueError, match="url must begin with http:// or https://"):
        ll.Client("localhost:8000")


@pytest.mark.parametrize("key", ["…", "schlüssel", "two\nlines"])
def test_a_key_must_fit_into_a_header(key: str) -> None:
    for kind in (ll.Client, ll.AsyncClient):
        with pytest.raises(ValueError, match="api_key must hold printable ASCII characters only"):
            kind("http://127.0.0.1:8000", api_key=key)
