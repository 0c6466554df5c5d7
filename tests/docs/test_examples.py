"""The examples do what they show."""

import json
import re
import runpy
import sys
from pathlib import Path

import numpy as np
import pytest

from longleaf.datasets import load_sample
from tests.helpers import encoders as helper
from tests.helpers.data import ROOT
from tests.helpers.notebooks import code_cells, run, stored

EXAMPLES = ROOT / "examples"
NUMBER = re.compile(r"\d+\.\d+")


def test_the_quickstart_prints_what_the_notebook_shows() -> None:
    notebook = json.loads((EXAMPLES / "quickstart.ipynb").read_text(encoding="utf-8"))
    shown = [stored(cell) for cell in code_cells(notebook)]
    said = run(notebook)
    renew = "renew it by: python -m tests.helpers.notebooks examples/quickstart.ipynb"
    for ours, theirs in zip(said, shown, strict=True):
        assert NUMBER.sub("#", ours) == NUMBER.sub("#", theirs), renew
        numbers = [np.array(NUMBER.findall(text), float) for text in (ours, theirs)]
        # not bit for bit: another processor may sum in another order
        np.testing.assert_allclose(*numbers, rtol=0.01, atol=0.11, err_msg=renew)
    assert sum(map(bool, shown)) == len(shown)


def test_the_encoder_example_judges_words_and_meaning_side_by_side(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    helper.require_extra()
    monkeypatch.setenv("LONGLEAF_CACHE", str(tmp_path / "cache"))
    encoder = helper.save_bert(tmp_path / "tiny", layers=1, positions=16)
    laws = load_sample()
    for name, texts, tags in (
        ("train", laws.texts_train[::10], laws.tags_train[::10]),
        ("dev", laws.texts_test[::10], laws.tags_test[::10]),
    ):
        lines = [json.dumps({"text": text, "tags": tag}) for text, tag in zip(texts, tags, strict=True)]
        (tmp_path / f"{name}.jsonl").write_text("\n".join(lines), encoding="utf-8")
    files = (f"{tmp_path}/train.jsonl", f"{tmp_path}/dev.jsonl")
    monkeypatch.setattr(sys, "argv", ["encoder.py", *files, str(encoder)])
    runpy.run_path(str(EXAMPLES / "encoder.py"), run_name="__main__")
    heading, *lines = capsys.readouterr().out.splitlines()
    assert heading.split() == ["p@1", "p@5", "psp@5"]
    assert [line.split()[0] for line in lines] == ["words", *[str(encoder)] * 3]
    assert [line.split()[1] for line in lines[1:]] == ["0.25", "0.5", "1"]
    assert all(0 < float(number) < 100 for line in lines for number in line.split()[-3:])
