"""What the service refuses: bad requests, too much, and callers without a key, each in one clear sentence."""

import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.commands import complaint
from tests.helpers.serving import Running, make_tagger, make_vector_model, serving

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
    "not a number": (b'{"texts": ["a"], "tail": NaN}', 400, "NaN is not JSON"),
    "very deep": (b"[" * 9000, 400, "The body must be JSON"),
    "a list": ([], 400, "must be a JSON object; got a list"),
    "nothing": ({}, 422, "Either texts or vectors must be given; got neither"),
    "both": ({"texts": ["a"], "vectors": []}, 422, "got texts and vectors"),
    "a number of texts": ({"texts": 7}, 422, "texts must be a list; got a whole number"),
    "one text": ({"texts": "a"}, 422, "texts must be a list; got a string"),
    "a text of null": (
        {"texts": ["a", None]},
        422,
        "texts[1] must be a string or an object of fields; got null",
    ),
    "a record of texts": ({"texts": {"title": "a"}}, 422, "texts must be a list; got an object"),
    "a field without end": (
        {"texts": [{"x" * 9000: 1}]},
        422,
        "a list of strings or null; got a whole number",
    ),
    "no texts": ({"texts": []}, 422, "texts must be 1 to 20 in one request; got 0"),
    "many texts": ({"texts": ["a"] * 21}, 422, "got 21"),
    "k of -1": ({"texts": ["a"], "k": -1}, 422, "k must be at least 1 and at most 10; got -1"),
    "a large k": ({"texts": ["a"], "k": 11}, 422, "k must be at least 1 and at most 10; got 11"),
    "a large tail": ({"texts": ["a"], "tail": 11}, 422, "tail must be at least 0 and at most 10; got 11"),
    "a slip": ({"texts": ["a"], "tial": 1}, 422, "got 'tial'"),
    "a negative tail": ({"texts": ["a"], "tail": -1}, 422, "tail must be at least 0"),
    "tail and gain": ({"texts": ["a"], "tail": 1, "gain": {}}, 422, "must not be given together"),
    "an unknown tag": ({"texts": ["a"], "only": ["x"]}, 422, "only must name tags of the model"),
    "a negative gain": ({"texts": ["a"], "gain": {"rare": -1}}, 422, "gain of 'rare' must be at least 0"),
    "a gain of a list": ({"texts": ["a"], "gain": {"rare": [1]}}, 422, "plain values; got a list"),
    "tail and utility": (
        {"texts": ["a"], "tail": 1, "utility": []},
        422,
        "utility must not be given together",
    ),
    "a utility by tag": ({"texts": ["a"], "utility": {}}, 422, "utility must be a list; got an object"),
    "a utility of a file": ({"texts": ["a"], "utility": "/etc/passwd"}, 422, "must be a list; got a string"),
    "a utility of numbers": (
        {"texts": ["a"], "utility": [1]},
        422,
        "utility[0] must have tag, a, b, allowed",
    ),
    "a utility of nobody": (
        {"texts": ["a"], "utility": [{"tag": "x"}]},
        422,
        "name tags of the model; 'x' is",
    ),
    "a utility of a word": (
        {"texts": ["a"], "utility": [{"tag": "rare"}, {"tag": "1264", "a": "1"}]},
        422,
        "utility[1]: a of '1264' must be a finite number; got '1'",
    ),
    "a slip in a utility": ({"texts": ["a"], "utility": [{"tag": "rare", "cost": 1}]}, 422, "got 'cost'"),
    "a likely utility": ({"texts": ["a"], "k": "auto", "utility": []}, 422, "k must be a whole number with"),
    "a negative threshold": ({"texts": ["a"], "threshold": -1}, 422, "threshold must be at least 0"),
    "an epsilon of 1": (
        {"texts": ["a"], "epsilon": 1},
        422,
        "epsilon must be at least 0 and at most 0.999999",
    ),
    "no nodes": ({"texts": ["a"], "max_nodes": 0}, 422, "max_nodes must be at least 1"),
    "no time": ({"texts": ["a"], "deadline_ms": 0}, 422, "deadline_ms must be at least 0.001"),
    "a wrong search": ({"texts": ["a"], "search": "x"}, 422, "search must be one of exact, beam, auto"),
    "an odd pair": ({"texts": ["a"], "tail": 1, "propensity": [1]}, 422, "propensity must be a pair"),
    "a wrong pair": (
        {"texts": ["a"], "tail": 1, "propensity": [-1, 1]},
        422,
        "A of propensity must be at least 0",
    ),
    "a word to explain": ({"texts": ["a"], "explain": 1}, 422, "explain must be true or false"),
    "half a vector": ({"vectors": [{"indices": [0]}]}, 422, "must have indices and values; got indices"),
    "uneven": ({"vectors": [{"indices": [0], "values": []}]}, 422, "the same length; got 1 and 0"),
    "outside": ({"vectors": [{"indices": [99999], "values": [1]}]}, 422, "got 99999"),
    "below": ({"vectors": [{"indices": [-1], "values": [1]}]}, 422, "got -1"),
    "fractions": ({"vectors": [{"indices": [0.5], "values": [1]}]}, 422, "a list of whole numbers"),
    "words": ({"vectors": [{"indices": [0], "values": ["x"]}]}, 422, "values must be a list of numbers"),
    "huge": ({"vectors": [{"indices": [0], "values": [1e300]}]}, 422, "vectors must hold finite"),
    "true for 1": ({"vectors": [{"indices": [True, 2], "values": [1, 2]}]}, 422, "indices must be a list of"),
    "a value of false": ({"vectors": [{"indices": [1], "values": [False]}]}, 422, "values must be a list of"),
    "a k of true": ({"texts": ["a"], "k": True}, 422, "k must be a whole number; got True"),
    "auto in capitals": (
        {"texts": ["a"], "k": "AUTO"},
        422,
        "k must be a whole number or 'auto'; got 'AUTO'",
    ),
    "a tail of true": ({"texts": ["a"], "tail": True}, 422, "tail must be a finite number; got True"),
    "a number beyond all": (
        b'{"texts": ["a"], "tail": ' + b"9" * 400 + b"}",
        422,
        "tail must be a finite number; got 999",
    ),
    "more digits than Python reads": (b'{"k": ' + b"9" * 5000 + b"}", 400, "The body must be JSON"),
    "half a character": ({"texts": ["a"], "only": ["\ud800"]}, 422, "only must name tags of the model"),
    "a field of half a character": ({"texts": ["a"], "\ud800": 1}, 422, "Fields must be among"),
    "bytes that are no text": (b'{"texts": ["\xff"]}', 400, "The body must be JSON"),
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


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/suggest", {"texts": ["a"], "only": ["x" * 15000]}),
        ("/v1/suggest", {"texts": ["a"], "gain": {"x" * 15000: -1}}),
        ("/v1/suggest", {"texts": ["a"], "x" * 15000: 1}),
        ("/v1/suggest", {"texts": ["a"], "search": "x" * 15000}),
        ("/v1/suggest", {"texts": ["a"], "k": ["x" * 15000]}),
        ("/v1/explain", {"text": "a", "tag": "x" * 15000}),
        ("/v1/explain", {"text": "a", "tag": "1264", "'" * 15000: 1}),
        ("/v1/tree", {"node": int("9" * 4000)}),
        ("/v1/tags?limit=" + "9" * 5000, None),
    ],
)
def test_no_error_quotes_at_length(service: Running, path: str, body: Any) -> None:
    answer = service.call(path, body)
    assert answer.status in (404, 422)
    assert 20 < len(answer.error) <= 320
    assert answer.error.endswith(".")


