"""Splits: every tag stays in training, nothing is lost, and the same seed gives the same."""

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

import longleaf as ll
from longleaf.io.tables import read_table
from longleaf.split import DEV, TEST, TRAIN, split_rows
from tests.helpers.commands import complaint, fill, run, run_well

LABELS = st.lists(st.lists(st.integers(0, 9), max_size=4, unique=True), min_size=1, max_size=60)


def indicator(rows: list[list[int]]) -> sp.csr_array:
    Y = np.zeros((len(rows), 10))
    for row, labels in enumerate(rows):
        Y[row, labels] = 1
    return sp.csr_array(Y)


@given(
    rows=LABELS, keep=st.integers(0, 3), dev=st.floats(0, 0.4), test=st.floats(0, 0.4), seed=st.integers(0, 9)
)
def test_every_label_keeps_its_rows_in_training_and_no_more_is_held_out_than_asked(
    rows: list[list[int]], keep: int, dev: float, test: float, seed: int
) -> None:
    Y = indicator(rows)
    parts = split_rows(Y, dev, test, keep=keep, random_state=seed)
    counts = Y.sum(axis=0)
    in_training = Y[np.flatnonzero(parts == TRAIN)].sum(axis=0)
    assert np.all(in_training >= np.minimum(counts, keep))
    assert (parts == DEV).sum() <= round(dev * len(rows)) + 1
    assert (parts == TEST).sum() <= round(test * len(rows)) + 1
    assert (parts != TRAIN).sum() <= round(dev * len(rows)) + round(test * len(rows))
    np.testing.assert_array_equal(parts, split_rows(Y, dev, test, keep=keep, random_state=seed))


@given(rows=LABELS, seed=st.integers(0, 9))
def test_fewer_rows_are_held_out_only_if_no_other_row_could_be(rows: list[list[int]], seed: int) -> None:
    Y = indicator(rows)
    parts = split_rows(Y, 0.3, 0.3, random_state=seed)
    left = Y[np.flatnonzero(parts == TRAIN)].sum(axis=0)
    if (parts != TRAIN).sum() < 2 * round(0.3 * len(rows)):
        for row in np.flatnonzero(parts == TRAIN):
            assert any(left[label] <= 1 for label in rows[row])


def test_frequent_labels_give_exactly_the_shares_that_were_asked_for() -> None:
    parts = split_rows([[row % 2] for row in range(200)], 0.1, 0.2)
    assert np.bincount(parts).tolist() == [140, 20, 40]
    assert not np.array_equal(parts, split_rows([[row % 2] for row in range(200)], 0.1, 0.2, random_state=2))


def test_shares_that_leave_no_training_are_refused() -> None:
    with pytest.raises(ValueError, match="sum to less than 1"):
        split_rows([[0], [1]], 0.5, 0.5)
    with pytest.raises(ValueError, match="dev"):
        split_rows([[0], [1]], -0.1)


def laws(path: Path) -> list[dict[str, object]]:
    """Write 60 rows, one of which cannot be read; the tag t59 has one row, the others many."""
    rows: list[dict[str, object]] = [
        {"id": f"r{n}", "title": f"law {n}", "body": "é", "on": ["t59"] if n == 59 else [f"t{n % 3}"]}
        for n in range(60)
    ]
    path.write_text("\n".join([*map(json.dumps, rows), "broken"]))
    return rows


def test_a_table_is_split_without_losing_a_row_and_its_parts_train_a_model(tmp_path: Path) -> None:
    rows = laws(tmp_path / "laws.jsonl")
    fields = ("--text", "title", "--text", "body", "--tags", "on")
    result = run("split", tmp_path / "laws.jsonl", *fields, "-o", tmp_path / "parts", "--test", 0.2)
    assert "1 of 61 rows could not be read" in result.stderr
    found = {
        part: [json.loads(line) for line in (tmp_path / "parts" / f"{part}.jsonl").read_text().splitlines()]
        for part in ("train", "dev", "test")
    }
    assert [len(part) for part in found.values()] == [42, 6, 12]
    together = sorted((row for part in found.values() for row in part), key=lambda row: int(row["id"][1:]))
    assert together == rows, "each row as it was, every field under its name"
    assert "r59" in {row["id"] for row in found["train"]}
    assert f"{tmp_path / 'parts' / 'train.jsonl'}: 42 rows, 4 tags" in result.stdout
    run_well("train", tmp_path / "parts" / "train.jsonl", *fields, "-o", tmp_path / "m.ll", "--trees", 1)
    run_well("evaluate", tmp_path / "m.ll", tmp_path / "parts" / "test.jsonl")
    assert "lacked" not in run("evaluate", tmp_path / "m.ll", tmp_path / "laws.jsonl").stderr


def catalogue(n_rows: int = 60) -> list[dict[str, Any]]:
    """Give rows with fields besides the usual ones, cells that need quotes, and tags in one string."""
    return [
        {"no": f"{n}", "title": f'a "title", {n}', "text": f"two\nlines; é {n}", "tags": f"t{n % 3}|t{n % 5}"}
        for n in range(n_rows)
    ]


def write_table(path: Path, rows: list[dict[str, Any]], start: str = "", delimiter: str = ",") -> Path:
    if path.suffix == ".parquet":
        pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
        pq.write_table(pa.Table.from_pylist([row | {"tags": row["tags"].split("|")} for row in rows]), path)
        return path
    with path.open("w", newline="") as file:
        file.write(start)
        writer = csv.DictWriter(file, list(rows[0]), delimiter=delimiter)
        writer.writeheader()
        writer.writerows(rows)
    return path


