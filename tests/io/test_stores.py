"""A damaged store is refused in one sentence, or trains: it never ends the process."""

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import settings

import longleaf as ll
from longleaf.datasets import make_hierarchy
from tests.helpers.commands import run_well
from tests.helpers.data import ROOT

pytestmark = pytest.mark.native

MUTANTS = 5 * settings.default.max_examples
SENTENCES = ("ModelError: ", "DataError: ", "ValueError: ")
FOREIGN = ("incompatible function arguments", "Traceback", "numpy", "broadcast", "could not convert")


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """One store of features, and one of texts."""
    folder = tmp_path_factory.mktemp("stores")
    X, Y = make_hierarchy(60, 50, 12, features_per_row=8.0, random_state=1)
    ll.save_store(folder / "features", [(X, Y)])
    lines = [f'{{"text": "law {i} about olive oil {i % 7}", "tags": ["t{i % 9}"]}}\n' for i in range(60)]
    (folder / "laws.jsonl").write_text("".join(lines))
    fields = ("--text", "text", "--tags", "tags")
    run_well("convert", folder / "laws.jsonl", *fields, "-o", folder / "texts")
    return [folder / "features", folder / "texts"]


def try_mutants(stores: list[Path], scratch: Path, first: int, last: int) -> list[tuple[str, str, str]]:
    """Give number, damage and end of each mutant; a crash is an end, too, and the next process goes on."""
    ends: list[tuple[str, str, str]] = []
    while first < last:
        scratch.mkdir(exist_ok=True)
        command = [sys.executable, "-m", "tests.helpers.stores", *stores, scratch]
        done = subprocess.run(
            [*map(str, command), str(first), str(last)], cwd=ROOT, capture_output=True, text=True, timeout=600
        )
        for line in done.stdout.splitlines():
            number, what, end = [*line.split("\t"), f"the process ended with {done.returncode}", ""][:3]
            ends.append((number, what, end or f"the process ended with {done.returncode}"))
        assert ends, done.stderr
        first = int(ends[-1][0]) + 1
        for left in scratch.iterdir():
            subprocess.run(["rm", "-r", left], check=True)
    return ends


def is_fine(end: str) -> bool:
    """Tell an end that somebody can understand."""
    return end == "trained" or (end.startswith(SENTENCES) and not any(word in end for word in FOREIGN))


def test_no_damage_crashes_or_speaks_of_our_insides(stores: list[Path], tmp_path: Path) -> None:
    ends = try_mutants(stores, tmp_path / "scratch", 0, MUTANTS)
    assert len(ends) == MUTANTS
    assert [end for end in ends if not is_fine(end[2])] == []
    refused = sum(end != "trained" for _, _, end in ends)
    assert 0.5 * MUTANTS < refused < MUTANTS
