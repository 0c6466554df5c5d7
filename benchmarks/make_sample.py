"""Make the sample inside the package from the whole of EURLEX57K: `python benchmarks/make_sample.py FOLDER`.

FOLDER holds `train.tfidf.txt.xz`, `dev.tfidf.txt.xz`, their `.jsonl.xz` and `tag_names.json.xz`. Rows lie in
order of year, so they are drawn at random, with a fixed seed: the same files always give the same sample.
Training rows come from train, test rows from dev. Only labels of drawn rows are kept, and features of two
training rows or more; both are numbered anew, in their old order. Nothing is chosen by how well a model does.
"""

from __future__ import annotations

import json
import lzma
import sys
from pathlib import Path
from typing import Any

import numpy as np

import longleaf as ll

SEED = 57
TRAIN_ROWS, TEST_ROWS = 4000, 1000
DECIMALS = 3
TARGET = Path(ll.__file__).parent / "datasets"


def draw(source: Path, part: str, n_rows: int) -> tuple[Any, Any, list[dict[str, Any]]]:
    """Give features, labels and the raw laws of rows drawn at random, in their old order."""
    X, Y = ll.load_xmlc(source / f"{part}.tfidf.txt.xz")
    rows = np.sort(np.random.RandomState(SEED).choice(X.shape[0], n_rows, replace=False))
    with lzma.open(source / f"{part}.jsonl.xz", "rt", encoding="utf-8") as file:
        laws = [json.loads(line) for line in file]
    return X[rows], Y[rows], [laws[row] for row in rows]


def tags_by_label(Y: Any, laws: list[dict[str, Any]]) -> dict[int, str]:
    """Find which tag each label stands for: tags are numbered in sorted order, labels rise within a row."""
    found: dict[int, str] = {}
    for row, law in enumerate(laws):
        labels = Y.indices[Y.indptr[row] : Y.indptr[row + 1]]
        for label, tag in zip(labels.tolist(), sorted(law["tags"]), strict=True):
            if found.setdefault(label, tag) != tag:
                raise ValueError(f"label {label} must be one tag; got {found[label]} and {tag}.")
    return found


def main() -> None:
    source = Path(sys.argv[1])
    X_train, Y_train, laws_train = draw(source, "train", TRAIN_ROWS)
    X_test, Y_test, laws_test = draw(source, "dev", TEST_ROWS)
    for X in (X_train, X_test):
        X.data = X.data.round(DECIMALS)
        X.eliminate_zeros()
    features = np.flatnonzero(np.bincount(X_train.indices, minlength=X_train.shape[1]) >= 2)
    labels = np.union1d(Y_train.indices, Y_test.indices)
    tags = tags_by_label(Y_train, laws_train) | tags_by_label(Y_test, laws_test)
    with lzma.open(source / "tag_names.json.xz", "rt", encoding="utf-8") as file:
        names = json.load(file)
    ll.save_xmlc(TARGET / "eurlex_train.txt.xz", X_train[:, features], Y_train[:, labels])
    ll.save_xmlc(TARGET / "eurlex_test.txt.xz", X_test[:, features], Y_test[:, labels])
    write_json("tag_names.json.xz", [names[tags[label]] for label in labels.tolist()])
    write_json("titles_test.json.xz", [law["title"] for law in laws_test])


def write_json(name: str, strings: list[str]) -> None:
    text = json.dumps(strings, ensure_ascii=False, indent=0)
    (TARGET / name).write_bytes(lzma.compress(text.encode("utf-8"), preset=9))


if __name__ == "__main__":
    main()
