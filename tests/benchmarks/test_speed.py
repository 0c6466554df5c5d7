"""The harness of the benchmarks, on generated data and systems made up here: no peer is needed."""

import io
import json
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp
from rich.console import Console

from benchmarks import data, measure, quality, runner
from benchmarks.settings import ENTRIES, GAINS_FILE, Entry, Search
from benchmarks.table import render
from tests.helpers.data import ROOT

SYSTEM = '''
import os
import numpy as np
from benchmarks.systems import System, pad

class Popular(System):
    """Answers every row with the labels seen most often, or by their gains where there are any."""
    def train(self, model):
        if self.params.get("broken"):
            raise ValueError("broken on purpose")
        ballast = np.ones(self.params.get("ballast", 0), np.uint8)
        self.counts = np.asarray(self.Y.sum(axis=0)).ravel() + 0 * ballast.sum()
    def save(self, model):
        np.save(model, self.counts)
        os.rename(f"{model}.npy", model)
    def load(self, model):
        self.counts = np.load(model)
    def predict(self, X, k, threads, options):
        if options.get("crash"):
            os.abort()
        best = np.argsort(-options.get("gains", self.counts), kind="stable")[:k].tolist()
        return [best] * X.shape[0]
    def labels(self, answer, k):
        return pad(answer, k)
    def evaluations(self, answer):
        return 7.0
'''
TRAIN = ["4 3 6", "0,1 0:1.0", "0 1:0.5 2:0.5", "0,1 2:1.0", "2"]
DEV = ["2 3 6", "0,3 0:1.0", "2 1:1.0"]


@pytest.fixture
def job(tmp_path, monkeypatch):
    (tmp_path / "made_up.py").write_text(SYSTEM)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    folder = tmp_path / "data"
    folder.mkdir()
    data.write_split(folder, "train", TRAIN)
    data.write_split(folder, "dev", DEV)
    return runner.Job("tiny", folder, tmp_path / "scratch", timeout=60.0)


def entry(params=None, *searches):
    return Entry("popular", "made_up:Popular", "as it is", params or {}, searches or (Search("plain"),))


def test_a_converted_split_holds_what_the_text_says(job):
    X, Y = data.load(job.folder, "train")
    np.testing.assert_array_equal(X.toarray(), [[1, 0, 0], [0, 0.5, 0.5], [0, 0, 1], [0, 0, 0]])
    np.testing.assert_array_equal(Y.toarray()[:, :3], [[1, 1, 0], [1, 0, 0], [1, 1, 0], [0, 0, 1]])
    assert Y.shape == (4, 6)


def test_a_sample_of_rows_keeps_their_order_and_says_its_size(tmp_path):
    lines = ["9 1 9", *(f"{row} 0:1.0" for row in range(9))]
    data.write_split(tmp_path, "train", lines, rows=4)
    _, Y = data.load(tmp_path, "train")
    assert Y.shape == (4, 9)
    assert list(Y.indices) == sorted(Y.indices)
    assert (tmp_path / "train.txt").read_text().startswith("4 1 9\n")


def test_a_record_has_costs_and_the_hand_worked_quality(job):
    (record,) = runner.measure_entry(job, entry())
    assert "failed" not in record
    # The answer is 0, 1, 2, 3, 4 for both rows; relevant are {0, 3} and {2}.
    assert record["p@1"] == pytest.approx(50.0)
    assert record["p@3"] == pytest.approx(100 * 2 / 6)
    assert record["p@5"] == pytest.approx(100 * 3 / 10)
    assert record["psp@5"] == pytest.approx(100.0)
    assert record["evaluations"] == 7.0
    for cost in ("train_seconds", "train_cpu_seconds", "load_seconds", "batch_ms", "single_ms"):
        assert record[cost] > 0
    assert record["model_bytes"] > 6 * 4
    assert record["versions"]["numpy"] == np.__version__


def test_the_peak_of_memory_sees_what_training_allocates_and_frees(job):
    (light,) = runner.measure_entry(job, entry())
    (heavy,) = runner.measure_entry(job, entry({"ballast": 64 * 2**20}))
    if light["peak_bytes"] is None:
        pytest.skip("this kernel does not let the peak be reset")
    assert heavy["peak_bytes"] - light["peak_bytes"] > 50 * 2**20


def test_gains_reach_the_system_as_inverse_propensities(job):
    plain, weighted = runner.measure_entry(
        job, entry({}, Search("plain"), Search("gains", {"gains": GAINS_FILE}, gains=True))
    )
    assert (plain["gains"], weighted["gains"]) == (False, True)
    # By gains the answer is 3, 4, 5, 2, 1, the rarest first.
    assert plain["p@5"] == pytest.approx(30.0)
    assert weighted["p@5"] == pytest.approx(20.0)


def test_an_exception_in_training_is_a_record_with_the_reason(job):
    (record,) = runner.measure_entry(job, entry({"broken": True}))
    assert record["failed"] == "ValueError: broken on purpose"


def test_a_crash_in_one_search_leaves_the_others_standing(job):
    crashed, plain = runner.measure_entry(job, entry({}, Search("crash", {"crash": True}), Search("plain")))
    assert "SIGABRT" in crashed["failed"]
    assert crashed["train_seconds"] > 0
    assert "failed" not in plain


def test_a_missing_environment_is_named(job, monkeypatch):
    monkeypatch.setitem(runner.PYTHONS, "own", "/nowhere/python")
    (record,) = runner.measure_entry(job, entry())
    assert record["failed"] == "/nowhere/python must exist; run make peers."


def test_inverse_propensity_is_the_published_formula():
    Y = sp.csr_matrix(np.array([[1, 0], [1, 0], [1, 1], [1, 0]], np.float32))
    c = (np.log(4) - 1) * 2.5**0.55
    np.testing.assert_allclose(quality.inverse_propensity(Y), [1 + c * 5.5**-0.55, 1 + c * 2.5**-0.55])


def test_psp_divides_by_the_best_reachable():
    truth = sp.csr_matrix(np.array([[1, 1, 0, 0, 0, 0]], np.float32))
    q = np.array([2.0, 5.0, 1.0, 1.0, 1.0, 1.0])
    judged = quality.evaluate(truth, np.array([[0, 2, 3, -1, -1]], np.int32), q)
    assert judged["psp@1"] == pytest.approx(100 * 2 / 5)
    assert judged["psp@3"] == pytest.approx(100 * 2 / 7)
    assert judged["p@5"] == pytest.approx(20.0)


def test_the_table_shows_failures_and_leaves_unknown_cells_empty(job):
    records = [*runner.measure_entry(job, entry()), *runner.measure_entry(job, entry({"broken": True}))]
    records[0]["evaluations"] = None
    console = Console(width=300, record=True, file=io.StringIO())
    console.print(render(json.loads(json.dumps(records)), threads=2))
    text = console.export_text()
    assert "failed: ValueError: broken on purpose" in text
    assert "50.00" in text
    assert "None" not in text


def test_every_entry_names_a_module_that_exists():
    for each in ENTRIES:
        module = each.system.partition(":")[0]
        assert (ROOT / (module.replace(".", "/") + ".py")).exists()


BUSY = "import time\nwhile time.process_time() < 0.3: pass\nprint(flush=True)\n"


@pytest.mark.parametrize("ends", [True, False])
def test_children_seconds_count_processes_whether_or_not_they_have_ended(ends):
    before = measure.children_seconds()
    code = BUSY if ends else BUSY + "input()"
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        assert child.stdout.readline() == b"\n"
        if ends:
            child.wait()
        assert measure.children_seconds() - before >= 0.25
        child.stdin.close()
