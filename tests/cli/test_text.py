"""Texts and tags from the command line: tables in, tags and the words behind them out."""

import csv
import gzip
import io
import json
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest

import longleaf as ll
from longleaf.metrics import evaluate
from longleaf.propensity import inverse_propensity_from_counts
from tests.helpers.commands import complaint, fill, run, run_well
from tests.helpers.tables import FIELDS, NAMES, fill_texts, records_of, table, write_jsonl


def as_csv(rows: list[dict[str, Any]], separator: str = ";", delimiter: str = ",") -> str:
    file = io.StringIO()
    writer = csv.DictWriter(file, list(rows[0]), delimiter=delimiter)
    writer.writeheader()
    writer.writerows(row | {"subjects": separator.join(row["subjects"])} for row in rows)
    return file.getvalue()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return fill_texts(tmp_path_factory.mktemp("text"))


@pytest.fixture(scope="module")
def features(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return fill(tmp_path_factory.mktemp("features"))


# ------------------------------------------------------------ train


def test_train_gives_the_tagger_that_python_gives(folder: Path) -> None:
    rows = table(80)
    estimator = ll.PLT(n_trees=2, max_leaf=2, random_state=1)
    want = ll.Tagger(estimator).fit(records_of(rows), [row["subjects"] for row in rows])
    got = ll.load(folder / "tagger.ll")
    assert isinstance(got, ll.Tagger)
    assert got.suggest(["olive bread", "herring"]) == want.suggest(["olive bread", "herring"])


def test_a_tagger_remembers_fields_data_and_settings(folder: Path) -> None:
    tagger = ll.load(folder / "named.ll")
    assert isinstance(tagger, ll.Tagger)
    assert tagger.fields_ == {"text": ["title", "body"], "tags": "subjects", "id": "id", "separator": None}
    assert tagger.names == NAMES
    assert tagger.origin_["data"] == str(folder / "train.jsonl")
    assert tagger.origin_["rows"] == 80
    assert tagger.origin_["settings"]["max_leaf"] == 2
    facts = json.loads(run_well("info", folder / "named.ll", "--json"))
    assert (facts["model"], facts["estimator"], facts["labels"], facts["names"]) == ("tagger", "plt", 4, 4)
    assert facts["fields"]["text"] == ["title", "body"]
    assert "subjects" in run_well("info", folder / "named.ll")


def test_every_format_and_standard_input_give_one_digest(folder: Path, tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = table(80)
    (tmp_path / "t.csv").write_text(as_csv(rows, "|"))
    (tmp_path / "t.tsv.gz").write_bytes(gzip.compress(as_csv(rows, "|", "\t").encode()))
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "t.parquet")
    content = (folder / "train.jsonl").read_bytes()
    (tmp_path / "nameless").write_bytes(content)
    digests = {ll.load(folder / "tagger.ll").origin_["data_digest"]}
    for name in ("t.csv", "t.tsv.gz", "t.parquet", "nameless", "-"):
        source = name if name == "-" else tmp_path / name
        out = tmp_path / f"{name}.ll"
        run_well("train", source, *FIELDS, "--separator", "|", "-o", out, "--trees", 1, stdin=content)
        digests.add(ll.load(out).origin_["data_digest"])
    assert len(digests) == 1
    run_well("train", folder / "test.jsonl", *FIELDS, "-o", tmp_path / "other.ll", "--trees", 1)
    assert ll.load(tmp_path / "other.ll").origin_["data_digest"] not in digests


def test_a_table_is_known_by_its_name_and_its_usual_fields(tmp_path: Path) -> None:
    rows = [{"title": row["title"], "text": row["body"], "tags": row["subjects"]} for row in table(20)]
    run_well("train", write_jsonl(tmp_path / "t.jsonl", rows), "-o", tmp_path / "m.ll", "--trees", 1)
    tagger = ll.load(tmp_path / "m.ll")
    assert isinstance(tagger, ll.Tagger)
    assert tagger.fields_["text"] == ["title", "text"]


def test_faulty_rows_are_counted_and_the_first_named_or_refused(tmp_path: Path) -> None:
    rows = [json.dumps(row) for row in table(20)]
    rows[3] = '{"title": "cut sho'
    rows[5] = json.dumps({"title": "", "body": None, "subjects": ["oil"]})
    rows[7] = json.dumps({"title": "no subject", "body": "at all", "subjects": []})
    rows[9] = rows[8]
    path = tmp_path / "t.jsonl"
    path.write_text("\n".join(rows))
    result = run("train", path, *FIELDS, "-o", tmp_path / "m.ll", "--trees", 1)
    assert result.status == 0
    assert "20 rows, 17 used" in result.stderr
    for words in ("line 4", "line 6", "line 8", "line 10", "1 of 20 rows had no tags (skipped)", "'r8'"):
        assert words in result.stderr
    faults = ll.load(tmp_path / "m.ll").origin_["faults"]
    assert faults == {"broken": 1, "no text": 1, "no tags": 1, "duplicate id": 1}
    assert f"{path}, line 4" in complaint("train", path, *FIELDS, "-o", tmp_path / "s.ll", "--strict")
    assert not (tmp_path / "s.ll").exists()


def test_rows_that_a_stray_quote_swallowed_are_reported_or_refused(tmp_path: Path) -> None:
    rows = [f"{n},{'' if n not in (6, 201) else chr(34)}olive oil,x" for n in range(1, 301)]
    path = tmp_path / "t.csv"
    path.write_text("\n".join(["id,text,tags", *rows]))
    result = run("train", path, "-o", tmp_path / "m.ll", "--trees", 1)
    assert result.status == 0
    assert "1 of 105 rows could not be read (skipped)" in result.stderr
    assert f"{path}, line 7: must close its quotes" in result.stderr
    assert f"{path}, line 7" in complaint("train", path, "-o", tmp_path / "s.ll", "--strict")
    path.write_text("\n".join(["id,text,tags", *rows[:200]]))
    result = run("train", path, "-o", tmp_path / "s.ll")
    assert result.status == 2
    assert f"{path}, line 7: a cell starts with a quote that is never closed" in result.stderr


def test_a_table_whose_name_does_not_say_so_is_told_what_it_needs(tmp_path: Path) -> None:
    (tmp_path / "t.txt").write_text("title,tags\nolive oil,x\nolive bread,y\n")
    command = ("train", tmp_path / "t.txt", "-o", tmp_path / "m.ll", "--trees", 1)
    said = complaint(*command)
    assert "name its fields with --text and --tags, or give it a name that ends in .csv" in said
    run_well(*command, "--text", "title", "--min-df", 1)


@pytest.mark.parametrize("fields", [(), ("--text", "title")])
def test_a_workbook_that_cannot_be_read_is_refused(tmp_path: Path, fields: tuple[str, ...]) -> None:
    (tmp_path / "t.xls").write_bytes(b"\xd0\xcf\x11\xe0\xa1\xb1")
    said = complaint("train", tmp_path / "t.xls", "-o", tmp_path / "m.ll", *fields)
    assert "t.xls is an Excel workbook of the old format (.xls)" in said
    (tmp_path / "t.xlsx").write_bytes(b"PK\x03\x04\x14\x00")
    said = complaint("train", tmp_path / "t.xlsx", "-o", tmp_path / "m.ll", *fields)
    assert "t.xlsx cannot be read as an Excel workbook" in said


def test_br_is_trained_on_texts_too(folder: Path, tmp_path: Path) -> None:
    run_well("train", folder / "train.jsonl", *FIELDS, "--model", "br", "-o", tmp_path / "br.ll")
    assert isinstance(ll.load(tmp_path / "br.ll").estimator_, ll.BR)


def test_a_text_field_that_is_not_read_is_named(tmp_path: Path) -> None:
    rows = [{"text": f"law {n}", "tags": [f"t{n % 3}"]} for n in range(30)]
    titled = [rows[0], *(row | {"title": "on oil"} for row in rows[1:])]
    for name, some in (("plain", rows), ("titled", titled)):
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in some))
    train = ("train", "--trees", 1, "-o", tmp_path / "m.ll", "--force")
    note = f"{tmp_path / 'titled.jsonl'}: the text is read from text and not from title; choose the field"
    assert "not from" not in run(*train, tmp_path / "plain.jsonl").stderr
    asking = (("evaluate",), ("predict", "-o", tmp_path / "answers.jsonl", "--force"))
    for command in asking:
        assert note in run(*command, tmp_path / "m.ll", tmp_path / "titled.jsonl").stderr
        assert "not from" not in run(*command, tmp_path / "m.ll", tmp_path / "plain.jsonl").stderr
    assert note in run(*train, tmp_path / "titled.jsonl").stderr, "the first row has no title"
    both = ("--text", "title", "--text", "text")
    assert "not from" not in run(*train, *both, tmp_path / "titled.jsonl").stderr
    for command in asking:
        said = run(*command, tmp_path / "m.ll", tmp_path / "plain.jsonl").stderr
        assert "30 of 30 rows lacked a text field and were read without it" in said
        assert "must have the field 'title'; got none" in said


