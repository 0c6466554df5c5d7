"""Working arrays of training in files, for when memory is short."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from longleaf import _core

SMALLEST_SCRATCH = 1 << 20
"""Working arrays of fewer bytes stay in memory."""


@contextmanager
def scratch_files(folder: Path | None) -> Iterator[None]:
    """Keep the large working arrays of training in unnamed files of a folder, if there is one."""
    if folder is None:
        yield
        return
    _core.set_scratch(str(folder), SMALLEST_SCRATCH)
    try:
        yield
    finally:
        _core.set_scratch("", 0)
