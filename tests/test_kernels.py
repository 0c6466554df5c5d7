"""The portable kernels train and search as those of the processor do."""

import os
import subprocess
import sys

import numpy as np
import pytest

from tests import reference
from tests.helpers.data import ROOT

pytestmark = pytest.mark.native

LINKS = (reference.LOG, reference.HINGE_2, reference.HINGE_3)
ANSWERS = """
import sys
import numpy as np
import longleaf as ll
from longleaf import _core
from tests.helpers import handmade
from tests.helpers.searching import make_gain
from tests.helpers.training import TIGHT, WHOLE, texts
from tests.test_kernels import LINKS

answers = {"simd": np.array(_core.simd())}
X, rows = texts(n_labels=9)
for link in LINKS:
    problem = handmade.random_problem(7, ["balanced", "flat"], 300, link, n_rows=50)
    top = problem.model.top_k(problem.X, k=5, gain=make_gain("plain", 1, 300))
    answers |= {f"{link}-labels": top.labels, f"{link}-scores": top.scores}
    runs = handmade.random_problem(8, ["flat"], 70, link, n_features=150, scale=0.2)
    rows_of_runs = np.random.default_rng(1).normal(size=(9, 150)).astype(np.float32)
    top = runs.model.top_k(rows_of_runs, k=5)
    answers |= {f"{link}-runs-labels": top.labels, f"{link}-runs-scores": top.scores}
    settings = {"n_trees": 1, "max_leaf": 3, "random_state": 1, "n_jobs": 1, **TIGHT, **WHOLE}
    model = ll.PLT(**settings, **link._asdict()).fit(X, rows)
    answers[f"{link}-trained"] = handmade.decode(model.weights_[0], X.shape[1])
np.savez(sys.argv[1], **answers)
"""


def test_the_portable_kernels_give_the_same_answers_and_weights(tmp_path):
    answers = []
    for simd in ("baseline", ""):
        path = tmp_path / f"kernels-{simd}.npz"
        environment = os.environ | {"LONGLEAF_SIMD": simd, "PYTHONPATH": str(ROOT)}
        subprocess.run([sys.executable, "-c", ANSWERS, path], env=environment, check=True, timeout=300)
        answers.append(np.load(path))
    baseline, best = answers
    assert str(baseline["simd"]) == "kernels_baseline"
    for link in LINKS:
        np.testing.assert_array_equal(baseline[f"{link}-labels"], best[f"{link}-labels"])
        np.testing.assert_allclose(baseline[f"{link}-scores"], best[f"{link}-scores"], rtol=1e-5)
        np.testing.assert_array_equal(baseline[f"{link}-runs-labels"], best[f"{link}-runs-labels"])
        np.testing.assert_allclose(baseline[f"{link}-runs-scores"], best[f"{link}-runs-scores"], rtol=1e-5)
        np.testing.assert_allclose(baseline[f"{link}-trained"], best[f"{link}-trained"], rtol=1e-3, atol=1e-4)
