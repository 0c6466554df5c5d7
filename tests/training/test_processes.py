"""Training in other processes: Ctrl-C ends it, and a fork of a process that trained can train."""

import multiprocessing
import os
import signal
import subprocess
import sys

import numpy as np
import pytest

import longleaf as ll
from tests.helpers.processes import wait_until_used
from tests.helpers.training import texts

LONG = """
import sys
import numpy as np
import longleaf as ll

rng = np.random.default_rng(0)
X, Y = rng.random((4000, 1500)), rng.random((4000, 40)) < 0.3
print("training", flush=True)
try:
    {call}
except KeyboardInterrupt:
    print("interrupted", flush=True)
    sys.exit(7)
"""
CALLS = {
    "a tree": "ll.PLT(loss='log', n_jobs={n_jobs}, tolerance=1e-9, max_epochs=100000).fit(X, Y)",
    "one wide node": "ll.BR(n_jobs={n_jobs}, tolerance=1e-9, max_epochs=100000).fit(X, Y)",
}


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("call", CALLS)
def test_ctrl_c_ends_training_promptly(call, n_jobs):
    code = LONG.format(call=CALLS[call].format(n_jobs=n_jobs))
    child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    try:
        assert child.stdout.readline() == "training\n"
        begin = wait_until_used(child.pid, 1.5)  # it is past its preparations
        child.send_signal(signal.SIGINT)
        output = child.stdout.read()
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        assert usage.ru_utime + usage.ru_stime - begin < 2 * n_jobs
    finally:
        child.kill()
        child.communicate()
    assert output == "interrupted\n"
    assert child.returncode == 7


def _train_and_search(queue):
    X, rows = texts(n_labels=9)
    queue.put(ll.PLT(random_state=1, n_jobs=2, max_leaf=3).fit(X, rows).top_k(X, k=3).scores)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_can_train_after_its_parent_did():
    context = multiprocessing.get_context("fork")
    X, rows = texts(n_labels=9)
    here = ll.PLT(random_state=1, n_jobs=2, max_leaf=3).fit(X, rows).top_k(X, k=3).scores
    queue = context.Queue()
    child = context.Process(target=_train_and_search, args=(queue,))
    child.start()
    there = queue.get(timeout=60)
    child.join(timeout=60)
    assert child.exitcode == 0
    np.testing.assert_array_equal(here, there)
