"""The Python on the pages runs as it stands, top to bottom."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers.data import ROOT
from tests.helpers.pages import blocks

GUIDE = ROOT / "docs" / "guide"


@pytest.mark.parametrize("page", ["texts", "learning", "resume", "scikit-learn", "large-data"])
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
