"""Where the shared data lies, or a skip that says why."""

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
