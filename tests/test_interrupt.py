"""Ctrl-C ends every long native call within half a second, with KeyboardInterrupt."""

import signal
import subprocess
import sys
import time

import pytest

PROMPT = 0.5
"""What is promised, in seconds."""

MARGIN = 2.0
"""What a crowded machine may take to wake two processes up."""

CHILD = """
import signal, sys, threading, time
import numpy as np
import scipy.sparse as sp
import longleaf as ll
from longleaf import _core

signal.signal(signal.SIGINT, signal.default_int_handler)
rng = np.random.default_rng(0)
main = threading.main_thread().ident


def rows(n, features, per_row):
    width = features // per_row
    first = width * np.arange(per_row, dtype=np.int32)
    indices = first + rng.integers(0, width, (n, per_row), dtype=np.int32)
    indptr = np.arange(0, (n + 1) * per_row, per_row, dtype=np.int64)
    return indptr, indices.ravel(), rng.random(n * per_row, dtype=np.float32)


def flat_forest(families, leaves):
    # a root, its children, their leaves, and no weight: every label is as good as any
    nodes = 1 + families + leaves * families
    of_families = 1 + families + leaves * np.arange(families + 1)
    first_child = np.r_[1, of_families, np.full(leaves * families, nodes)].astype(np.int32)
    label = np.r_[np.full(1 + families, -1), np.arange(leaves * families)].astype(np.int32)
    chunks = -(-families // _core.CHUNK_WIDTH) + families * -(-leaves // _core.CHUNK_WIDTH)
    empty = [[np.zeros(0, kind)] * chunks for kind in (np.int32, np.uint8, np.float32)]
    weights = _core.assemble_chunks(first_child, label, *empty, np.zeros(nodes, np.float32), 10, 8)
    return _core.Forest([first_child], [label], [weights], 10, leaves * families, 0)


def say_when_the_call_stands_still():
    # while native code runs, this thread sees the main one at the same instruction again and again
    seen, times = None, 0
    while times < 5:
        time.sleep(0.02)
        frame = sys._current_frames()[main]
        here = (id(frame), frame.f_lasti) if ready else None
        times = times + 1 if here is not None and here == seen else 0
        seen = here
    print("inside", flush=True)


ready = False
SETUP
threading.Thread(target=say_when_the_call_stands_still, daemon=True).start()
try:
    ready = True
    CALL
    print("finished", flush=True)
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""

KMEANS = """_core.cluster_labels(*vectors, 20_000, arity={arity}, max_leaf=10, max_iterations=1000,
        tolerance=-1.0, balanced={balanced}, seed=1, threads={threads})"""
ALL_LABELS = """forest.top_k(*rows(2000, 10, 2), np.ones(2000, np.float32), k=20_000, beam=0,
        union_rule=False, log_gain=none, log_bounds=none, log_threshold=none, log_floor=-np.inf, threads=1)"""

CALLS = {
    "k-means of many clusters": (
        "vectors = rows(100_000, 20_000, 50)",
        KMEANS.format(arity=64, balanced=False, threads=1),
    ),
    "k-means by several threads": (
        "vectors = rows(100_000, 20_000, 50)",
        KMEANS.format(arity=64, balanced=True, threads=2),
    ),
    "2-means": (
        "vectors = rows(400_000, 20_000, 50)",
        KMEANS.format(arity=2, balanced=True, threads=1),
    ),
    "the centroid of a label of all rows": (
        """
x, scale = rows(100_000, 20_000, 50), np.ones(100_000, np.float32)
members = np.tile(np.arange(100_000, dtype=np.int32), 300)
""",
        "_core.label_centroids(*x, 20_000, scale, np.array([0, len(members)]), members, 1)",
    ),
    "the rows of a deep tree": (
        """
depth, n = 5000, 400_000  # every inner node has an inner node and a leaf
node = np.arange(2 * depth + 2)
first_child = np.where(node == 0, 1, np.minimum(node + 2 + (node % 2 == 0), 2 * depth + 1)).astype(np.int32)
leaf = np.diff(first_child) == 0
label = np.where(leaf, np.cumsum(leaf) - 1, -1).astype(np.int32)
deepest = np.full(n, depth, np.int32)
""",
        "_core.node_rows(np.arange(n + 1), deepest, depth + 1, first_child, label)",
    ),
    "training": (
        "X, Y = rng.random((4000, 1500)), rng.random((4000, 40)) < 0.3",
        "ll.BR(n_jobs=1, tolerance=1e-9, max_epochs=100_000).fit(X, Y)",
    ),
    "a search for all labels": (
        "forest, none = flat_forest(100, 200), np.zeros(0, np.float32)",
        ALL_LABELS,
    ),
    "the probabilities of many labels of a row": (
        """
