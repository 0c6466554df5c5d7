"""The service answers as the library does, and says clearly what it does not take."""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import longleaf as ll
from tests.helpers.commands import run_well
from tests.helpers.serving import NAMES, SECONDS, Running, make_tagger, make_vector_model, serving

pytest.importorskip("uvicorn", reason="needs the extra serve")

TEXTS = ["virgin olive oil", "the catch of cod and herring", "saffron", ""]


@pytest.fixture(scope="module")
def tagger() -> ll.Tagger:
    return make_tagger(keep_records=True)


@pytest.fixture(scope="module")
def service(tagger: ll.Tagger, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder = tmp_path_factory.mktemp("served")
    tagger.save(folder / "tagger.ll")
    with serving(folder / "tagger.ll", "--feedback", folder / "feedback.jsonl", "--max-texts", 20) as running:
        yield running


@pytest.fixture(scope="module")
def vector_service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder = tmp_path_factory.mktemp("vectors")
    make_vector_model().save(folder / "model.ll")
    with serving(folder / "model.ll") as running:
        yield running


OPTIONS: list[dict[str, Any]] = [
    {},
    {"k": 2, "tail": 1.0},
    {"k": 3, "tail": 0.5, "propensity": [0.5, 0.4]},
    {"gain": {"rare": 50.0, "1264": 0.0}},
    {"only": ["2437", "rare"], "tail": 1.0},
    {"never": ["1264"]},
    {"groups": {"1264": "food", "2437": "food", "2002": "food"}},
    {"threshold": 0.2},
    {"tail": 1.0, "min_probability": 0.3},
    {"search": "beam", "beam": 1},
    {"k": 2, "explain": True},
    {"utility": [{"tag": "*", "b": -0.1}, {"tag": "rare", "a": 9, "b": -1}], "k": 4},
    {
        "utility": [{"tag": "1264", "group": "x"}, {"tag": "2437", "group": "x", "quota": 1}],
        "never": ["2002"],
    },
    {"utility": [{"tag": "rare", "a": 9, "b": -0.5}], "threshold": -0.2, "explain": True},
    {"search": "auto", "beam": 1},
]


def test_a_result_says_whether_it_is_exact_where_the_search_may_end_early(
    service: Running, tagger: ll.Tagger
) -> None:
    early: list[dict[str, Any]] = [
        {"search": "beam", "beam": 1},
        {"max_nodes": 3},
        {"epsilon": 0.5},
        {"max_nodes": 1, "utility": [{"tag": "rare", "a": 9}]},
    ]
    for options in early:
        results = service.call("/v1/suggest", {"texts": TEXTS, "k": 3, **options}).json["results"]
        wanted = tagger.suggest(TEXTS, 3, **options)
        assert [one["exact"] for one in results] == [row.exact for row in wanted]
        gaps = [pytest.approx(row.gap, rel=1e-6) if np.isfinite(row.gap) else None for row in wanted]
        assert [one["gap"] for one in results] == gaps
    late = service.call("/v1/suggest", {"texts": TEXTS, "deadline_ms": 1000}).json["results"]
    assert all(one["exact"] and one["gap"] == 0 for one in late)
    exact: list[dict[str, Any]] = [{}, {"search": "auto"}, {"utility": [{"tag": "rare", "a": 9}]}]
    for options in exact:
        results = service.call("/v1/suggest", {"texts": TEXTS, **options}).json["results"]
        assert all(set(one) == {"suggestions"} for one in results)


@pytest.mark.parametrize("options", OPTIONS, ids=lambda one: "+".join(one) or "nothing")
def test_suggestions_are_those_of_the_tagger(
    service: Running, tagger: ll.Tagger, options: dict[str, Any]
) -> None:
    wanted = tagger.suggest(
        TEXTS, **{name: tuple(v) if name == "propensity" else v for name, v in options.items()}
    )
    answered = service.suggest(TEXTS, **options)
    for ours, theirs in zip(wanted, answered, strict=True):
        assert [one.tag for one in ours] == [one["tag"] for one in theirs]
        assert [one.name for one in ours] == [one["name"] for one in theirs]
        for field in ("score", "probability"):
            np.testing.assert_allclose(
                [getattr(one, field) for one in ours], [one[field] for one in theirs], rtol=1e-6
            )
        for one, other in zip(ours, theirs, strict=True):
            assert [list(pair) for pair in one.words] == other.get("words", [])


def test_each_suggestion_says_how_often_it_occurs_in_training(service: Running, tagger: ll.Tagger) -> None:
    for one in service.suggest(["saffron and olive oil"], k=5)[0]:
        label = list(tagger.classes_).index(one["tag"])
        assert one["count"] == tagger.estimator_.label_counts_[label]
        assert one["bin"] in ("head", "torso", "tail")


def test_tags_may_be_called_by_their_readable_names(service: Running) -> None:
    by_name = service.suggest(TEXTS, gain={"olive oil": 3.0}, never=["sea fish"])
    assert by_name == service.suggest(TEXTS, gain={"1264": 3.0}, never=["2437"])


def test_a_tagger_also_reads_vectors(service: Running, tagger: ll.Tagger) -> None:
    X = tagger.vectorizer_.transform(TEXTS[:2])
    vectors = [{"indices": X[[i]].indices.tolist(), "values": X[[i]].data.tolist()} for i in range(2)]
    answer = service.call("/v1/suggest", {"vectors": vectors, "k": 2})
    assert [result["suggestions"] for result in answer.json["results"]] == service.suggest(TEXTS[:2], k=2)


def test_a_model_of_vectors_answers_vectors_and_says_so_for_texts(vector_service: Running) -> None:
    model = make_vector_model()
    asked = {"vectors": [{"indices": [3, 11], "values": [0.9, 0.1]}], "k": 2, "tail": 1}
    X = np.zeros((1, 12))
    X[0, [3, 11]] = 0.9, 0.1
    top = model.top_k(X, 2, tail=1)
    found = vector_service.call("/v1/suggest", asked).json["results"][0]["suggestions"]
    assert [one["tag"] for one in found] == [str(label) for label in top.labels[0]]
    np.testing.assert_allclose([one["score"] for one in found], top.scores[0], rtol=1e-6)
    for path, body in (("suggest", {"texts": ["a"]}), ("explain", {"text": "a", "tag": "0"})):
        answer = vector_service.call(f"/v1/{path}", body)
        assert answer.status == 422
        assert answer.error == "This model was trained on vectors and cannot read texts; send vectors."
    assert vector_service.call("/v1/model").json["accepts"] == ["vectors"]


def test_tags_are_found_by_parts_of_their_names(service: Running) -> None:
    found = service.call("/v1/tags?q=OIL").json["tags"]
    assert [(one["tag"], one["name"]) for one in found] == [("1264", "olive oil")]
    assert [one["tag"] for one in service.call("/v1/tags?limit=1").json["tags"]] == ["1264"]
    assert service.call("/v1/tags?q=nothing").json["tags"] == []
    assert service.call("/v1/tags?limit=x").status == 422


def test_the_model_describes_itself(service: Running, tagger: ll.Tagger) -> None:
    facts = service.call("/v1/model").json
    assert facts["labels"] == len(tagger.classes_)
    assert facts["trees"] == 2
    assert facts["accepts"] == ["texts", "vectors"]
    assert facts["limits"] == {"texts": 20, "k": 100, "body_bytes": 8_000_000, "explained": 1_000_000}
    assert sum(one["labels"] for one in facts["bins"].values()) == facts["labels"]
    assert facts["bins"]["head"]["max_count"] == max(tagger.estimator_.label_counts_)


def test_an_explanation_points_into_the_text(service: Running, tagger: ll.Tagger) -> None:
    text = "Virgin OLIVE oil, 𝕏 and cod"
    found = service.call("/v1/explain", {"text": text, "tag": "olive oil"}).json
    wanted = tagger.explain(text, "1264")
    assert found["words"] == [list(pair) for pair in wanted.contributions]
    assert found["probability"] == pytest.approx(wanted.probability)
    assert [one["id"] for one in found["records"]] == [one.id for one in tagger.similar(text, "1264")]
    best = max(found["spans"], key=lambda span: span[2])
    assert text[best[0] : best[1]].lower() in ("virgin", "olive", "oil")
    unknown = service.call("/v1/explain", {"text": text, "tag": "x"})
    assert unknown.error == "tag must name tags of the model; 'x' is none."


def test_an_explanation_names_similar_training_records(
    service: Running, tagger: ll.Tagger, tmp_path: Path
) -> None:
    text = "saffron and crocus"
    found = service.call("/v1/explain", {"text": text, "tag": "rare"}).json["records"]
    assert found == [
        {"id": one.id, "title": one.title, "similarity": pytest.approx(one.similarity)}
        for one in tagger.similar(text, "rare")
    ]
    assert len(found) == 2
    assert all("the import of" in one["title"] for one in found)
    described = service.call("/openapi.json").json["paths"]["/v1/explain"]["post"]["responses"]["200"]
    fields = described["content"]["application/json"]["schema"]["properties"]["records"]["items"][
        "properties"
    ]
    assert set(fields) == set(found[0])
    (tmp_path / "names.tsv").write_text("rare\tSaffron\n")
    make_tagger().save(tmp_path / "without.ll")
    tagger.save(tmp_path / "with.ll")
    with serving(tmp_path / "without.ll") as other:
        assert other.call("/v1/explain", {"text": text, "tag": "rare"}).json["records"] == []
    with serving(tmp_path / "with.ll", "--names", tmp_path / "names.tsv") as other:
        assert other.call("/v1/explain", {"text": text, "tag": "Saffron"}).json["records"] == found


def test_feedback_is_kept_as_rows_to_train_on(service: Running, tmp_path: Path) -> None:
    for text, accepted, rejected in (
        ("virgin oil", ["1264"], ["2437"]),
        ("a herring", ["sea fish", "2437"], []),  # a name, and the tag that it stands for
        ("nothing", [], ["France"]),
    ):
        body = {"text": text, "accepted": accepted, "rejected": rejected}
        assert service.call("/v1/feedback", body).status == 200
    path = service.log_path.parent / "feedback.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert [(one["text"], one["tags"], one["rejected"]) for one in lines] == [
        ("virgin oil", ["1264"], ["2437"]),
        ("a herring", ["2437"], []),
        ("nothing", [], ["1085"]),
    ]
    assert path.stat().st_mode & 0o077 == 0, "texts are for the owner's eyes"
    run_well("train", path, "-o", tmp_path / "next.ll")
    assert list(ll.load(tmp_path / "next.ll").classes_) == ["1264", "2437"]


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"text": "a"}, "at least one"),
        ({"text": "a", "accepted": ["x"]}, "accepted must name tags"),
        ({"text": "a", "accepted": ["1264"], "rejected": ["olive oil"]}, "'1264' is both"),
        ({"text": "a", "tags": ["1264"]}, "Fields must be among text, accepted, rejected; got 'tags'"),
        ({"accepted": ["1264"]}, "text must be given"),
    ],
)
def test_feedback_that_says_nothing_is_refused(service: Running, body: dict[str, Any], said: str) -> None:
    answer = service.call("/v1/feedback", body)
    assert answer.status == 422
    assert said in answer.error


