"""What the service refuses: bad requests, too much, and callers without a key, each in one clear sentence."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from serving import Running, make_tagger, make_vector_model, serving

pytest.importorskip("uvicorn", reason="needs the extra serve")


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    path = tmp_path_factory.mktemp("limited") / "tagger.ll"
    make_tagger().save(path)
    with serving(path, "--max-body", 20000, "--max-texts", 20, "--max-k", 10) as running:
        yield running


@pytest.fixture(scope="module")
def locked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    path = tmp_path_factory.mktemp("locked") / "model.ll"
    make_vector_model().save(path)
    keys = ("--api-key", "first", "--api-key", "second", "--cors", "https://example.org")
    with serving(path, *keys) as running:
        yield running


BAD = {
    "no JSON": (b"{", 400, "The body must be JSON"),
    "not a number": (b'{"texts": ["a"], "tail": NaN}', 400, "NaN is no JSON"),
    "very deep": (b"[" * 9000, 400, "The body must be JSON"),
    "a list": ([], 400, "must be a JSON object; got a list"),
    "nothing": ({}, 422, "Either texts or vectors must be given; got neither"),
    "both": ({"texts": ["a"], "vectors": []}, 422, "got texts and vectors"),
    "a number of texts": ({"texts": 7}, 422, "texts must be a list; got a whole number"),
    "one text": ({"texts": "a"}, 422, "texts must be a list; got a string"),
    "a text of null": ({"texts": ["a", None]}, 422, "Each text must be a string; got null"),
    "no texts": ({"texts": []}, 422, "texts must be 1 to 20 in one request; got 0"),
    "many texts": ({"texts": ["a"] * 21}, 422, "got 21"),
    "k of -1": ({"texts": ["a"], "k": -1}, 422, "k must be at least 1 and at most 10; got -1"),
    "a large k": ({"texts": ["a"], "k": 11}, 422, "k must be at least 1 and at most 10; got 11"),
    "a large tail": ({"texts": ["a"], "tail": 11}, 422, "tail must be at least 0 and at most 10; got 11"),
    "a slip": ({"texts": ["a"], "tial": 1}, 422, "got 'tial'"),
    "a negative tail": ({"texts": ["a"], "tail": -1}, 422, "tail must be at least 0"),
    "tail and gain": ({"texts": ["a"], "tail": 1, "gain": {}}, 422, "must not be given together"),
    "an unknown tag": ({"texts": ["a"], "only": ["x"]}, 422, "only must name tags that occur"),
    "a negative gain": ({"texts": ["a"], "gain": {"rare": -1}}, 422, "gain of 'rare' must be at least 0"),
    "a gain of a list": ({"texts": ["a"], "gain": {"rare": [1]}}, 422, "plain values; got a list"),
    "a wrong search": ({"texts": ["a"], "search": "x"}, 422, "search must be one of exact, beam"),
    "an odd pair": ({"texts": ["a"], "tail": 1, "propensity": [1]}, 422, "propensity must be a pair"),
    "a wrong pair": (
        {"texts": ["a"], "tail": 1, "propensity": [-1, 1]},
        422,
        "A of propensity must be at least 0",
    ),
    "a word to explain": ({"texts": ["a"], "explain": 1}, 422, "explain must be true or false"),
    "half a vector": ({"vectors": [{"indices": [0]}]}, 422, "must have indices and values; got indices"),
    "uneven": ({"vectors": [{"indices": [0], "values": []}]}, 422, "one length; got 1 and 0"),
    "outside": ({"vectors": [{"indices": [99999], "values": [1]}]}, 422, "got 99999"),
    "below": ({"vectors": [{"indices": [-1], "values": [1]}]}, 422, "got -1"),
    "fractions": ({"vectors": [{"indices": [0.5], "values": [1]}]}, 422, "a list of whole numbers"),
    "words": ({"vectors": [{"indices": [0], "values": ["x"]}]}, 422, "values must be a list of numbers"),
    "huge": ({"vectors": [{"indices": [0], "values": [1e300]}]}, 422, "vectors must hold finite"),
    "explained vectors": (
        {"vectors": [{"indices": [0], "values": [1]}], "explain": True},
        422,
        "explain needs texts",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_a_bad_request_gets_one_clear_sentence(service: Running, case: str) -> None:
    body, status, said = BAD[case]
    answer = service.call("/v1/suggest", body)
    assert (answer.status, said in answer.error) == (status, True), answer.error
    assert answer.error.endswith(".")


def test_a_body_must_be_small_and_declared_as_json(service: Running) -> None:
    large = service.call("/v1/suggest", {"texts": ["a" * 20000]})
    assert (large.status, large.error) == (413, "The body must be at most 20000 bytes.")
    form = service.call("/v1/suggest", b"texts=a", content_type="text/plain")
    assert (form.status, form.error) == (415, "Content-Type must be application/json; got text/plain.")


def test_unknown_paths_and_methods_are_refused_in_json(service: Running) -> None:
    assert service.call("/nothing").status == 404
    assert service.call("/v1/suggest").status == 405
    assert service.call("/v1/nothing", {}).json == {"error": "Not Found."}


def test_a_request_may_take_only_so_long(tmp_path: Path) -> None:
    make_tagger().save(tmp_path / "tagger.ll")
    with serving(tmp_path / "tagger.ll", "--timeout", 0.001) as running:
        slow = {"texts": ["olive oil " * 50] * 100, "explain": True, "k": 5}
        answer = running.call("/v1/suggest", slow)
        assert (answer.status, answer.error) == (
            408,
            "A request must be answered within 0.001 s; this one was not.",
        )
        assert running.call("/healthz").status == 200


def test_a_key_is_asked_for_where_one_is_set(locked: Running) -> None:
    for headers in (
        {},
        {"x_api_key": "third"},
        {"authorization": "Bearer "},
        {"authorization": "Basic first"},
    ):
        answer = locked.call("/v1/model", **headers)
        assert answer.status == 401
        assert answer.headers["www-authenticate"] == "Bearer"
    assert locked.call("/metrics").status == 401
    for headers in ({"x_api_key": "first"}, {"authorization": "Bearer second"}):
        assert locked.call("/v1/model", **headers).status == 200
    for path in ("/", "/healthz", "/readyz", "/app.js"):
        assert locked.call(path).status == 200


def test_only_listed_origins_may_call(locked: Running, service: Running) -> None:
    def allowed(running: Running, origin: str) -> str | None:
        return running.call("/healthz", origin=origin).headers.get("access-control-allow-origin")

    assert allowed(locked, "https://example.org") == "https://example.org"
    assert allowed(locked, "https://example.com") is None
    assert allowed(service, "https://example.org") is None
    ask = {"origin": "https://example.org", "access_control_request_method": "POST", "method": "OPTIONS"}
    before = locked.call("/v1/suggest", access_control_request_headers="x-api-key", **ask)
    assert before.status == 200
