"""Training, prediction and evaluation on a real cluster of processes: the same as on one machine."""

import os
import signal
import subprocess
import time
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp

import longleaf as ll
from longleaf._validation import check_labels
from tests.helpers.commands import COMMAND
from tests.helpers.same import same_model

distributed = pytest.importorskip("distributed", reason="the extra distributed is not installed")
dask = pytest.importorskip("dask")

from longleaf import distributed as lld  # noqa: E402 - after the check for the extra
from longleaf.cli import _cluster, main  # noqa: E402 - after the check for the extra
from longleaf.training.cluster import nodes, run, trees  # noqa: E402 - after the check for the extra

GIB = 2**30
SECONDS = 60  # of patience with a busy machine
SMALL, LARGE = "small", "large"


def problem(n_rows=240, n_features=90, n_labels=120, seed=3):
    """Make rows of up to three labels, and of the features that these labels have."""
    rng = np.random.default_rng(seed)
    prototypes = sp.random_array((n_labels, n_features), density=0.1, rng=rng, dtype=np.float32)
    labels = [sorted(set(rng.integers(n_labels, size=rng.integers(1, 4)).tolist())) for _ in range(n_rows)]
    Y = check_labels(labels, n_labels)
    noise = sp.random_array((n_rows, n_features), density=0.02, rng=rng, dtype=np.float32)
    return sp.csr_array(Y @ prototypes + noise).astype(np.float32), labels, Y


X, LABELS, Y = problem()
SETTINGS = {"arity": 3, "max_leaf": 4, "random_state": 5, "n_jobs": 1}


@pytest.fixture(scope="module")
def cluster():
    """Two worker processes, one with less memory."""
    options = {"nthreads": 1, "silence_logs": 50, "dashboard": False, "host": "127.0.0.1"}
    workers = {
        name: {"cls": distributed.Nanny, "options": options | {"memory_limit": limit, "name": name}}
        for name, limit in ((SMALL, GIB), (LARGE, 4 * GIB))
    }
    scheduler = {
        "cls": distributed.Scheduler,
        "options": {"dashboard": False, "dashboard_address": ":0", "port": 0, "host": "127.0.0.1"},
    }
    with distributed.SpecCluster(workers=workers, scheduler=scheduler, silence_logs=50) as made:
        yield made


@pytest.fixture(scope="module")
def client(cluster):
    with distributed.Client(cluster) as made:
        made.wait_for_workers(2, timeout=120)
        made.get_task_stream()  # from now on it is recorded
        yield made


def blocks(matrix, parts=3):
    bounds = np.linspace(0, matrix.shape[0], parts + 1).astype(int)
    return [matrix[begin:end] for begin, end in pairwise(bounds)]


def executions(client, before=()):
    """Give (key, worker) of every task that ran to its end, but those of ``before``.

    Not those since a moment: the scheduler tells these by the workers' clocks, which differ from ours.
    """
    ran = [(one["key"], one["worker"]) for one in client.get_task_stream()]
    return [pair for pair in ran if pair not in before]


def address_of(client, name):
    workers = client.sync(client.scheduler.identity, n_workers=-1)["workers"]
    return next(address for address, one in workers.items() if one["name"] == name)


@pytest.mark.parametrize(
    ("make", "weighted"),
    [
        (lambda: ll.PLT(n_trees=3, **SETTINGS), True),
        (lambda: ll.PLT(n_trees=2, loss="log", tree="merged", **(SETTINGS | {"arity": 4})), False),
        (lambda: ll.BR.pw_dismec(random_state=1), False),
        (lambda: ll.PLT(n_trees=1, tree="huffman", C_scale="linear", **SETTINGS), True),
    ],
    ids=["squared-hinge", "log", "br", "huffman"],
)
def test_the_model_has_the_same_bits_as_on_one_machine(client, make, weighted):
    weight = np.random.default_rng(1).uniform(0.5, 2.0, X.shape[0]) if weighted else None
    alone = make().fit(X, Y, sample_weight=weight)
    shares = []
    spread = lld.fit(make(), X, Y, weight, client=client, partitions=3, progress=shares.append)
    same_model(spread, alone)
    assert shares == sorted(shares)
    assert shares[-1] == pytest.approx(1.0)


def test_rows_may_come_as_array_bag_blocks_or_files(client, tmp_path):
    import dask.array as da
    import dask.bag as db

    alone = ll.PLT(n_trees=1, **SETTINGS).fit(X, Y)
    pairs = list(zip((X[[row]] for row in range(X.shape[0])), LABELS, strict=True))
    parts = list(zip(blocks(X), blocks(Y), strict=True))
    for number, (x, y) in enumerate(parts):
        ll.save_xmlc(tmp_path / f"part{number}.txt", x, y)
    dense, truth = (da.from_array(one.toarray(), chunks=(100, 30)) for one in (X, Y))
    weight = da.ones(X.shape[0], chunks=100)
    sources = {
        "array": (dense, truth, weight),
        "bag": (db.from_sequence(pairs, npartitions=3), None),
        "delayed": tuple([dask.delayed(block) for block in side] for side in zip(*parts, strict=True)),
        "blocks": ([x for x, _ in parts], [y for _, y in parts]),
        "files": (str(tmp_path / "part*.txt"),),
    }
    for name, source in sources.items():
        spread = lld.fit(ll.PLT(n_trees=1, **SETTINGS), *source)
        assert spread.n_labels_ == alone.n_labels_, name
        same_model(spread, alone)


