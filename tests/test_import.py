"""Importing longleaf stays light."""

import subprocess
import sys

BASE = "import numpy, scipy.sparse, sklearn.base, sklearn.utils.validation"
TIMED = "import time; t = time.perf_counter(); {}; print(time.perf_counter() - t)"
TIMES = 3
BUSY = 4  # a shared machine may be this much slower than the 0.5 s are meant for


def run(code: str) -> str:
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert result.returncode == 0, result.stderr
    return result.stdout


def test_import_takes_little_more_than_what_it_stands_on() -> None:
    base = min(float(run(TIMED.format(BASE))) for _ in range(TIMES))
    whole = min(float(run(TIMED.format(f"{BASE}; import longleaf"))) for _ in range(TIMES))
    assert whole - base < 0.5 * BUSY


def test_import_leaves_the_command_line_and_the_sample_alone() -> None:
    loaded = run("import sys, longleaf; print(*sys.modules)").split()
    assert not {"typer", "rich", "longleaf.cli", "longleaf.datasets"} & set(loaded)


def test_the_command_line_itself_loads_no_tables_before_it_needs_them() -> None:
    loaded = run("import sys, longleaf.cli; print(*sys.modules)").split()
    assert not {"rich.table", "rich.progress"} & set(loaded)
