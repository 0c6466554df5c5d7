"""A wrong separator between tags is noticed; commas and bars that are part of a tag are not taken for one."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest

from longleaf.io._separators import SeparatorWatch
from longleaf.io.tables import read_table
from tests.helpers.commands import run, run_well
from tests.helpers.data import LAWS

SURNAMES = ["Smith", "Doe", "Meyer", "James", "Rossi", "Nowak"]
NAMES = ["Jane", "John", "Anna", "Piotr", "Olga", "James"]


def better(strings: list[str], used: str | None) -> str | None:
    watch = SeparatorWatch()
    for string in strings:
        watch.see(string)
    found = watch.better_than(used)
    return None if found is None else found.text


def tag_lists(n_rows: int, *, is_sorted: bool = False) -> list[list[str]]:
    """Give rows of one to five of 300 tags, a few of them frequent."""
    random = np.random.RandomState(1)
    rows = [[f"t{n}" for n in dict.fromkeys(random.zipf(1.3, 5) % 300)] for _ in range(n_rows)]
    rows = [row[: random.randint(1, 6)] for row in rows]
    return [sorted(row) for row in rows] if is_sorted else rows


@pytest.mark.parametrize("joint", [";", "|", ",", "; ", " | ", ", "])
@pytest.mark.parametrize("used", [None, ";", ",", "/"])
@pytest.mark.parametrize("is_sorted", [False, True])
@pytest.mark.parametrize("n_rows", [40, 3000])
def test_a_separator_that_is_not_used_is_found(
    joint: str, used: str | None, is_sorted: bool, n_rows: int
) -> None:
    strings = [joint.join(row) for row in tag_lists(n_rows, is_sorted=is_sorted)]
    assert better(strings, used) == (None if used == joint.strip() else joint.strip())


def test_the_tags_of_real_laws_show_their_separator() -> None:
    tags = [record.tags for record in read_table(LAWS)]
    for joint in ("|", ", "):
        assert better([joint.join(row) for row in tags], ";") == joint.strip()
        assert better([joint.join(sorted(row)) for row in tags], ";") == joint.strip()
    assert better([";".join(row) for row in tags], ";") is None


@pytest.mark.parametrize("used", [None, ";"])
def test_commas_and_bars_within_tags_are_no_separators(used: str | None) -> None:
    random = np.random.RandomState(1)
    people = [f"{random.choice(SURNAMES)}, {random.choice(NAMES)}" for _ in range(500)]
    places = [f"{city}, {random.choice(['France', 'Spain'])}" for city in map(str, range(500))]
    subjects = [
        f"{random.choice(['Art', 'History', 'Law'])}{random.choice(['', ', Modern'])}" for _ in places
    ]
    paths = [f"Sport|{random.choice(['Ball', 'Water'])}|{n % 50}" for n in range(500)]
    for strings in (people, places, subjects, paths):
        assert better(strings, used) is None
    assert better([f"{a}; {b}" for a, b in zip(people, reversed(people), strict=True)], ";") is None


def test_the_separator_of_tags_with_commas_is_found() -> None:
    tags = ["Anemia, Sickle Cell", "Geneva, Canton of", "Law", "Art, Modern", "Doe, Jane"]
    random = np.random.RandomState(1)
    strings = ["; ".join(random.permutation(tags)[: random.randint(1, 4)]) for _ in range(100)]
    assert better(strings, None) == better(strings, ",") == ";"
    assert better(strings, ";") is None


def test_few_rows_and_lists_say_nothing() -> None:
    assert better(["a;b", "b;a", "a;b"], None) is None
    watch = SeparatorWatch()
    for _ in range(100):
        watch.see(["a;b"])
        watch.see(["b;a"])
    assert watch.better_than(None) is None
    assert SeparatorWatch().better_than(None) is None


def write(path: Path, joint: str, n_rows: int = 200) -> Path:
    rows = [{"text": f"law {n} {' '.join(tags)}", "tags": tags} for n, tags in enumerate(tag_lists(n_rows))]
    if path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(row | {"tags": joint.join(row["tags"])}) + "\n" for row in rows))
        return path
    with path.open("w", newline="") as file:
        csv.writer(file).writerows(
            [["text", "tags"], *([row["text"], joint.join(row["tags"])] for row in rows)]
        )
    return path


@pytest.mark.parametrize(("name", "joint"), [("laws.csv", "|"), ("laws.csv", ", "), ("laws.jsonl", "; ")])
def test_training_names_the_separator_that_was_missed_once(tmp_path: Path, name: str, joint: str) -> None:
    table = write(tmp_path / name, joint)
    said = run("train", table, "-o", tmp_path / "m.ll", "--trees", 1).stderr
    (sentence,) = [line for line in said.splitlines() if "--separator" in line]
    used = "they are split at ';'" if name == "laws.csv" else "they are not split"
    assert sentence.startswith(f"{table}: ")
    assert f"% of the rows have {joint.strip()!r} in their tags, and {used}; if it" in sentence
    option = f"--separator '{joint.strip()}'"
    assert sentence.endswith(f"use {option}.")
    again = run("train", table, "-o", tmp_path / "n.ll", "--trees", 1, "--separator", joint.strip()).stderr
    assert "--separator" not in again
    assert run("split", table, "-o", tmp_path / "parts").stderr.count("--separator") == 1, (
        "read twice, said once"
    )


def test_a_model_asked_of_a_table_with_other_separators_says_so(tmp_path: Path) -> None:
    run_well("train", write(tmp_path / "a.csv", ";"), "-o", tmp_path / "m.ll", "--trees", 1)
    assert "--separator '|'" in run("evaluate", tmp_path / "m.ll", write(tmp_path / "b.csv", "|")).stderr
    assert "--separator" not in run("evaluate", tmp_path / "m.ll", tmp_path / "a.csv").stderr
