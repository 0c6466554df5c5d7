"""What other processes have used, by which tests judge how far they are: clocks depend on what else runs."""

from __future__ import annotations

import os
import time
from pathlib import Path

TICKS = os.sysconf("SC_CLK_TCK")
SECONDS = 60
"""Patience with a busy machine."""


def cpu_seconds(process: int) -> float:
    """Return the processor time that a running process has used."""
    fields = Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def wait_until_used(process: int, seconds: float) -> float:
    """Wait until a process has used so much more processor time; return what it has used in all."""
    begin, deadline = cpu_seconds(process), time.monotonic() + SECONDS
    while (used := cpu_seconds(process)) < begin + seconds:
        assert time.monotonic() < deadline, "it does nothing"
        time.sleep(0.01)
    return used