# ------------------------------------------------------------ predict


def predictions(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def test_predict_writes_what_suggest_gives_with_the_rows_ids(folder: Path) -> None:
    rows = predictions(run_well("predict", folder / "tagger.ll", folder / "test.jsonl", "-k", 3, "--tail", 1))
    want = ll.load(folder / "tagger.ll").suggest(records_of(table(30)), 3, tail=1.0)
    assert [row["id"] for row in rows] == [f"r{number}" for number in range(30)]
    assert [row["row"] for row in rows] == list(range(30))
    for row, suggestions in zip(rows, want, strict=True):
        assert [one["tag"] for one in row["labels"]] == [one.tag for one in suggestions]
        for found, one in zip(row["labels"], suggestions, strict=True):
            assert set(found) == {"tag", "score", "probability"}
            assert found["score"] == pytest.approx(one.score, rel=1e-5)
            assert found["probability"] == pytest.approx(one.probability, rel=1e-4)


def test_predict_gives_names_where_there_are_names(folder: Path) -> None:
    remembered = run_well("predict", folder / "named.ll", folder / "test.jsonl")
    named = run_well("predict", folder / "tagger.ll", folder / "test.jsonl", "--names", folder / "names.tsv")
    assert remembered == named
    assert all(one["name"] == NAMES[one["tag"]] for row in predictions(named) for one in row["labels"])


def test_rows_that_cannot_be_read_are_left_out_and_the_others_keep_their_numbers(folder: Path) -> None:
    lines = ['{"title": "olive oil"}', "not JSON", '{"title": "cod", "id": 7}']
    result = run("predict", folder / "tagger.ll", "-", "--text", "title", stdin="\n".join(lines).encode())
    rows = predictions(result.stdout)
    assert [(row["row"], row["id"]) for row in rows] == [(0, None), (2, "7")]
    assert [row["labels"][0]["tag"] for row in rows] == ["oil", "fish"]
    assert "1 of 3 rows could not be read (skipped)" in result.stderr


def test_batches_do_not_change_predictions(folder: Path, tmp_path: Path) -> None:
    whole = run_well("predict", folder / "tagger.ll", folder / "test.jsonl")
    with mock.patch("longleaf.cli._tables.BATCH_TEXTS", 7):
        run_well("predict", folder / "tagger.ll", folder / "test.jsonl", "-o", tmp_path / "out.jsonl")
    assert (tmp_path / "out.jsonl").read_text() == whole


def test_gains_are_given_by_tag(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "gain.tsv").write_text("oil\t0\nlaw\t5\n")
    command = ("predict", folder / "tagger.ll", folder / "test.jsonl", "-k", 4, "--gain")
    found = [one for row in predictions(run_well(*command, tmp_path / "gain.tsv")) for one in row["labels"]]
    assert {one["tag"] for one in found} == {"wheat", "fish", "law"}
    for one in found:
        worth = 5 if one["tag"] == "law" else 1
        assert one["score"] == pytest.approx(worth * one["probability"], rel=1e-4)
    for line in ("oil\tmuch\n", "oil\t-1\n", "moon\t1\n"):
        (tmp_path / "bad.tsv").write_text(line)
        said = complaint(*command, tmp_path / "bad.tsv")
        assert "bad.tsv" in said
        assert line.split("\t")[0] in said


# ------------------------------------------------------------ evaluate


def test_evaluate_counts_tags_that_training_never_saw(folder: Path) -> None:
    tagger = ll.load(folder / "tagger.ll")
    found = json.loads(run_well("evaluate", folder / "tagger.ll", folder / "test.jsonl", "--json"))
    place = {tag: number for number, tag in enumerate([*tagger.classes_, "brand new"])}
    rows = table(30, new_tag=True)
    truth = [[place[tag] for tag in row["subjects"]] for row in rows]
    suggested = tagger.suggest(records_of(rows), 4)
    top = np.array([[place[one.tag] for one in row] for row in suggested])
    counts = np.append(tagger.estimator_.label_counts_, 0)
    worth = inverse_propensity_from_counts(counts, 80)
    want = evaluate(truth, top, inverse_propensity=worth, k=(1, 3, 5))
    assert {name: found[name] for name in want} == pytest.approx(want)
    assert found["recall@5"] < 100  # ten rows have a tag that cannot be hit
    assert found["rows"] == 30
    assert found["frequency"][-1]["max_count"] == 0
    unseen = {"labels": 1, "assignments": 10, "recall@1": 0.0, "recall@3": 0.0, "recall@5": 0.0}
    assert found["unseen"] == unseen
    assert found["frequency"][-1]["labels"] == 1


def test_evaluate_takes_other_fields_than_those_of_training(folder: Path, tmp_path: Path) -> None:
    renamed = [
        {"heading": row["title"], "abstract": row["body"], "topics": "/".join(row["subjects"])}
        for row in table(30, new_tag=True)
    ]
    path = write_jsonl(tmp_path / "renamed.jsonl", renamed)
    options = ("--text", "heading", "--text", "abstract", "--tags", "topics", "--separator", "/", "--json")
    got = json.loads(run_well("evaluate", folder / "tagger.ll", path, *options))
    want = json.loads(run_well("evaluate", folder / "tagger.ll", folder / "test.jsonl", "--json"))
    got.pop("ms_per_row"), want.pop("ms_per_row")
    assert got == want
    assert "title" in complaint("evaluate", folder / "tagger.ll", path)


# ------------------------------------------------------------ the wrong data for a model


@pytest.mark.parametrize("command", ["predict", "evaluate"])
def test_texts_and_features_are_not_mixed_up(folder: Path, features: Path, command: str) -> None:
    said = complaint(command, folder / "tagger.ll", features / "test.txt")
    assert "trained on texts; got an XMLC file" in said
    said = complaint(command, features / "model.ll", folder / "test.jsonl")
    assert "must be an XMLC file" in said
    assert "--text" in complaint(command, features / "model.ll", features / "test.txt", "--text", "title")


def test_fields_are_not_for_xmlc_files(features: Path, tmp_path: Path) -> None:
    said = complaint("train", features / "train.txt", "--text", "title", "-o", tmp_path / "m.ll")
    assert "--text needs a table" in said
