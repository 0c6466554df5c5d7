"""The README's quickstarts run as they stand."""

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from cli_helpers import run_well

ROOT = Path(__file__).resolve().parents[1]


TEXTS, FEATURES = 0, 1
"""The README's quickstarts, in their order; each has a block per language."""


def block(language: str, quickstart: int) -> str:
    """Give the code of a quickstart in a language."""
    found = re.findall(rf"```{language}\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert len(found) == 2
    return str(found[quickstart])


def run_python(code: str, folder: Path) -> str:
    result = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], cwd=folder, capture_output=True, text=True, timeout=300
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


def test_the_text_quickstart_suggests_and_explains(tmp_path: Path) -> None:
    said = run_python(block("python", TEXTS), tmp_path)
    assert said.startswith("olive oil ")
    assert "('olive', " in said
    assert "decided at level" in said
    assert (tmp_path / "tagger.ll" / "model.json").exists()


def test_the_text_commands_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    rows = [("Olive oil", "of olives", ["1264"]), ("Cod", "and herring", ["2437"])] * 5
    lines = (json.dumps(dict(zip(("title", "text", "tags"), row, strict=True))) + "\n" for row in rows)
    (tmp_path / "laws.jsonl").write_text("".join(lines))
    (tmp_path / "unseen.jsonl").write_text((tmp_path / "laws.jsonl").read_text())
    (tmp_path / "names.json").write_text('{"1264": "olive oil", "2437": "sea fish"}')
    said = ""
    for command in block("sh", TEXTS).splitlines():
        program, *arguments = shlex.split(command)
        assert program == "longleaf"
        said = run_well(*arguments)
    assert said.startswith("1264  olive oil\n")
    assert len((tmp_path / "tags.jsonl").read_text().splitlines()) == 10


def test_the_feature_quickstarts_run_and_gain_on_rare_labels(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The commands read the XMLC files that the Python block wrote."""
    said = run_python(block("python", FEATURES), tmp_path)
    plain, rare = re.findall(r"psp@1 ([\d.]+)", said)
    assert float(rare) > float(plain)
    assert (tmp_path / "laws.ll" / "model.json").exists()
    monkeypatch.chdir(tmp_path)
    for command in block("sh", FEATURES).splitlines():
        program, *arguments = shlex.split(command)
        assert program == "longleaf"
        run_well(*arguments)
    assert len((tmp_path / "suggestions.jsonl").read_text().splitlines()) == 1000


def test_links_lead_to_files() -> None:
    for page in (ROOT / "README.md", *(ROOT / "docs").glob("*.md")):
        for target in re.findall(r"\]\(([^):#]+)(?:#[^)]*)?\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name}: {target}"
