"""Where the shared data lies, or a skip that says why."""

from __future__ import annotations

import json
import lzma
import os
from pathlib import Path

import pytest

DATA = Path(os.environ.get("LONGLEAF_DATA", Path(__file__).resolve().parents[2] / "shared" / "data"))


def shared(name: str) -> Path:
    """Give the path of a file of the shared data; skip the test without it."""
    path = DATA / name
    if not path.exists():
        pytest.skip(f"{path} is absent; set LONGLEAF_DATA to the folder of the shared data.")
    return path


def read_texts(name: str, limit: int) -> list[str]:
    """Give the first titles and texts of a JSONL file, joined."""
    with lzma.open(shared(name), "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line, _ in zip(lines, range(limit), strict=False)]
    return [f"{row['title']} {row['text']}" for row in rows]
