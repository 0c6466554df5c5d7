"""Coverage by package: ``python -m tests.helpers.coverage build/coverage.json``."""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from pathlib import Path, PurePath


def lines_by_package(report: Path) -> dict[str, tuple[int, int]]:
    """Return how many lines were run, and how many there are, of each package of longleaf and in all."""
    sums: defaultdict[str, list[int]] = defaultdict(lambda: [0, 0])
    for name, file in json.loads(report.read_text())["files"].items():
        inside = PurePath(name).parts[PurePath(name).parts.index("longleaf") + 1 :]
        summary = file["summary"]
        for package in (inside[0] if len(inside) > 1 else "longleaf", "total"):
            sums[package][0] += summary["covered_lines"]
            sums[package][1] += summary["num_statements"]
    return {package: (run, lines) for package, (run, lines) in sorted(sums.items())}


def main() -> None:
    """Print the table."""
    for package, (run, lines) in lines_by_package(Path(sys.argv[1])).items():
        print(f"{package:<14}{run:>6} of {lines:>6} lines {100 * run / max(lines, 1):>6.1f} %")


if __name__ == "__main__":
    main()