def test_without_a_file_there_is_no_feedback(vector_service: Running) -> None:
    assert vector_service.call("/v1/feedback", {"text": "a"}).status == 404
    assert "/v1/feedback" not in vector_service.call("/openapi.json").json["paths"]


def test_the_examples_of_the_description_work(service: Running) -> None:
    paths = service.call("/openapi.json").json["paths"]
    assert len(NAMES) == 4
    for path, operations in paths.items():
        [(method, operation)] = operations.items()
        success = operation["responses"]["200"]["content"].get("application/json")
        content = operation.get("requestBody", {"content": {"application/json": {}}})["content"]
        examples = content["application/json"].get("examples", {"none": {"value": {}}})
        for example in examples.values():
            body = example["value"] if method == "post" else None
            answer = service.call(path, body)
            assert answer.status == 200, (path, example, answer.body)
            if success is not None:
                assert answer.json.keys() == success["example"].keys()
                assert answer.json.keys() == success["schema"].get("properties", answer.json).keys()


def test_the_log_has_json_lines_and_no_texts(service: Running) -> None:
    secret = "xyzzyplugh"
    before = len(service.log)
    service.suggest([secret])
    service.call("/v1/suggest", {"texts": ["a"], "only": [secret]})
    service.call(f"/v1/tags?q={secret}")
    service.call(f"/{secret}")
    deadline = time.monotonic() + SECONDS
    last = service.log
    while (len(last) < before + 4 or last[-1].get("path") != "other") and time.monotonic() < deadline:
        time.sleep(0.05)  # a line follows its answer, also that of a request before these
        last = service.log
    last = last[-4:]
    assert [(one["event"], one["path"], one["status"]) for one in last] == [
        ("request", "/v1/suggest", 200),
        ("request", "/v1/suggest", 422),
        ("request", "/v1/tags", 200),
        ("request", "other", 404),
    ]
    assert last[0]["rows"] == 1
    assert secret not in service.log_path.read_text()


def test_the_page_needs_no_other_host(service: Running) -> None:
    page = service.call("/")
    assert "<html" in page.body.decode()
    assert page.headers["content-security-policy"].startswith("default-src 'self'")
    for name in ("", "style.css", "app.js", "fields.js", "tree.js", "common.js"):
        answer = service.call(f"/{name}")
        assert b"//" not in answer.body.replace(b"// ", b"").replace(b"http://www.w3.org", b"")
        assert service.call(f"/{name}", if_none_match=answer.headers["etag"]).status == 304
