"""Where data lies: the laws inside the package, and the shared data or a skip that says why."""

from __future__ import annotations

import json
import lzma
import os
from pathlib import Path

import pytest

from longleaf import datasets

ROOT = Path(__file__).resolve().parents[2]
DATA = Path(os.environ.get("LONGLEAF_DATA", ROOT.parent / "shared" / "data"))


LAWS, LAW_NAMES = (
    Path(datasets.__file__).parent / name for name in ("eurlex_test.jsonl.xz", "tag_names.json.xz")
)
"""1,000 laws with their tags, and the names of the tags."""


def shared(name: str) -> Path:
    """Give the path of a file of the shared data; skip the test without it."""
    path = DATA / name
    if not path.exists():
        pytest.skip(f"{path} is absent; set LONGLEAF_DATA to the folder of the shared data.")
    return path


def read_texts(path: Path, limit: int) -> list[str]:
    """Give the first titles and texts of a JSONL file, joined."""
    with lzma.open(path, "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line, _ in zip(lines, range(limit), strict=False)]
    return [f"{row['title']} {row['text']}" for row in rows]
