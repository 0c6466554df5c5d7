"""Plans: exact where the tree says it, close where a sample does; and training within a limit of memory."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest

import longleaf as ll
from longleaf import _core
from longleaf._validation import check_features, check_labels
from longleaf.datasets import make_hierarchy, make_topics
from longleaf.io.storage import folder_bytes
from longleaf.training.execution import choose_execution
from longleaf.training.memory import ExecutionPlan, Sizes, UnitSize, account, parse_memory
from longleaf.training.resumable import train_resumably
from longleaf.training.sampling import estimate_centroid_entries, estimate_tree, thinned
from longleaf.training.scratch import scratch_files
from longleaf.training.solver import NodeTrainer
from longleaf.training.store import WeightStore
from longleaf.trees.clustering import rows_of_labels
from tests.helpers.commands import complaint, run, run_well
from tests.helpers.tables import FIELDS, table, write_jsonl


@pytest.fixture(scope="module")
def data() -> tuple[object, object]:
    return make_hierarchy(2000, 3000, 400, random_state=1)


@pytest.fixture(scope="module")
def model(data: tuple[object, object]) -> ll.PLT:
    return ll.PLT(n_trees=2, arity=4, max_leaf=10, random_state=1, n_jobs=2).fit(*data)


def trainer_of(model: ll.PLT, X: object, Y: object) -> NodeTrainer:
    rows, labels = check_features(X), check_labels(Y)
    return NodeTrainer.prepare(rows, labels, model.trees_[0], model._solver_settings(), seed=1)


@pytest.mark.parametrize(
    ("text", "want"),
    [("4G", 4 * 10**9), ("1.5 GiB", 3 << 29), ("500m", 5 * 10**8), ("7", 7), (7, 7), ("2KB", 2000)],
)
def test_sizes_are_read_as_people_write_them(text: str | int, want: int) -> None:
    assert parse_memory(text) == want


@pytest.mark.parametrize("text", ["", "G", "-1G", "0", "1X", "1iB", "nan"])
def test_what_is_no_size_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="memory must be a size above 0"):
        parse_memory(text)


def test_an_account_worked_by_hand() -> None:
    unit = UnitSize(rows=100, entries=1024, features=50, weights=10)
    sizes = Sizes(100, 60, 20, 200, 500, 20, 2, 41, 300, 3, 4000.0, [unit])
    of_rows = 12 * 100 + 8 * 100 + 8 * 200
    lists = 4 * 300 + 24 * 41 + 4 * 60
    place = 4 * 60 + 4 * 100 + 8 * 1024 + (29 + 192) * 100 + 72 * 50
    assert account(sizes, ExecutionPlan(1))["training"] == of_rows + lists + place + 18_000
    assert account(sizes, ExecutionPlan(2))["training"] == account(sizes, ExecutionPlan(1))["training"]
    on_disk = 4 * 60 + 4 * 100 + 29 * 100 + 8 * 50
    execution = ExecutionPlan(1, spill=True, scratch=True)
    entries = 34 * 10  # more than 2 * 4000 / 32
    assert account(sizes, execution)["training"] == of_rows + lists + on_disk + entries
    clustering = 5 * 200 + 12 * 20 + 8 * 500 + 8 * 20 + 8 * 60 + 8 * 500 + 16 * 60 + 12 * 20
    assert account(sizes, ExecutionPlan(1))["clustering"] == of_rows + clustering


def test_nodes_and_levels_are_those_of_the_model(data: tuple[object, object], model: ll.PLT) -> None:
    planned = ll.plan(*data, model)
    assert planned.nodes == sum(tree.n_nodes for tree in model.trees_)
    depth = model.trees_[0].depth
    assert [level.nodes for level in planned.levels] == np.bincount(depth)[1:].tolist()
    assert planned.levels[0].rows == 2000
    trainer = trainer_of(model, *data)
    below = depth[np.unique(trainer.tree.parent[1:])] == 1
    sizes = np.diff(trainer.node_indptr)[np.unique(trainer.tree.parent[1:])]
    assert planned.levels[1].rows == sizes[below].sum()


@pytest.mark.parametrize("make", [make_hierarchy, make_topics])
def test_the_size_of_a_model_is_foretold(make: object, tmp_path: Path) -> None:
    X, Y = make(4000, 5000, 1500, random_state=3)
    estimator = ll.PLT(n_trees=2, arity=8, max_leaf=20, random_state=1)
    planned = ll.plan(X, Y, estimator, share=0.05)
    estimator.fit(X, Y).save(tmp_path / "m.ll")
    assert planned.model_bytes == pytest.approx(folder_bytes(tmp_path / "m.ll"), rel=0.25)


def test_a_whole_sample_is_the_tree_itself(data: tuple[object, object], model: ll.PLT) -> None:
    trainer = trainer_of(model, *data)
    found = estimate_tree(trainer, 1.0, np.random.default_rng(1))
    whole, _ = trainer.train(threads=1)
    assert found.weights.sum() == pytest.approx(whole["weights"].sum())
    assert found.trained == pytest.approx(1.0)


def test_the_root_is_judged_by_some_of_its_rows(data: tuple[object, object], model: ll.PLT) -> None:
    trainer = trainer_of(model, *data)
    fewer = thinned(trainer, 0.25, 5, np.random.default_rng(1))
    kept = set(fewer.node_rows[: fewer.node_indptr[1]])
    assert 400 < len(kept) < 600
    for node in range(1, 5):
        rows = trainer.node_rows[trainer.node_indptr[node] : trainer.node_indptr[node + 1]]
        got = fewer.node_rows[fewer.node_indptr[node] : fewer.node_indptr[node + 1]]
        assert got.tolist() == [row for row in rows if row in kept]


def test_centroids_are_counted_from_a_sample(data: tuple[object, object]) -> None:
    rows, labels = check_features(data[0]), check_labels(data[1])
    of_labels = rows_of_labels(labels, np.arange(400))
    found, _ = estimate_centroid_entries(
        rows.csr, rows.n_features, rows.scale, of_labels, np.random.default_rng(1)
    )
    whole = _core.label_centroids(*rows.csr, rows.n_features, rows.scale, *of_labels, 1)
    assert found == pytest.approx(len(whole[1]), rel=0.02)


def test_rows_of_labels_leave_out_labels_that_never_occur() -> None:
    labels = check_labels([[0, 3], [3], [], [0]], 5)
    indptr, rows = rows_of_labels(labels, np.array([0, 3]))
    assert indptr.tolist() == [0, 2, 4]
    assert rows.tolist() == [0, 3, 0, 1]


@pytest.mark.native
@pytest.mark.parametrize("scratch", [False, True])
def test_what_goes_to_disk_gives_the_same_bits(
    data: tuple[object, object], model: ll.PLT, tmp_path: Path, scratch: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("longleaf.training.scratch.SMALLEST_SCRATCH", 1)
    trainer = trainer_of(model, *data)
    whole, facts = trainer.train(threads=2)
    shares: list[float] = []
    with scratch_files(tmp_path if scratch else None):
        weights, took = train_resumably(trainer, WeightStore(tmp_path), 0, 2, shares.append)
    for name, array in whole.items():
        np.testing.assert_array_equal(weights[name], array)
    assert took == facts
    assert shares == sorted(shares)


def test_the_fastest_way_that_fits_is_taken() -> None:
    unit = UnitSize(rows=1000, entries=100_000, features=50, weights=10)
    sizes = Sizes(1000, 60, 20, 200, 0, 20, 2, 41, 300, 3, 1e6, [unit, unit])
    ways = [ExecutionPlan(2), ExecutionPlan(2, spill=True), ExecutionPlan(1, spill=True)]
    ways += [ExecutionPlan(1, spill=True, scratch=True)]
    needs = [max(account(sizes, way).values()) for way in ways]
    assert needs == sorted(set(needs), reverse=True)
    for way, need in zip(ways[:3], needs, strict=False):
        assert choose_execution(sizes, 2, 0, need) == (way, account(sizes, way))
    assert choose_execution(sizes, 2, 0, needs[3])[0].scratch
    assert choose_execution(sizes, 2, 0, None)[0] == ExecutionPlan(2)
    with pytest.raises(ValueError, match="Training must have"):
        choose_execution(sizes, 2, 0, needs[3] // 2)


def test_a_limit_is_kept_or_refused_in_a_sentence(data: tuple[object, object], model: ll.PLT) -> None:
    plain = ll.plan(*data, model)
    assert plain.execution == ExecutionPlan(2)
    limit = plain.memory_bytes + 50 * 10**6  # the process itself grows a little from plan to plan
    assert ll.plan(*data, model, memory=limit).memory_bytes <= limit
    with pytest.raises(ValueError, match=r"^Training must have \d+ MB .*; memory is 1 MB\.$"):
        ll.plan(*data, model, memory="1M")
    with pytest.raises(ValueError, match="Training must have"):
        ll.PLT(n_trees=1).fit(*data, memory="1M")


def test_a_model_trained_within_a_limit_is_the_same_model(
    data: tuple[object, object], model: ll.PLT, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    on_disk = (ExecutionPlan(1, spill=True, scratch=True), {"clustering": 0, "training": 0})
    monkeypatch.setattr(sys.modules["longleaf.training.plan"], "choose_execution", lambda *_: on_disk)
    limited = ll.PLT(**model.get_params()).fit(*data, memory="100G", scratch=tmp_path)
    assert not list(tmp_path.iterdir())  # the files are gone, the mapped weights stay
    for mine, want in zip(limited.weights_, model.weights_, strict=True):
        for name, array in want.items():
            np.testing.assert_array_equal(mine[name], array)
    np.testing.assert_array_equal(limited.top_k(data[0][:5]).labels, model.top_k(data[0][:5]).labels)
    limited.save(tmp_path / "m.ll")
    assert ll.load(tmp_path / "m.ll").top_k(data[0][:5]).labels.shape == (5, 5)


def test_the_command_says_it_all(data: tuple[object, object], tmp_path: Path) -> None:
    ll.save_xmlc(tmp_path / "train.txt", *data)
    said = run_well("plan", tmp_path / "train.txt", "--trees", 1, "--arity", 4, "--max-leaf", 10)
    for word in ("level", "nodes", "peak memory", "model size", "time"):
        assert word in said
    found = json.loads(
        run_well("plan", tmp_path / "train.txt", "--json", "--preset", "paper", "--threads", 1)
    )
    assert found["trees"] == 3
    assert found["threads"] == 1
    run_well("train", tmp_path / "train.txt", "-o", tmp_path / "m.ll", "--trees", 1, "--memory", "8G")
    refused = run("train", tmp_path / "train.txt", "-o", tmp_path / "x.ll", "--memory", "2M")
    assert refused.status == 2
    assert "Training must have" in refused.stderr.splitlines()[-1]
    assert not (tmp_path / "x.ll").exists()
    assert "--memory must be a size" in complaint("plan", tmp_path / "train.txt", "--memory", "much")


def test_a_table_is_planned_as_it_would_be_converted_and_trained(tmp_path: Path) -> None:
    write_jsonl(tmp_path / "train.jsonl", table(300))
    words = (*FIELDS, "--field", "title=2", "--min-df", 2)
    trees = ("--trees", 1, "--arity", 2, "--max-leaf", 2, "--threads", 1)
    run_well("convert", tmp_path / "train.jsonl", *words, "-o", tmp_path / "store")
    run_well("train", tmp_path / "train.jsonl", *words, *trees, "-o", tmp_path / "m.ll")
    planned, converted = (
        json.loads(run_well("plan", path, *options, *trees, "--json"))
        for path, options in ((tmp_path / "train.jsonl", words), (tmp_path / "store", ()))
    )
    for name in ("nodes", "levels", "trees", "model_bytes"):
        assert planned[name] == converted[name]
    assert planned["nodes"] == sum(tree.n_nodes for tree in ll.load(tmp_path / "m.ll").estimator_.trees_)
