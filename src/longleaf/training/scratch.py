"""Working arrays of training that lie in files, where memory is short."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from longleaf import _core

SMALLEST_SCRATCH = 1 << 20
"""Working arrays of fewer bytes stay in memory."""


@contextmanager
def scratch_files(folder: Path | None) -> Iterator[None]:
    """Let the large working arrays of training lie in unnamed files of a folder, if there is one."""
    if folder is None:
        yield
        return
    _core.set_scratch(str(folder), SMALLEST_SCRATCH)
    try:
        yield
    finally:
        _core.set_scratch("", 0)