@pytest.mark.parametrize("name", ["tree", "node"])
def test_true_is_no_number_of_a_node(service: Running, name: str) -> None:
    answer = service.call("/v1/tree", {name: True})
    assert (answer.status, answer.error) == (422, f"{name} must be a whole number; got true or false.")


@pytest.mark.parametrize(
    "keys", [[""], [" "], ["first", ""], [" first"], ["first\n"], ["two words"], ["schlüssel"]]
)
def test_an_empty_or_unusable_key_is_refused_at_the_start(tmp_path: Path, keys: list[str]) -> None:
    make_vector_model().save(tmp_path / "model.ll")
    options = [part for key in keys for part in ("--api-key", key)]
    said = complaint("serve", tmp_path / "model.ll", "--port", 0, *options)
    assert said.startswith("longleaf: Each API key must be printable ASCII without spaces; got ")
    assert "first" not in said


@pytest.mark.parametrize("value", ["", " ", "\t\n"])
def test_a_variable_that_holds_no_key_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    make_vector_model().save(tmp_path / "model.ll")
    monkeypatch.setenv("LONGLEAF_API_KEY", value)
    said = complaint("serve", tmp_path / "model.ll", "--port", 0)
    assert said.startswith("longleaf: LONGLEAF_API_KEY must hold an API key; got nothing")


@pytest.mark.parametrize(
    ("host", "key", "warned"),
    [("127.0.0.2", None, False), ("0.0.0.0", None, True), ("::", None, True), ("0.0.0.0", "sesame", False)],
)
def test_a_port_that_others_reach_without_a_key_is_warned_of(
    tmp_path: Path, host: str, key: str | None, warned: bool
) -> None:
    if host == "::" and not has_ipv6():
        pytest.skip("no IPv6 here")
    make_vector_model().save(tmp_path / "model.ll")
    options = [] if key is None else ["--api-key", key]
    with serving(tmp_path / "model.ll", "--host", host, *options) as running:
        warnings = [line for line in running.log if line["level"] == "warning"]
        assert [bool("no API key is set" in line["event"]) for line in warnings] == [True] * warned


def has_ipv6() -> bool:
    try:
        with socket.socket(socket.AF_INET6) as one:
            one.bind(("::", 0))
    except OSError:
        return False
    return True


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