def test_top_k_is_the_same_as_on_one_machine(client, tmp_path):
    model = ll.PLT(n_trees=2, **SETTINGS).fit(X, Y)
    model.save(tmp_path / "model")
    alone = model.top_k(X, 4, tail=1.0)
    for given in (model, tmp_path / "model"):
        found = lld.top_k(given, X, 4, tail=1.0, client=client, partitions=5)
        np.testing.assert_array_equal(found.labels, alone.labels)
        np.testing.assert_array_equal(found.scores, alone.scores)
        np.testing.assert_array_equal(found.evaluations, alone.evaluations)
    sizes = [len(one.labels) for one in lld.iter_top_k(model, blocks(X), client=client)]
    assert sizes == [80, 80, 80]


def test_evaluation_gives_the_same_figures_as_on_one_machine(client, tmp_path):
    model = ll.PLT(n_trees=1, **SETTINGS).fit(X[:200], Y[:200])
    more = [[*row, 130] if number % 9 == 0 else row for number, row in enumerate(LABELS)]  # 130: never seen
    truth = check_labels(more)
    worth = model.inverse_propensity((0.6, 2.0), n_labels=truth.shape[1])
    top = model.top_k(X, 3, tail=0.5, propensity=(0.6, 2.0))
    expected = ll.metrics.evaluate(truth, top, worth, k=(1, 3))
    for number, (x, y) in enumerate(zip(blocks(X), blocks(truth), strict=True)):
        ll.save_xmlc(tmp_path / f"part{number}.txt", x, y)
    options = {"k": (1, 3), "tail": 0.5, "propensity": (0.6, 2.0)}
    for source in ((X, more), (str(tmp_path / "part*.txt"),)):
        assert lld.evaluate(model, *source, **options) == pytest.approx(expected, rel=1e-12)


def test_columns_of_a_dataframe_keep_their_names(client):
    pandas, frames = pytest.importorskip("pandas"), pytest.importorskip("dask.dataframe")
    table = pandas.DataFrame(X[:, :6].toarray(), columns=list("abcdef"))
    truth = pandas.DataFrame(Y[:, :20].toarray())
    spread_table, spread_truth = (frames.from_pandas(one, npartitions=2) for one in (table, truth))
    alone = ll.PLT(n_trees=1, **SETTINGS).fit(table, truth)
    model = lld.fit(ll.PLT(n_trees=1, **SETTINGS), spread_table, spread_truth)
    same_model(model, alone)
    assert model.feature_names_in_.tolist() == list("abcdef")
    np.testing.assert_array_equal(lld.top_k(model, spread_table, 2).labels, alone.top_k(table, 2).labels)
    with pytest.raises(ValueError, match="feature names"):
        lld.top_k(model, spread_table.rename(columns={"a": "z"}), 2)


def test_a_worker_with_little_memory_gets_only_what_fits(client, monkeypatch):
    """The large worker has four times the memory of the small one; the root's rows fit only there."""
    parts = []
    plan = nodes.plan_tasks
    monkeypatch.setattr(nodes, "plan_tasks", lambda *args: parts.extend(found := plan(*args)) or found)
    lld.fit(ll.PLT(n_trees=1, **SETTINGS), X, Y, partitions=2)
    need = max(part.need for part in parts)
    monkeypatch.setattr(nodes, "MEMORY_SHARE", need / (2 * GIB))  # half of it fits on the small worker
    monkeypatch.setattr(trees, "MEMORY_SHARE", 1.0)
    parts.clear()
    before = executions(client)
    spread = lld.fit(ll.PLT(n_trees=1, **SETTINGS), X, Y, partitions=2)
    same_model(spread, ll.PLT(n_trees=1, **SETTINGS).fit(X, Y))
    too_large = [part for part in parts if part.need > need / 2]
    assert too_large
    assert len(too_large) < len(parts)
    # parts are submitted by falling work, so a task's number gives its part
    ordered = sorted(parts, key=lambda part: -part.work)
    trained = [pair for pair in executions(client, before) if "-train-" in pair[0]]
    trained.sort(key=lambda pair: int(pair[0].split("-")[2]))
    assert len(trained) == len(parts)
    for part, (_, worker) in zip(ordered, trained, strict=True):
        assert part.need <= need / 2 or worker == address_of(client, LARGE)


def test_what_fits_nowhere_is_refused_in_one_sentence(client, monkeypatch):
    monkeypatch.setattr(nodes, "MEMORY_SHARE", 1e-9)
    with pytest.raises(lld.ClusterError, match=r"must have \S+ MiB to itself for nodes 13 to .* of tree 0"):
        lld.fit(ll.PLT(n_trees=1, **SETTINGS), X, Y)


