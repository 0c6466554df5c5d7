"""What every saved result says of the machine and the commit, and how it is saved."""

import json
import os
import platform
import subprocess
from pathlib import Path
from typing import Any

from benchmarks import data


def save(path: Path, result: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_suffix(".tmp")
    unfinished.write_text(json.dumps(result, indent=1) + "\n")
    unfinished.replace(path)


def commit() -> str:
    """Return the commit of the checkout, with a plus when files differ from it."""

    def git(*words: str) -> str:
        return subprocess.run(["git", *words], cwd=data.ROOT, capture_output=True, text=True).stdout.strip()

    return git("rev-parse", "HEAD") + ("+" if git("status", "--porcelain", "--untracked-files=no") else "")


def machine() -> dict[str, Any]:
    models = [
        line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")
    ]
    return {
        "cpu": models[0].partition(":")[2].strip() if models else platform.processor(),
        "cores": os.cpu_count(),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "system": platform.platform(),
    }
