"""Records with fields: the service takes them wherever it takes a text, and answers as the library does."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import longleaf as ll
from tests.helpers.commands import run_well
from tests.helpers.serving import WORDS, Running, make_tagger, serving, wait_for
from tests.server.records import RECORDS, make_record_tagger

pytest.importorskip("uvicorn", reason="needs the extra serve")

from longleaf.server.engine import Engine
from longleaf.server.feedback import FeedbackFile
from longleaf.server.requests import SuggestRequest, read_text
from longleaf.server.settings import Limits
from longleaf.server.tree_view import TreeView

RECORD = RECORDS[0]
EXPLAINED = 200


@pytest.fixture(scope="module")
def tagger() -> ll.Tagger:
    return make_record_tagger(keep_records=True)


@pytest.fixture(scope="module")
def service(tagger: ll.Tagger, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder = tmp_path_factory.mktemp("records")
    tagger.save(folder / "tagger.ll")
    options = ("--feedback", folder / "feedback.jsonl", "--max-k", 10, "--max-explained", EXPLAINED)
    with serving(folder / "tagger.ll", *options) as running:
        yield running


@pytest.fixture(scope="module")
def plain_service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder = tmp_path_factory.mktemp("plain")
    make_tagger().save(folder / "tagger.ll")
    with serving(folder / "tagger.ll", "--feedback", folder / "feedback.jsonl") as running:
        yield running


@pytest.fixture
def engine(tagger: ll.Tagger, tmp_path: Path) -> Engine:
    tagger.save(tmp_path / "tagger.ll")
    return Engine(str(tmp_path / "tagger.ll"))


@pytest.mark.parametrize(
    "options",
    [{}, {"tail": 1.0, "k": 2}, {"k": "auto"}, {"k": "auto", "max_k": 1}, {"k": 2, "explain": True}],
    ids=str,
)
def test_suggestions_for_records_are_those_of_the_tagger(
    service: Running, tagger: ll.Tagger, options: dict[str, Any]
) -> None:
    wanted = tagger.suggest(RECORDS, **options)
    answered = service.suggest(RECORDS, **options)
    assert [[one["tag"] for one in row] for row in answered] == [[one.tag for one in row] for row in wanted]
    for ours, theirs in zip(wanted, answered, strict=True):
        for one, other in zip(ours, theirs, strict=True):
            assert other["probability"] == pytest.approx(one.probability, rel=1e-6)
            assert other.get("words", []) == [list(pair) for pair in one.words]


def test_auto_returns_nothing_where_no_tag_is_likely(service: Running) -> None:
    answered = service.suggest([RECORD, {"title": "zzz", "text": "zzz"}], k="auto")
    assert [one["tag"] for one in answered[0]] == ["1264"]
    assert answered[1] == []
    wait_for(lambda: any(line.get("k") == "auto" for line in service.log))  # a line follows its answer


def test_auto_needs_no_max_k_below_the_default_limit(service: Running) -> None:
    refused = service.call("/v1/suggest", {"texts": [RECORD], "k": 3, "max_k": 2})
    assert (refused.status, refused.error) == (422, "max_k needs k='auto'; got k=3.")
    refused = service.call("/v1/suggest", {"texts": [RECORD], "k": "auto", "max_k": 11})
    assert (refused.status, refused.error) == (422, "max_k must be at least 1 and at most 10; got 11.")
    assert service.call("/v1/suggest", {"texts": [RECORD], "k": "auto"}).status == 200


def test_the_examples_of_records_in_the_description_work(service: Running) -> None:
    for path in ("suggest", "explain", "tree", "feedback"):
        operation = service.call("/openapi.json").json["paths"][f"/v1/{path}"]["post"]
        examples = operation["requestBody"]["content"]["application/json"]["examples"].values()
        bodies = [one["value"] for one in examples if '"title"' in json.dumps(one)]
        assert len(bodies) == 1
        assert service.call(f"/v1/{path}", bodies[0]).status == 200


def test_a_plain_text_is_the_body(service: Running) -> None:
    text = "olive oil and cod"
    answers = service.suggest([text, {"text": text}, {"title": "", "text": text}, {"title": text}])
    assert answers[0] == answers[1] == answers[2]
    assert answers[0] != answers[3], "the title weighs more"


def test_fields_that_the_model_does_not_read_are_ignored(service: Running) -> None:
    more = {"id": 7, "year": [2004, None], "tags": ["1264"], **RECORD}
    assert service.suggest([more]) == service.suggest([RECORD])


def test_a_list_of_strings_is_read_as_one_text(service: Running) -> None:
    one, other = service.suggest([{"title": ["olive", "oil"]}, {"title": "olive oil", "text": None}])
    assert one == other


def test_the_model_lists_its_fields(service: Running, plain_service: Running) -> None:
    assert service.call("/v1/model").json["fields"] == ["title", "text"]
    assert plain_service.call("/v1/model").json["fields"] == []


def test_a_model_of_plain_texts_reads_the_fields_of_a_record_as_one_text(plain_service: Running) -> None:
    record = {"id": "cod", "title": "virgin olive oil", "subjects": ["saffron", "crocus"], "note": None}
    text = "virgin olive oil saffron crocus"
    assert plain_service.suggest([record]) == plain_service.suggest([text])
    found = plain_service.call("/v1/explain", {"text": record, "tag": "1264"}).json
    assert found == plain_service.call("/v1/explain", {"text": text, "tag": "1264"}).json


BAD: dict[str, tuple[Any, str]] = {
    "an empty object": ({}, "must have one of the fields title, text; got none"),
    "other fields": (
        {"body": "a", "author": "b"},
        "must have one of the fields title, text; got author, body",
    ),
    "a number in a field": (
        {"title": 2004, "text": "a"},
        "['title'] must be a string, a list of strings or null; got a whole number",
    ),
    "an object in a field": (
        {"text": {"en": "a"}},
        "['text'] must be a string, a list of strings or null; got an object",
    ),
    "true in a field": (
        {"text": True},
        "['text'] must be a string, a list of strings or null; got true or false",
    ),
    "null in a list": ({"text": ["a", None]}, "['text'] must be a string; got null"),
    "a list": (["a"], " must be a string or an object of fields; got a list"),
    "a number": (7, " must be a string or an object of fields; got a whole number"),
}


@pytest.mark.parametrize("path", ["suggest", "explain", "tree", "feedback"])
@pytest.mark.parametrize("case", BAD)
def test_a_record_that_cannot_be_read_gets_one_clear_sentence(service: Running, case: str, path: str) -> None:
    record, said = BAD[case]
    body: dict[str, Any] = {"text": record} | {
        "suggest": {},
        "explain": {"tag": "1264"},
        "tree": {"node": 0},
        "feedback": {"accepted": ["1264"]},
    }[path]
    name = "text"
    if path == "suggest":
        body, name = {"texts": [RECORD, record]}, "texts[1]"
    answer = service.call(f"/v1/{path}", body)
    assert answer.status == 422
    assert answer.error.removeprefix("Each item of ").startswith(name)
    assert said in answer.error
    assert answer.error.endswith(".")


def test_a_record_for_a_model_of_plain_texts_must_have_a_field_of_text(plain_service: Running) -> None:
    for record, found in (({}, "none"), ({"id": "a", "lang": "en"}, "id, lang")):
        answer = plain_service.call("/v1/suggest", {"texts": [record]})
        assert answer.status == 422
        assert answer.error == f"texts[0] must have at least one field of text; got {found}."
    answer = plain_service.call("/v1/suggest", {"texts": [{"year": 2004}]})
    assert answer.error == (
        "texts[0]['year'] must be a string, a list of strings or null; got a whole number."
    )


@pytest.mark.parametrize("path", ["suggest", "explain"])
def test_the_limit_of_explained_texts_counts_all_fields(service: Running, path: str) -> None:
    half = "a" * (EXPLAINED // 2)

    def ask(record: dict[str, Any]) -> Any:
        wish = {"texts": [record], "explain": True} if path == "suggest" else {"text": record, "tag": "1264"}
        return service.call(f"/v1/{path}", wish)

    assert ask({"title": half, "text": half}).status == 200
    for record in ({"title": half, "text": half + "a"}, {"title": [half, half], "text": ""}):
        answer = ask(record)
        limit = f"Texts to explain must have at most {EXPLAINED} characters in one request; got 201."
        assert (answer.status, answer.error) == (422, limit)


def test_an_explanation_of_a_record_points_into_each_field(service: Running, tagger: ll.Tagger) -> None:
    record = {"title": "Virgin OLIVE oil, 𝕏", "text": "the grove, olive and cod"}
    found = service.call("/v1/explain", {"text": record, "tag": "olive oil"}).json
    wanted = tagger.explain(record, "1264")
    assert found["words"] == [list(pair) for pair in wanted.contributions]
    assert found["probability"] == pytest.approx(wanted.probability)
    assert [one["id"] for one in found["records"]] == [one.id for one in tagger.similar(record, "1264")]
    assert list(found["spans"]) == ["title", "text"]
    values = {
        name: {record[name][begin:end].lower(): value for begin, end, value in spans}
        for name, spans in found["spans"].items()
    }
    assert values["title"].keys() <= {"virgin", "olive", "oil"}
    assert values["text"].keys() <= {"the", "grove", "olive", "and", "cod"}
    assert min(values["title"]["olive"], values["text"]["grove"]) > 0 > values["text"]["cod"]
    total = sum(sum(one.values()) for one in values.values())
    assert total == pytest.approx(sum(value for _, value in wanted.contributions))


def test_what_a_word_adds_is_divided_among_the_fields_by_their_weights(service: Running) -> None:
    same = {"title": "olive oil press", "text": "olive oil press"}
    spans = service.call("/v1/explain", {"text": same, "tag": "1264"}).json["spans"]
    title, text = (np.array(spans[name]) for name in ("title", "text"))
    np.testing.assert_array_equal(title[:, :2], text[:, :2])
    np.testing.assert_allclose(title[:, 2], 2 * text[:, 2], rtol=1e-5)


def test_spans_are_those_of_the_text_if_that_is_a_string(service: Running) -> None:
    text = "the grove and the press"
    spans = service.call("/v1/explain", {"text": text, "tag": "1264"}).json["spans"]
    by_field = service.call("/v1/explain", {"text": {"text": text}, "tag": "1264"}).json["spans"]
    assert by_field["title"] == []
    np.testing.assert_allclose(spans, by_field["text"], rtol=1e-5)


def test_an_explanation_says_what_the_name_of_the_tag_added(service: Running, tagger: ll.Tagger) -> None:
    record = {"title": "olive oil", "text": "the catch of cod"}
    match = tagger.explain(record, "1264").match
    assert match is not None, "the tagger knows names"
    found = service.call("/v1/explain", {"text": record, "tag": "1264"}).json["match"]
    assert found == {"name": "olive oil", "field": "title", "value": pytest.approx(match.value)}
    assert service.call("/v1/explain", {"text": record, "tag": "2002"}).json["match"] is None


def test_the_tree_reads_all_fields_of_a_record(engine: Engine) -> None:
    def chances(text: Any) -> dict[int, float]:
        children = TreeView(engine, 0, 0, text).to_json()["children"]
        return {child["node"]: child.get("probability") for child in children}

    whole = chances({"title": "saffron", "text": "olive oil"})
    assert whole != chances({"title": "", "text": "olive oil"})
    assert whole != chances({"title": "saffron", "text": ""})
    assert set(chances({"title": " ", "text": "\n"}).values()) == {None}, "a blank record is no text"


def test_the_tree_of_the_service_takes_records(service: Running) -> None:
    view = service.call("/v1/tree", {"node": 0, "text": RECORD}).json
    assert view["best"][0]["tag"] == "1264"
    assert view["best"][0]["probability"] == pytest.approx(service.suggest([RECORD])[0][0]["probability"])


def test_feedback_for_records_is_rows_that_train_the_next_model(service: Running, tmp_path: Path) -> None:
    given = [
        (RECORD, {"title": RECORD["title"], "text": RECORD["text"]}),
        ({"text": ["cod", "herring"]}, {"title": "", "text": "cod herring"}),
        ("wheat bread", {"title": "", "text": "wheat bread"}),
        ({"title": "saffron", "lang": "en", "year": 1}, {"title": "saffron", "text": "", "lang": "en"}),
    ]
    for (text, _), tag in zip(given, ("1264", "2437", "2002", "rare"), strict=True):
        answer = service.call("/v1/feedback", {"text": text, "accepted": [tag], "rejected": ["1085"]})
        assert (answer.status, answer.json) == (200, {"accepted": 1, "rejected": 1})
    path = service.log_path.parent / "feedback.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()][-len(given) :]
    facts = {"tags", "rejected", "model", "time"}
    assert [{name: one[name] for name in one if name not in facts} for one in lines] == [
        stored for _, stored in given
    ]
    run_well("train", path, "-o", tmp_path / "next.ll")
    again = ll.load(tmp_path / "next.ll")
    assert list(again.vectorizer_.field_weights_) == ["title", "text"]
    assert list(again.classes_) == ["1264", "2002", "2437", "rare"]


def test_feedback_for_a_model_of_plain_texts_stays_one_text(plain_service: Running, tmp_path: Path) -> None:
    for record in ({"title": "virgin", "body": "oil"}, {"lang": "en", "body": "cod"}):
        assert plain_service.call("/v1/feedback", {"text": record, "accepted": ["1264"]}).status == 200
    path = plain_service.log_path.parent / "feedback.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert [(one["text"], one.get("lang")) for one in lines] == [("virgin oil", None), ("cod", "en")]
    run_well("train", path, "-o", tmp_path / "next.ll")


@pytest.mark.parametrize("record", [{"title": " ", "text": "\n"}, {"title": None}, {"text": []}])
def test_feedback_for_a_blank_record_is_refused(service: Running, record: dict[str, Any]) -> None:
    answer = service.call("/v1/feedback", {"text": record, "accepted": ["1264"]})
    assert answer.status == 422
    assert answer.error == "text and at least one accepted or rejected tag must be given."


def test_feedback_keeps_fields_whose_names_it_uses_itself(tmp_path: Path) -> None:
    records = [{"model": words, "tags": "", "time": words} for words in WORDS.values()]
    vectorizer = ll.TextVectorizer(fields=["model", "tags", "time"])
    tagger = ll.Tagger(ll.PLT(max_leaf=2), vectorizer).fit(records * 3, [[tag] for tag in WORDS] * 3)
    tagger.save(tmp_path / "tagger.ll")
    engine, file = Engine(str(tmp_path / "tagger.ll")), FeedbackFile(str(tmp_path / "feedback.jsonl"))
    record = {"model": "olive", "tags": "oil", "time": "press"}
    file.add({"text": record, "accepted": ["1264"]}, engine)
    line = json.loads((tmp_path / "feedback.jsonl").read_text())
    assert {name: line[name] for name in record} == record
    assert (line["feedback_tags"], line["rejected"], line["feedback_model"]) == (["1264"], [], engine.version)


def test_a_record_keeps_its_language_beside_the_fields_that_are_read(engine: Engine) -> None:
    record = {"text": ["a", "b"], "lang": "de", "year": 2004}
    assert read_text(record, "text", engine) == {"lang": "de", "title": "", "text": "a b"}
    parsed = SuggestRequest.parse({"texts": [record, "c"]}, engine, Limits())
    assert parsed.texts == [{"lang": "de", "title": "", "text": "a b"}, "c"]
