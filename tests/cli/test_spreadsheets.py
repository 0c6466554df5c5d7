"""From spreadsheet to spreadsheet: tables of predictions that people open in Excel."""

import codecs
import csv
import gzip
import io
import json
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import longleaf as ll
from longleaf.cli._suggestion_table import without_clash
from longleaf.io.cells import FORMULA, NUMBER, cell, neutral
from tests.helpers.commands import complaint, fill, run, run_well
from tests.helpers.tables import fill_texts, write_jsonl

TEXT = ("--text", "title", "--text", "body")
ROWS = [
    ["PPN", "title", "body", "price", "remark"],
    ["007", "Öl; olive oil", 'pressed, they say, "cold"', "-1.5", "=1+1"],
    ["008", "cod", "herring\nof the sea", "", "@home"],
    ["009", "wheat", "flour and bread", "3,20", "- old"],
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return fill_texts(tmp_path_factory.mktemp("sheets"))


@pytest.fixture(scope="module")
def features(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return fill(tmp_path_factory.mktemp("features"))


def write_csv(path: Path, rows: list[list[str]], delimiter: str = ";") -> Path:
    with path.open("w", newline="", encoding="utf-8-sig") as file:
        csv.writer(file, delimiter=delimiter).writerows(rows)
    return path


def cells(content: bytes, delimiter: str = ";") -> list[list[str]]:
    """Read a table as Excel does: by its byte order mark."""
    assert content.startswith(codecs.BOM_UTF8)
    rows = list(csv.reader(io.StringIO(content.decode("utf-8-sig"), newline=""), delimiter=delimiter))
    assert len({len(row) for row in rows}) == 1
    return rows


def lines(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


# ------------------------------------------------------------ a row per record


def test_the_columns_of_the_input_come_first_and_unchanged_then_those_of_the_suggestions(
    folder: Path, tmp_path: Path
) -> None:
    source = write_csv(tmp_path / "in.csv", ROWS)
    command = ("predict", folder / "named.ll", source, "-k", 2, "--id", "PPN")
    result = run(*command, "-o", tmp_path / "out.csv")
    assert (result.status, result.stdout) == (0, "")
    assert result.stderr == f"{tmp_path / 'out.csv'}: 3 rows written\n"
    content = (tmp_path / "out.csv").read_bytes()
    assert "Öl; olive oil".encode() in content
    found = cells(content)
    new = ["tag_1", "name_1", "probability_1", "tag_2", "name_2", "probability_2"]
    assert found[0] == ROWS[0] + new
    assert [row[:4] for row in found] == [row[:4] for row in ROWS]
    assert [row[4] for row in found[1:]] == ["'=1+1", "'@home", "'- old"]
    wanted = lines(run_well(*command))
    assert [row["id"] for row in wanted] == ["007", "008", "009"]
    for row, want in zip(found[1:], wanted, strict=True):
        for place, one in enumerate(want["labels"]):
            tag, name, probability = row[5 + 3 * place : 8 + 3 * place]
            assert (tag, name) == (one["tag"], one["name"])
            assert float(probability.replace(",", ".")) == one["probability"]
            assert "." not in probability, "where semicolons separate, numbers have decimal commas"


@pytest.mark.parametrize(("name", "delimiter"), [("in.csv", ","), ("in.tsv", "\t")])
def test_a_comma_stays_a_comma_and_numbers_have_points_then(
    folder: Path, tmp_path: Path, name: str, delimiter: str
) -> None:
    source = write_csv(tmp_path / name, ROWS, delimiter)
    run_well("predict", folder / "tagger.ll", source, "-k", 1, "-o", tmp_path / "out.csv.gz")
    found = cells(gzip.decompress((tmp_path / "out.csv.gz").read_bytes()), ",")
    assert found[0][5:] == ["tag_1", "probability_1"]
    assert [row[:4] for row in found] == [row[:4] for row in ROWS]
    assert 0 < float(found[1][6]) <= 1
    run_well("predict", folder / "tagger.ll", source, "-k", 1, "-o", tmp_path / "out.tsv")
    assert cells((tmp_path / "out.tsv").read_bytes(), "\t") == found
    run_well("predict", folder / "tagger.ll", source, "-o", tmp_path / "semicolon.csv", "--delimiter", ";")
    assert cells((tmp_path / "semicolon.csv").read_bytes())[0][:5] == ROWS[0]


def test_standard_output_has_lines_of_json_unless_a_table_is_wished(folder: Path, tmp_path: Path) -> None:
    source = write_csv(tmp_path / "in.csv", ROWS)
    result = run("predict", folder / "tagger.ll", source)
    assert len(lines(result.stdout)) == 3
    assert result.stderr == "Standard output: 3 rows written\n"
    printed = run_well("predict", folder / "tagger.ll", source, "--format", "csv")
    assert len(cells(printed.encode())) == 4
    assert (
        len(cells(run_well("predict", folder / "tagger.ll", source, "--format", "tsv").encode(), "\t")) == 4
    )


def test_scores_have_columns_where_they_differ_from_probabilities(folder: Path, tmp_path: Path) -> None:
    source = write_csv(tmp_path / "in.csv", ROWS)
    command = ("predict", folder / "tagger.ll", source, "-k", 1, "--format", "csv", "--show-words")
    assert cells(run_well(*command, "--tail", 1).encode())[0][5:] == [
        "tag_1",
        "score_1",
        "probability_1",
        "words_1",
    ]
    plain = cells(run_well(*command, "--tail", 0).encode())
    assert plain[0][5:] == ["tag_1", "probability_1", "words_1"]
    assert plain[3][7].startswith(("wheat ", "flour ", "bread "))


def test_a_record_with_fewer_suggestions_than_others_has_empty_cells(folder: Path, tmp_path: Path) -> None:
    source = write_csv(tmp_path / "in.csv", ROWS)
    command = ("predict", folder / "tagger.ll", source, "-k", 9, "--min-probability", 0.3)
    found = cells(run_well(*command, "--format", "csv").encode())
    assert found[0][-1] == "probability_4", "there are no more than four tags"
    for row, want in zip(found[1:], lines(run_well(*command)), strict=True):
        given = len(want["labels"])
        assert given < 4
        assert row[5:] == [cell for cell in row[5 : 5 + 2 * given] if cell] + [""] * 2 * (4 - given)


def test_a_table_of_predictions_can_be_read_again(folder: Path, tmp_path: Path) -> None:
    source = write_csv(tmp_path / "in.csv", ROWS)
    command = ("predict", folder / "tagger.ll", "-k", 1, *TEXT)
    run_well(*command, source, "-o", tmp_path / "once.csv")
    once = cells((tmp_path / "once.csv").read_bytes())
    run_well(*command, tmp_path / "once.csv", "-o", tmp_path / "twice.csv")
    twice = cells((tmp_path / "twice.csv").read_bytes())
    assert twice[0] == [*once[0], "suggested_tag_1", "suggested_probability_1"]
    assert [row[:7] for row in twice] == once
    assert [row[7] for row in twice[1:]] == [row[5] for row in once[1:]]
    assert without_clash(["a", "b"], ["suggested_b", "a"]) == ["suggested2_a", "suggested2_b"]


def test_columns_without_a_name_keep_their_cells(folder: Path, tmp_path: Path) -> None:
    source = write_csv(tmp_path / "in.csv", [["title", "", "body", ""], ["oil", "a", "olive", "b"]])
    found = cells(run_well("predict", folder / "tagger.ll", source, "-k", 1, "--format", "csv").encode())
    assert [name.strip() for name in found[0][:4]] == ["title", "", "body", ""]
    assert found[1][:4] == ["oil", "a", "olive", "b"]


def test_labels_without_texts_have_row_numbers(features: Path, tmp_path: Path) -> None:
    both = features / "model.ll", features / "test.txt"
    run_well("predict", *both, "-k", 2, "-o", tmp_path / "out.csv")
    found = cells((tmp_path / "out.csv").read_bytes(), ",")
    assert found[0] == ["row", "label_1", "probability_1", "label_2", "probability_2"]
    wanted = lines(run_well("predict", *both, "-k", 2))
    assert found[1:] == [
        [str(row["row"]), *(str(one[name]) for one in row["labels"] for name in ("label", "probability"))]
        for row in wanted
    ]
    (tmp_path / "none.txt").write_text("0 12 9\n")
    assert cells(run_well("predict", both[0], tmp_path / "none.txt", "--format", "csv").encode(), ",")


# ------------------------------------------------------------ a row per suggestion


def test_each_suggestion_may_have_a_row_with_the_id_under_its_own_name(folder: Path, tmp_path: Path) -> None:
    rows = [*ROWS, ["010", "", "", "", ""]]
    source = write_csv(tmp_path / "in.csv", rows)
    command = ("predict", folder / "named.ll", source, "-k", 2, "--id", "PPN")
    result = run(*command, "-o", tmp_path / "out.csv", "--rows", "suggestion")
    assert (
        f"{tmp_path / 'out.csv'}: 7 rows written for 4 records, 1 of them without suggestions"
        in result.stderr
    )
    found = cells((tmp_path / "out.csv").read_bytes())
    assert found[0] == ["row", "PPN", "rank", "tag", "name", "score", "probability"]
    wanted = lines(run_well(*command))
    assert [row[:5] for row in found[1:-1]] == [
        [str(row["row"]), row["id"], str(rank), one["tag"], one["name"]]
        for row in wanted
        for rank, one in enumerate(row["labels"], start=1)
    ]
    assert found[-1] == ["3", "010", "", "", "", "", ""], "a record without suggestions is not lost"
    without = run_well("predict", folder / "tagger.ll", source, "--format", "csv", "--rows", "suggestion")
    assert cells(without.encode())[0] == ["row", "rank", "tag", "score", "probability"]


# ------------------------------------------------------------ rows that cannot be used


def test_rows_without_text_stay_and_broken_ones_are_counted(folder: Path, tmp_path: Path) -> None:
    rows = [ROWS[0], ["001", " ", "", "2", "x"], *ROWS[1:], ["one cell too few", "oil", "oil", "1"]]
    source = write_csv(tmp_path / "in.csv", rows)
    result = run("predict", folder / "tagger.ll", source, "-k", 1, "-o", tmp_path / "out.csv")
    assert result.status == 0
    said = result.stderr.splitlines()
    assert "1 of 5 rows could not be read (skipped); the first:" in said
    assert "1 of 5 rows had no text, and get no suggestions (kept); the first:" in said
    assert said[-1] == (
        f"{tmp_path / 'out.csv'}: 4 rows written, 1 of them without suggestions; 1 of 5 rows skipped"
    )
    content = (tmp_path / "out.csv").read_bytes()
    with mock.patch("longleaf.cli._tables.BATCH_TEXTS", 1):  # then a batch has no text at all
        again = run_well("predict", folder / "tagger.ll", source, "-k", 1, "--format", "csv")
    assert again.encode() == content
    found = cells(content)
    assert [row[0] for row in found[1:]] == ["001", "007", "008", "009"]
    assert found[1][5:] == ["", ""]
    assert all(row[5] for row in found[2:])
    result = run("predict", folder / "tagger.ll", source, "-o", tmp_path / "out.jsonl")
    assert [row["row"] for row in lines((tmp_path / "out.jsonl").read_text())] == [1, 2, 3]
    assert result.stderr.endswith("out.jsonl: 3 rows written; 2 of 5 rows skipped\n")


def test_a_table_without_any_text_is_an_error_and_leaves_no_file(folder: Path, tmp_path: Path) -> None:
    source = write_csv(tmp_path / "in.csv", [["title", "body"], ["", ""]])
    said = complaint("predict", folder / "tagger.ll", source, "-o", tmp_path / "out.csv")
    assert "None of the 1 rows could be used" in said
    assert not (tmp_path / "out.csv").exists()


# ------------------------------------------------------------ other inputs


def test_json_fields_become_columns_and_what_comes_too_late_is_named(folder: Path, tmp_path: Path) -> None:
    rows = [
        {"id": 1, "title": "olive oil", "subjects": ["a", "b"], "year": 2001},
        {"id": 2, "title": "cod", "subjects": ["c; d"], "open": True},
        {"id": 3, "title": "wheat", "about": {"ü": 1}, "late": None},
        {"id": 4, "title": "court", "late": "too late", "later": "="},
        {"id": 5, "title": "judge", "late": "again"},
    ]
    source = write_jsonl(tmp_path / "in.jsonl", rows)
    command = (
        "predict",
        folder / "tagger.ll",
        source,
        "--text",
        "title",
        "-k",
        1,
        "-o",
        tmp_path / "out.csv",
    )
    result = run(*command)
    found = cells((tmp_path / "out.csv").read_bytes(), ",")
    columns = ["id", "title", "subjects", "year", "open", "about", "late", "later"]
    assert found[0] == [*columns, "tag_1", "probability_1"]
    assert [row[:8] for row in found[1:4]] == [
        ["1", "olive oil", "a; b", "2001", "", "", "", ""],
        ["2", "cod", '["c; d"]', "", "true", "", "", ""],
        ["3", "wheat", "", "", "", '{"ü": 1}', "", ""],
    ]
    assert "Not written" not in result.stderr
    with mock.patch("longleaf.cli._tables.BATCH_TEXTS", 2):
        result = run(*command, "--force")
    found = cells((tmp_path / "out.csv").read_bytes(), ",")
    assert found[0][:-2] == ["id", "title", "subjects", "year", "open"]
    assert len(found) == 6
    assert result.stderr.splitlines()[-1] == (
        "Not written, as none of the first rows has these fields (and how many later ones do): "
        "late (2), about (1), later (1)."
    )


def test_parquet_and_workbooks_become_csv(folder: Path, tmp_path: Path) -> None:
    openpyxl = pytest.importorskip("openpyxl")
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    book = openpyxl.Workbook()
    for row in ROWS:
        book.active.append([value.replace("=", "") for value in row])
    book.save(tmp_path / "in.xlsx")
    run_well("predict", folder / "tagger.ll", tmp_path / "in.xlsx", "-k", 1, "-o", tmp_path / "out.csv")
    found = cells((tmp_path / "out.csv").read_bytes(), ",")
    assert [row[:4] for row in found] == [row[:4] for row in ROWS]
    table = pa.Table.from_pylist([{"title": "oil", "body": "olive", "on": ["x", "y"], "n": -1.5}])
    pq.write_table(table, tmp_path / "in.parquet")
    run_well("predict", folder / "tagger.ll", tmp_path / "in.parquet", "-k", 1, "-o", tmp_path / "p.csv")
    assert cells((tmp_path / "p.csv").read_bytes(), ",")[1][:4] == ["oil", "olive", "x; y", "-1.5"]


# ------------------------------------------------------------ ids


def test_an_id_that_is_not_there_is_an_error_and_the_model_remembers_its_own(
    folder: Path, tmp_path: Path
) -> None:
    source = write_csv(tmp_path / "in.csv", ROWS)
    said = complaint("predict", folder / "tagger.ll", source, "--id", "ppn")
    assert "must have a column 'ppn'; got PPN, title, body, price, remark." in said
    train = write_jsonl(
        tmp_path / "train.jsonl", [{"PPN": f"p{n}", "title": "olive oil", "tags": ["oil"]} for n in range(9)]
    )
    run_well("train", train, "--id", "PPN", "--trees", 1, "-o", tmp_path / "m.ll")
    model = ll.load(tmp_path / "m.ll")
    assert isinstance(model, ll.Tagger)
    assert model.fields_["id"] == "PPN"
    rows = lines(run_well("predict", tmp_path / "m.ll", source, "-k", 1))
    assert [row["id"] for row in rows] == ["007", "008", "009"]
    without = write_csv(tmp_path / "without.csv", [["title"], ["oil"]])
    assert lines(run_well("predict", tmp_path / "m.ll", without))[0]["id"] is None
    for command in ("evaluate", "compare"):
        models = [tmp_path / "m.ll"] * (2 if command == "compare" else 1)
        assert "'PPM'" in complaint(command, *models, source, "--id", "PPM", "--tags", "remark")
    said = complaint("train", train, "--id", "PPM", "-o", tmp_path / "n.ll", "--strict")
    assert "line 1: must have an id in 'PPM'; it has PPN, title, tags." in said


def test_json_rows_without_the_id_are_reported(folder: Path, tmp_path: Path) -> None:
    rows = [{"PPN": "7", "title": "oil", "body": "x"}, {"title": "cod", "body": "x"}]
    source = write_jsonl(tmp_path / "in.jsonl", rows)
    result = run("predict", folder / "tagger.ll", source, "--id", "PPN")
    assert [row["id"] for row in lines(result.stdout)] == ["7", None]
    assert "1 of 2 rows had no id (kept)" in result.stderr
    assert "line 2" in complaint("predict", folder / "tagger.ll", source, "--id", "PPN", "--strict")


def test_features_have_no_ids(features: Path) -> None:
    said = complaint("predict", features / "model.ll", features / "test.txt", "--id", "PPN")
    assert "--id needs a model that was trained on texts" in said


# ------------------------------------------------------------ names of files, and options


@pytest.mark.parametrize("name", ["out.jsonl", "out.ndjson", "out.json", "out.txt", "out", "out.jsonl.xz"])
def test_other_usual_names_are_lines_of_json(folder: Path, tmp_path: Path, name: str) -> None:
    source = write_csv(tmp_path / "in.csv", ROWS)
    run_well("predict", folder / "tagger.ll", source, "-o", tmp_path / name)
    read = ll.io.streams.read_chunks(tmp_path / name)
    assert b"".join(read).decode() == run_well("predict", folder / "tagger.ll", source)


@pytest.mark.parametrize(
    ("name", "options", "must_say"),
    [
        (
            "out.xlsx",
            (),
            "out.xlsx must end in .jsonl, .csv or .tsv, as other formats are not written; got .xlsx",
        ),
        ("out.xlsx", ("--format", "csv"), "got .xlsx"),
        ("out.parquet.gz", (), "got .parquet"),
        ("out.html", (), "got .html"),
        ("out.csv", ("--format", "jsonl"), "must have the suffix of its format; --format is jsonl"),
        ("out.jsonl", ("--rows", "suggestion"), "--rows needs a table"),
        ("out.tsv", ("--delimiter", ";"), "--delimiter must be ',' or ';' and needs CSV"),
        ("out.csv", ("--delimiter", "|"), "--delimiter must be ',' or ';' and needs CSV; got '|'"),
    ],
)
def test_a_name_that_says_something_else_is_refused(
    folder: Path, tmp_path: Path, name: str, options: tuple[str, ...], must_say: str
) -> None:
    source = write_csv(tmp_path / "in.csv", ROWS)
    assert must_say in complaint("predict", folder / "tagger.ll", source, "-o", tmp_path / name, *options)
    assert [path.name for path in tmp_path.iterdir()] == ["in.csv"]


def test_a_format_decides_where_the_name_says_nothing(folder: Path, tmp_path: Path) -> None:
    source = write_csv(tmp_path / "in.csv", ROWS)
    for name in ("out", "out.txt", "out.2026"):
        run_well("predict", folder / "tagger.ll", source, "-o", tmp_path / name, "--format", "csv")
        assert len(cells((tmp_path / name).read_bytes())) == 4


def test_lines_of_json_have_real_umlauts_and_lose_no_character(folder: Path, tmp_path: Path) -> None:
    rows = [{"id": "Ölmühle", "title": "oil", "body": "x"}, {"id": "\ud800", "title": "cod", "body": "x"}]
    source = write_jsonl(tmp_path / "in.jsonl", rows)
    printed = run_well("predict", folder / "tagger.ll", source)
    assert '"id": "Ölmühle"' in printed
    assert [row["id"] for row in lines(printed)] == ["Ölmühle", "\ud800"]
    found = cells(run_well("predict", folder / "tagger.ll", source, "--format", "csv").encode(), ",")
    assert [row[0] for row in found[1:]] == ["Ölmühle", "?"]


# ------------------------------------------------------------ formulas


@given(st.text())
@example("=HYPERLINK(A1)")
@example("+49 (0)30 1234")
@example("-2+3")
@example("\t=1")
def test_no_text_starts_like_a_formula_unless_it_is_a_number_or_one_sign(text: str) -> None:
    found = neutral(text)
    assert found in (text, "'" + text)
    if found.startswith(FORMULA):
        assert len(found) == 1 or NUMBER.fullmatch(found)
    assert neutral(found) == found, "once is enough"


@pytest.mark.parametrize(
    "number", ["-1.5", "+3", "-1.234,50", "-12 %", "+1e-5", "-", "-,5", "42", "a=b", "1-2"]
)
def test_numbers_and_other_text_stay_as_they_are(number: str) -> None:
    assert cell(number) == number


def test_numbers_that_are_no_text_are_never_quoted() -> None:
    assert [cell(value) for value in (-1.5, -3, float("nan"), None, False)] == ["-1.5", "-3", "", "", "false"]
    assert cell(["=1", "b"]) == "'=1; b"
    assert cell(["a", ["b"]]) == '["a", ["b"]]'
    assert cell(["a ", "b"]) == '["a ", "b"]'
    assert cell([]) == ""