def test_faults_come_back_as_one_sentence(client, tmp_path):
    broken = [block.copy() for block in blocks(X)]
    broken[1].data[3] = np.nan
    model = ll.PLT(n_trees=1, **SETTINGS)
    with pytest.raises(ValueError, match=r"^partition 1: X must .* finite"):
        lld.fit(model, broken, blocks(Y))
    with pytest.raises(ValueError, match="same features in every partition: 90 in partition 0; got 80 in"):
        lld.fit(model, [X, X[:, :80]], [Y, Y])
    with pytest.raises(ValueError, match="at least one label"):
        lld.fit(model, X, [[] for _ in LABELS])
    with pytest.raises(ValueError, match=r"client must be .*; got str"):
        model.fit(X, Y, client="tcp://nowhere")
    with pytest.raises(ValueError, match="PLT or BR to be trained on Dask; got ProXML"):
        ll.ProXML().fit(X, Y, client=client)
    (tmp_path / "bad.txt").write_text("1 2 3\n0 1:x\n")
    with pytest.raises(ll.DataError, match=r"bad.txt, line 2"):
        lld.fit(model, [str(tmp_path / "bad.txt")])
    assert not hasattr(model, "weights_")


def nothing_is_left(client):
    deadline = time.monotonic() + SECONDS
    while client.run_on_scheduler(lambda dask_scheduler: len(dask_scheduler.tasks)):
        assert time.monotonic() < deadline, "tasks must not outlive the call"
        time.sleep(0.05)


def test_an_interrupt_or_a_timeout_cancels_all_tasks(client):
    def interrupt(share):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        lld.fit(ll.PLT(n_trees=3, **SETTINGS), X, Y, partitions=3, progress=interrupt)
    nothing_is_left(client)
    with pytest.raises(TimeoutError, match=r"must end within 0\.01 s"):
        lld.fit(ll.PLT(**SETTINGS), X, Y, timeout=0.01)
    nothing_is_left(client)


def test_the_command_line_trains_on_a_cluster(client, tmp_path, monkeypatch, capsys):
    ll.save_xmlc(tmp_path / "train.txt", X, Y)
    command = ["train", str(tmp_path / "train.txt"), "--trees", "1", "--max-leaf", "9", "-o"]
    assert main([*command, str(tmp_path / "alone")]) == 0
    # a process of its own, where no client is open that could stand in for the command's
    own = [*COMMAND, *command, str(tmp_path / "spread"), "--dask", client.scheduler.address]
    ended = subprocess.run(own, capture_output=True, text=True, timeout=120)
    assert ended.returncode == 0, ended.stderr
    alone, spread = (ll.load(tmp_path / name) for name in ("alone", "spread"))
    for name, array in alone.weights_[0].items():
        assert array.tobytes() == spread.weights_[0][name].tobytes()
    monkeypatch.setattr(_cluster, "SECONDS_TO_CONNECT", 0.1)
    capsys.readouterr()
    assert main([*command, str(tmp_path / "none"), "--dask", "tcp://127.0.0.1:9"]) == 2
    message = capsys.readouterr().err
    assert "must be the address of a Dask scheduler" in message
    assert len(message.strip().splitlines()) == 1


def test_a_killed_worker_costs_only_its_tasks(client):
    make = {"n_trees": 3, "loss": "log", "tolerance": 1e-6, "max_epochs": 400} | SETTINGS
    before, killed = executions(client), set()

    def kill_once(share):
        held = {
            address: {key for key in keys if "-train-" in key}
            for address, keys in client.processing().items()
        }
        victim = max(held, key=lambda address: len(held[address]))
        if not killed and held[victim]:
            killed.update(held[victim])
            os.kill(client.run(os.getpid, workers=[victim])[victim], signal.SIGKILL)

    spread = lld.fit(ll.PLT(**make), X, Y, partitions=3, progress=kill_once)
    assert killed, "a worker must have been training"
    same_model(spread, ll.PLT(**make).fit(X, Y))
    ran = [key for key, _ in executions(client, before) if "-train-" in key]
    in_flight = 2 * 2  # two for each thread; what the client had before is not trained again
    assert len(ran) - len(set(ran)) <= in_flight < len(set(ran))
    assert killed <= set(ran)


def test_what_fits_only_on_a_killed_worker_waits_for_it_to_come_back(client, monkeypatch):
    rooms = {SMALL: 0.0, LARGE: np.inf}
    monkeypatch.setattr(run, "_room", lambda worker, share: rooms[worker["name"]])
    client.wait_for_workers(2, timeout=120)
    before, large, killed = executions(client), address_of(client, LARGE), []

    def kill_once(share):
        if not killed:
            killed.append(client.run(os.getpid, workers=[large])[large])
            os.kill(killed[0], signal.SIGKILL)
            while large in client.nthreads():
                time.sleep(0.05)

    spread = lld.fit(ll.PLT(n_trees=2, **SETTINGS), X, Y, partitions=2, progress=kill_once)
    same_model(spread, ll.PLT(n_trees=2, **SETTINGS).fit(X, Y))
    trained = {worker for key, worker in executions(client, before) if "-train-" in key}
    assert trained == {large, address_of(client, LARGE)}
    assert len(trained) == 2
