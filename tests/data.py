"""Where the shared data lie: beside the checkout, or where LONGLEAF_DATA says."""

from __future__ import annotations

import json
import lzma
import os
from pathlib import Path

import pytest

DATA = Path(os.environ.get("LONGLEAF_DATA", Path(__file__).resolve().parents[2] / "shared" / "data"))


def data_file(name: str) -> Path:
    path = DATA / name
    if not path.exists():
        pytest.skip(f"needs {name} in {DATA}")
    return path


def read_texts(name: str, limit: int) -> list[str]:
    """The first `limit` titles and texts of a JSONL file."""
    with lzma.open(data_file(name), "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line, _ in zip(lines, range(limit), strict=False)]
    return [f"{row['title']} {row['text']}" for row in rows]
