"""The Python on the pages runs as it stands, top to bottom."""

import ast
import inspect
import json
import lzma
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import longleaf as ll
from tests.helpers import encoders as helper
from tests.helpers.commands import run_well
from tests.helpers.data import LAW_NAMES, LAWS, ROOT
from tests.helpers.pages import blocks

GUIDE = ROOT / "docs" / "guide"


@pytest.mark.parametrize(
    "page", ["texts", "learning", "resume", "scikit-learn", "large-data", "calibrating", "measures"]
)
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


def test_the_table_of_utilities_says_the_same_to_commands_and_to_python(tmp_path: Path) -> None:
    page = blocks((GUIDE / "utilities.md").read_text("utf-8"))
    python = "".join(block.code for block in page if block.language == "python")
    commands = [line for block in page if not block.language for line in block.code.split("\n")]
    commands = [line.strip() for line in commands if line.strip().startswith(("printf", "longleaf"))]
    assert len(commands) == 8
    with ll.read_table(LAWS, tags="tags") as laws:
        rows = [{**record.fields, "tags": record.tags} for record, _ in zip(laws, range(50), strict=False)]
    (tmp_path / "new.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    python += (
        "again = tagger.read_utility('worth.csv')\n"
        "for name in ('a', 'b', 'mask', 'quotas'):\n"
        "    one, other = getattr(utility, name), getattr(again, name)\n"
        "    assert all((x == y).all() for x, y in zip(one, other)), name\n"
        "assert [row.exact for row in tagger.suggest(texts, utility=worth, search='auto')] == [True] * 3\n"
    )
    script = ["set -e", *(one for one in commands if one.startswith("printf"))]
    script += ["python -W error - <<'END_OF_PYTHON'", python, "END_OF_PYTHON"]
    script += [one for one in commands if one.startswith("longleaf")]
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    result = subprocess.run(
        ["bash", "-c", "\n".join(script)],
        cwd=tmp_path,
        env=os.environ | {"PATH": path},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert result.returncode == 0, result.stderr
    names = ("tags.jsonl", "worthwhile.jsonl")
    every, worthwhile = (
        [
            [one["score"] for one in json.loads(line)["labels"]]
            for line in (tmp_path / name).read_text().splitlines()
        ]
        for name in names
    )
    assert len(every) == 50
    assert any(score < 0 for row in every for score in row)
    assert worthwhile == [[score for score in row if score >= 0] for row in every]


def test_the_request_of_the_page_of_utilities_is_json() -> None:
    (request,) = [
        one.code for one in blocks((GUIDE / "utilities.md").read_text("utf-8")) if one.language == "json"
    ]
    assert {row["tag"] for row in json.loads(request)["utility"]} == {"*", "olive oil", "import"}


def test_the_page_of_fine_tuning_calls_it_as_it_is() -> None:
    text = (GUIDE / "fine-tuning.md").read_text("utf-8")
    known = run_well("encoder", "tune", "--help")
    options = {"--checkpoint", "--validation", "--epochs", "--max-tokens", "--batch-size", "--negatives"}
    assert options <= set(re.findall(r"--[a-z-]+", text))
    assert not [option for option in options if option not in known]
    (code,) = [block.code for block in blocks(text) if block.language == "python"]
    call = next(node for node in ast.walk(ast.parse(code)) if "fine_tune" in ast.unparse(node)[:40])
    names = {
        keyword.arg for node in ast.walk(call) if isinstance(node, ast.Call) for keyword in node.keywords
    }
    assert names == {"checkpoint"}
    assert names <= set(inspect.signature(ll.encoders.fine_tune).parameters)


def test_the_page_of_encoders_runs_with_a_tiny_one_in_place_of_minilm(tmp_path: Path) -> None:
    helper.require_extra()
    page = blocks((GUIDE / "encoders.md").read_text("utf-8"))
    tiny = helper.save_bert(tmp_path / "tiny", layers=1, positions=16)
    with ll.read_table(LAWS, tags="tags") as laws:
        rows = [{**record.fields, "tags": record.tags} for record, _ in zip(laws, range(150), strict=False)]
    for name in ("train", "test"):  # a few laws under the names of all
        laws_path = tmp_path / f"eurlex_{name}.jsonl.xz"
        laws_path.write_bytes(lzma.compress("".join(json.dumps(row) + "\n" for row in rows).encode()))
    lines = [line.strip() for block in page if not block.language for line in block.code.splitlines()]
    commands = [line for line in lines if line.startswith("longleaf") and "multilingual" not in line]
    assert len(commands) == 10
    script = ["set -e", f"DATA={tmp_path}"]
    script += [line for line in commands if not line.startswith("longleaf serve")]
    for block in page:
        if block.language == "python":
            script += ["python -W error - <<'END_OF_PYTHON'", block.code, "END_OF_PYTHON"]
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    result = subprocess.run(
        ["bash", "-c", "\n".join(script).replace("minilm", str(tiny))],
        cwd=tmp_path,
        env=os.environ | {"PATH": path, "LONGLEAF_CACHE": str(tmp_path / "cache")},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout.count("  meaning  ") == 2


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
