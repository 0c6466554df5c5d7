"""The Python on the pages runs as it stands, top to bottom."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers.commands import run_well
from tests.helpers.data import LAW_NAMES, LAWS, ROOT
from tests.helpers.pages import blocks

GUIDE = ROOT / "docs" / "guide"


@pytest.mark.parametrize("page", ["texts", "learning", "resume", "scikit-learn", "large-data", "calibrating"])
def test_the_python_of_a_page_runs_in_an_empty_folder(tmp_path: Path, page: str) -> None:
    code = "".join(
        block.code for block in blocks((GUIDE / f"{page}.md").read_text()) if block.language == "python"
    )
    assert "import longleaf as ll" in code
    result = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=300
    )
    assert result.returncode == 0, result.stderr


def test_the_last_section_on_propensities_runs_and_its_audit_finds_the_constants(tmp_path: Path) -> None:
    page = blocks((GUIDE / "missing-labels.md").read_text())
    (code,) = [block.code for block in page if block.language == "python" and "make_truth" in block.code]
    code += "print(*ll.propensity.fit(audit).constants)"
    result = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=300
    )
    assert result.returncode == 0, result.stderr
    assert abs(float(result.stdout.split()[0]) - 0.55) < 0.1


def test_the_figures_of_as_many_as_are_likely_are_those_of_the_commands(tmp_path: Path) -> None:
    train = LAWS.with_name("eurlex_train.jsonl.xz")
    run_well("train", train, "--names", LAW_NAMES, "-o", tmp_path / "laws.ll")
    said = run_well("evaluate", tmp_path / "laws.ll", LAWS, "-k", "3,5,auto").splitlines()
    page = (GUIDE / "choosing.md").read_text("utf-8").splitlines()
    for metric in ("precision", "recall", "f1", "labels", "none"):
        printed, written = (
            next(line.split() for line in lines if line.split()[:1] == [metric]) for lines in (said, page)
        )
        assert written[:-3] == printed[:-3]
        assert [float(one) for one in written[-3:]] == pytest.approx(list(map(float, printed[-3:])), abs=0.3)
