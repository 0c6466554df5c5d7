"""Tables of texts for the tests of the command line."""

import json
from pathlib import Path
from typing import Any

import numpy as np

from tests.helpers.commands import run_well

TOPICS = {
    "oil": "olive oil pressed",
    "wheat": "wheat flour bread",
    "fish": "cod herring sea",
    "law": "court judge",
}
NAMES = {"oil": "Oils and fats", "wheat": "Cereals", "fish": "Fisheries", "law": "Justice"}
FIELDS = ("--text", "title", "--text", "body", "--tags", "subjects")


def table(n_rows: int, new_tag: bool = False) -> list[dict[str, Any]]:
    """Give rows of two topics each; with ``new_tag`` every third row also has one that nobody trained on."""
    random = np.random.RandomState(n_rows)
    rows = []
    for number in range(n_rows):
        first, second = random.choice(list(TOPICS), 2, replace=False)
        tags = [str(first), str(second)] + (["brand new"] if new_tag and number % 3 == 0 else [])
        body = f"{TOPICS[second]} number {number}"
        rows.append({"id": f"r{number}", "title": TOPICS[first], "body": body, "subjects": tags})
    return rows


def write_jsonl(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def records_of(rows: list[dict[str, Any]]) -> list[dict[str, str]]:
    return [{"title": row["title"], "body": row["body"]} for row in rows]


def fill_texts(folder: Path) -> Path:
    """Write train.jsonl, test.jsonl and names.tsv, a tagger and one with names."""
    write_jsonl(folder / "train.jsonl", table(80))
    write_jsonl(folder / "test.jsonl", table(30, new_tag=True))
    (folder / "names.tsv").write_text("".join(f"{tag}\t{name}\n" for tag, name in NAMES.items()))
    start = ("train", folder / "train.jsonl", *FIELDS, "--trees", 2, "--max-leaf", 2)
    run_well(*start, "-o", folder / "tagger.ll")
    run_well(*start, "-o", folder / "named.ll", "--names", folder / "names.tsv")
    return folder