def rows_of(path: Path) -> list[dict[str, Any]]:
    return [fields for _, fields in read_table(path, separator="|").rows()]


@pytest.mark.parametrize(
    ("name", "start", "delimiter"),
    [
        ("a.csv", "", ","),
        ("a.csv", "", ";"),
        ("a.csv", "sep=#\n", "#"),
        ("a.tsv", "", "\t"),
        ("a.parquet", "", ""),
        ("nameless", "", ","),
    ],
)
def test_parts_have_the_format_and_every_column_of_the_table(
    tmp_path: Path, name: str, start: str, delimiter: str
) -> None:
    table = write_table(tmp_path / name, catalogue(), start, delimiter)
    options = () if table.suffix == ".parquet" else ("--separator", "|")
    fields = ("--text", "title", "--text", "text")
    run_well("split", table, *options, *fields, "-o", tmp_path / "parts")
    parts = [tmp_path / "parts" / f"{part}{table.suffix or '.csv'}" for part in ("train", "dev", "test")]
    found = [row for part in parts for row in rows_of(part)]
    assert sorted(found, key=lambda row: int(row["no"])) == rows_of(table)
    assert [len(rows_of(part)) for part in parts] == [48, 6, 6]
    if table.suffix == ".parquet":
        pq = pytest.importorskip("pyarrow.parquet")
        assert pq.read_schema(parts[0]) == pq.read_schema(table)
    elif start:
        assert parts[0].read_text().startswith("sep=#\n")
    else:
        assert parts[0].read_text().startswith(delimiter.join(catalogue()[0]) + "\n")


def test_a_workbook_is_split_into_csv_with_every_column(tmp_path: Path) -> None:
    openpyxl = pytest.importorskip("openpyxl")
    rows = [row | {"title": f"Öl {row['title']}"} for row in catalogue()]
    book = openpyxl.Workbook()
    for cells in (list(rows[0]), *(list(row.values()) for row in rows)):
        book.active.append(cells)
    book.save(tmp_path / "a.xlsx")
    options = ("--separator", "|", "--id", "no")
    run_well("split", tmp_path / "a.xlsx", *options, "-o", tmp_path / "parts")
    parts = [tmp_path / "parts" / f"{part}.csv" for part in ("train", "dev", "test")]
    found = [row for part in parts for row in rows_of(part)]
    assert sorted(found, key=lambda row: int(row["no"])) == rows_of(tmp_path / "a.xlsx")
    assert all(part.read_bytes().startswith(b"\xef\xbb\xbf") for part in parts), "so that Excel reads umlauts"
    assert "'nix'" in complaint("split", tmp_path / "a.xlsx", "--id", "nix", "-o", tmp_path / "more")


def test_a_model_of_the_parts_reads_the_table_as_it_read_the_parts(tmp_path: Path) -> None:
    table = write_table(tmp_path / "a.csv", catalogue())
    run_well("split", table, "--separator", "|", "-o", tmp_path / "parts")
    train = ("train", tmp_path / "parts" / "train.csv", "--separator", "|", "--trees", 1)
    said = run(*train, "-o", tmp_path / "m.ll").stderr
    assert "is read from" not in said
    model = ll.load(tmp_path / "m.ll")
    assert model.fields_ == {"text": ["title", "text"], "tags": "tags", "id": "id", "separator": "|"}
    assert "title" in model.vectorizer_.get_feature_names_out()
    assert "lacked" not in run("evaluate", tmp_path / "m.ll", table).stderr


def test_an_xmlc_file_is_split_too(tmp_path: Path) -> None:
    folder = fill(tmp_path)
    run_well("split", folder / "train.txt", "-o", folder / "parts")
    X, Y = ll.load_xmlc(folder / "train.txt")
    loaded = [ll.load_xmlc(folder / "parts" / f"{part}.txt") for part in ("train", "dev", "test")]
    assert [part[0].shape[0] for part in loaded] == [96, 12, 12]
    assert all(part[1].shape[1] == Y.shape[1] for part in loaded)
    assert sum(part[0].sum() for part in loaded) == pytest.approx(X.sum(), rel=1e-5)
    assert set(loaded[0][1].indices) == set(Y.indices)


def test_split_refuses_standard_input_existing_files_and_foolish_shares(tmp_path: Path) -> None:
    laws(tmp_path / "laws.jsonl")
    command = ("split", tmp_path / "laws.jsonl", "--text", "title", "--tags", "on", "-o", tmp_path)
    run_well(*command)
    before = (tmp_path / "test.jsonl").read_bytes()
    assert "--force" in complaint(*command)
    run_well(*command, "--force")
    assert (tmp_path / "test.jsonl").read_bytes() == before
    assert "standard input" in complaint("split", "-", "-o", tmp_path)
    assert "--dev" in complaint(*command, "--dev", 0.6, "--test", 0.4)
    assert "line 61" in complaint(*command, "--force", "--strict")
    assert (tmp_path / "test.jsonl").read_bytes() == before
    assert "nowhere.jsonl" in complaint("split", "nowhere.jsonl", "-o", tmp_path / "new")
    assert not (tmp_path / "new").exists()
    assert "laws.jsonl" in complaint(*command[:-1], tmp_path / "laws.jsonl")  # a file is no folder
