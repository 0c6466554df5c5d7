"""The demo and the sample that it runs on."""

import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import longleaf as ll
from longleaf import datasets
from longleaf.datasets import Sample, load_sample


@pytest.fixture(scope="module")
def sample() -> Sample:
    return load_sample()


def test_the_sample_is_whole_and_compact(sample: Sample) -> None:
    n_features, n_labels = sample.X_train.shape[1], len(sample.label_names)
    assert sample.X_train.shape == (4000, n_features)
    assert sample.X_test.shape == (1000, n_features)
    assert sample.Y_train.shape == (4000, n_labels)
    assert sample.Y_test.shape == (1000, n_labels)
    assert len(sample.titles_test) == 1000
    assert len(set(sample.label_names)) == n_labels
    assert np.bincount(sample.X_train.indices, minlength=n_features).min() >= 2
    assert len(np.union1d(sample.Y_train.indices, sample.Y_test.indices)) == n_labels


def test_names_belong_to_their_labels(sample: Sample) -> None:
    row = next(i for i, title in enumerate(sample.titles_test) if "New Zealand on trade in mutton" in title)
    names = {sample.label_names[label] for label in sample.Y_test[row].indices}
    assert {"sheepmeat", "goatmeat", "New Zealand", "voluntary restraint agreement"} <= names


def test_the_sample_is_small_and_says_whose_work_it_is() -> None:
    folder = Path(datasets.__file__).parent
    assert sum(file.stat().st_size for file in folder.glob("*.xz")) < 3_000_000
    licence = (folder / "LICENSE-DATA.md").read_text()
    assert "Chalkidis" in licence
    assert "CC BY-SA 4.0" in licence


def test_the_tail_dial_gains_on_the_samples_rare_labels(sample: Sample) -> None:
    model = ll.PLT.paper(random_state=1).fit(sample.X_train, sample.Y_train)
    q = ll.inverse_propensity(sample.Y_train)
    plain, scored = (
        ll.metrics.evaluate(sample.Y_test, model.top_k(sample.X_test, tail=tail), q) for tail in (0.0, 1.0)
    )
    for at in (1, 3, 5):
        assert scored[f"psp@{at}"] > plain[f"psp@{at}"] + 1
    assert plain["p@1"] > 70


def test_demo_shows_both_dials_in_under_a_minute() -> None:
    start = time.perf_counter()
    result = subprocess.run(
        [sys.executable, "-m", "longleaf.cli", "demo"], capture_output=True, text=True, timeout=300
    )
    assert time.perf_counter() - start < 60
    assert result.returncode == 0, result.stderr
    assert result.stderr == ""
    words = ("PLT", "PS-PLT", "p@1", "psp@5", "head", "torso", "tail 1 suggests", "true concepts", "✓")
    for word in words:
        assert word in result.stdout
    assert "\x1b" not in result.stdout
    assert max(map(len, result.stdout.splitlines())) <= 100
