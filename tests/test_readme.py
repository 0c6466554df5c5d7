"""The README's quickstarts run as they stand."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from cli_helpers import run_well
from longleaf import datasets

ROOT = Path(__file__).resolve().parents[1]


def block(language: str) -> str:
    """Give the README's only code block in a language."""
    (found,) = re.findall(rf"```{language}\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    return str(found)


def test_the_python_quickstart_runs_and_gains_on_rare_labels(tmp_path: Path) -> None:
    result = subprocess.run(
        [sys.executable, "-W", "error", "-c", block("python")],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert result.returncode == 0, result.stderr
    plain, rare = re.findall(r"psp@1 ([\d.]+)", result.stdout)
    assert float(rare) > float(plain)
    assert (tmp_path / "laws.ll" / "model.json").exists()


def test_the_command_line_quickstart_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    first, *commands = block("sh").splitlines()
    assert first == "DATA=src/longleaf/datasets"
    assert (ROOT / "src/longleaf/datasets/eurlex_train.txt.xz").exists()
    folder = str(Path(datasets.__file__).parent)
    for command in commands:
        program, *arguments = shlex.split(command.replace("$DATA", folder))
        assert program == "longleaf"
        run_well(*arguments)
    assert len((tmp_path / "suggestions.jsonl").read_text().splitlines()) == 1000


def test_links_lead_to_files() -> None:
    for page in (ROOT / "README.md", *(ROOT / "docs").glob("*.md")):
        for target in re.findall(r"\]\(([^):]+)\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name}: {target}"