forest, pairs = flat_forest(100, 200), 30_000_000
which = rng.integers(0, 20_000, pairs, dtype=np.int32)
""",
        "forest.probabilities(*rows(1, 10, 2), np.ones(1, np.float32), np.zeros(pairs, np.int64), which, 1)",
    ),
    "counting the words of a long text": (
        """
words = " ".join(f"{number:07d}" for number in rng.integers(0, 10**7, 100_000))
""",
        "ll.TextVectorizer(analyzer='char_wb', ngram_range=(2, 7), n_jobs=1).fit([words] * 20)",
    ),
    "finding names in texts": (
        """
from longleaf.text.phrases import PhraseIndex

index = PhraseIndex(["a b " * n for n in range(1, 1000)], range(999))
""",
        "index.find([['a b ' * 1_000_000]] * 5)",
    ),
    "sorting terms": (
        """
vectorizer = ll.TextVectorizer(n_jobs=1)
texts = vectorizer._begin(["".join(f"{'a' * 30}{i:05d} " for i in range(10_000))])
counter = vectorizer._count(texts, None, False)
counter.merge()
ids = rng.integers(0, 10_000, 20_000_000).astype(np.uint32)
""",
        "counter.sort(ids)",
    ),
    "packing what an importer brings": (
        """
chunks, features = 1000, np.arange(200_000, dtype=np.int32)
leaves = _core.CHUNK_WIDTH * chunks
tree = np.r_[1, np.full(leaves + 1, leaves + 1)].astype(np.int32), np.arange(-1, leaves, dtype=np.int32)
children, values = (features % 100).astype(np.uint8), np.ones(len(features), np.float32)
entries = [[array] * chunks for array in (features, children, values)]
""",
        "_core.assemble_chunks(*tree, *entries, np.zeros(leaves + 1, np.float32), len(features), 8)",
    ),
    "a separator": (
        """
x, scale = rows(100_000, 20_000, 50), np.ones(100_000, np.float32)
sides = rng.integers(0, 2, 100_000).astype(np.uint8)
""",
        """_core.separate(*x, 20_000, scale, sides, cost_off=1.0, cost_on=1.0, bias=1.0, tolerance=0.0,
        max_epochs=1000, seed=1)""",
    ),
}


def interrupt(code):
    """Run the code, send SIGINT once it says that it is inside the call, and check that it stops promptly."""
    child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    try:
        assert child.stdout.readline() == "inside\n", "the call must be long, and let other threads run"
        begin = time.monotonic()
        child.send_signal(signal.SIGINT)
        assert child.stdout.readline() == "interrupted\n"
        assert time.monotonic() - begin < PROMPT + MARGIN
    finally:
        child.kill()
        child.communicate()


@pytest.mark.parametrize("name", CALLS)
def test_ctrl_c_ends_it(name):
    setup, call = CALLS[name]
    code = CHILD.replace("SETUP", setup.strip()).replace("CALL", call)
    interrupt(code)


def test_ctrl_c_ends_the_reading_of_a_file():
    code = CHILD.replace("SETUP", "").replace("CALL", "ll.load_xmlc(Endless())")
    endless = """
class Endless:
    blocks = 0
    def read(self, size=-1):
        self.blocks += 1
        if self.blocks == 20:
            print("inside", flush=True)
        return b"1000000000 100 10\\n" if self.blocks == 1 else b"1,2 3:0.5 4:0.25\\n" * 50_000
"""
    code = code.replace("ready = False\n", "ready = False\n" + endless, 1).replace("    ready = True\n", "")
    interrupt(code)


def test_ctrl_c_ends_saving_and_leaves_nothing_behind(tmp_path):
    setup = f"""
from pathlib import Path
from longleaf.io import storage

folder, large = Path({str(tmp_path)!r}), np.zeros(1 << 28)

def say_when_a_file_grows():
    while not any(path.stat().st_size for path in folder.rglob("*.npy")):
        time.sleep(0.01)
    print("inside", flush=True)

say_when_the_call_stands_still = say_when_a_file_grows
"""
    call = 'storage.save_folder(folder / "m.ll", "plt", {}, {"large": large}, False)'
    interrupt(CHILD.replace("SETUP", setup.strip()).replace("CALL", call))
    assert list(tmp_path.iterdir()) == []
