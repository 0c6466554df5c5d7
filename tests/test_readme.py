"""The README's quickstarts run as they stand."""

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import longleaf as ll
from cli_helpers import run_well
from report_pages import Page

ROOT = Path(__file__).resolve().parents[1]


TEXTS, FEATURES, CHOOSING = 0, 1, 2
"""The README's quickstarts, in their order; each has a block per language, the last only commands."""
BLOCKS = {"python": 2, "sh": 3}


def block(language: str, quickstart: int) -> str:
    """Give the code of a quickstart in a language."""
    found = re.findall(rf"```{language}\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert len(found) == BLOCKS[language]
    return str(found[quickstart])


def run_python(code: str, folder: Path) -> str:
    result = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], cwd=folder, capture_output=True, text=True, timeout=300
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


def run_shell(code: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run commands as a reader would, with the longleaf of this environment."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    result = subprocess.run(
        ["sh", "-ec", code],
        cwd=folder,
        env=os.environ | {"PATH": path},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert result.returncode == 0, result.stderr
    return result


@pytest.fixture(scope="module")
def laws(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, subprocess.CompletedProcess[str]]:
    """Give the folder that the text commands have filled, and what they said."""
    folder = tmp_path_factory.mktemp("laws")
    return folder, run_shell(block("sh", TEXTS), folder)


def test_the_text_quickstart_suggests_and_explains(tmp_path: Path) -> None:
    said = run_python(block("python", TEXTS), tmp_path)
    assert said.startswith("olive oil ")
    assert "('olive', " in said
    assert "decided at level" in said
    assert (tmp_path / "tagger.ll" / "model.json").exists()


def test_the_text_commands_run_on_the_bundled_laws(
    laws: tuple[Path, subprocess.CompletedProcess[str]],
) -> None:
    folder, said = laws
    assert "\n1264  olive oil\n" in said.stdout
    assert "lacked" not in said.stderr
    assert len((folder / "tags.jsonl").read_text().splitlines()) == 400


def test_nothing_is_judged_on_rows_that_it_was_trained_on(
    laws: tuple[Path, subprocess.CompletedProcess[str]],
) -> None:
    train, dev, test = (_ids(laws[0] / "parts" / f"{part}.jsonl") for part in ("train", "dev", "test"))
    assert not (train | dev) & test
    for command in (block("sh", TEXTS) + block("sh", CHOOSING)).splitlines():
        words = shlex.split(command, comments=True)
        if words[1:2] and words[1] in ("train", "tune"):
            assert words[2] == "parts/train.jsonl"
        if words[1:2] and words[1] in ("evaluate", "compare", "report"):
            assert "parts/test.jsonl" in words


def _ids(path: Path) -> set[str]:
    return {json.loads(line)["id"] for line in path.read_text().splitlines()}


def test_the_choosing_commands_run_on_the_same_parts(
    laws: tuple[Path, subprocess.CompletedProcess[str]],
) -> None:
    pytest.importorskip("matplotlib", reason="needs the extra report")
    setting, *_ = block("sh", TEXTS).splitlines()
    tune, compare, report, serve = block("sh", CHOOSING).splitlines()
    assert serve.startswith("longleaf serve tuned.ll")  # which would not end
    folder = laws[0]
    said = run_shell("\n".join([setting, f"{tune} --candidates 1", compare, report]), folder)
    assert "lacked" not in said.stderr
    model = ll.load(folder / "tuned.ll")
    assert isinstance(model, ll.Tagger)
    assert model.names is not None
    assert model.names["1264"] == "olive oil"
    gained = Page((folder / "report.html").read_text()).cells("changes-gained")
    assert gained
    assert not any(label.isdigit() for label in gained), "labels have their names there"


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
