"""A training with a checkpoint may end at any moment; run again, it ends in the same bits as any other."""

import pickle
import shutil
import signal
import subprocess
import sys
from itertools import pairwise

import numpy as np
import pytest

import longleaf as ll
from longleaf.training.checkpoint import CheckpointError
from longleaf.training.store import WeightStore
from tests.helpers.checkpoints import MANY, MODELS, X, Y, begin, make, note_trained, stop_after
from tests.helpers.data import ROOT
from tests.helpers.same import same_model


@pytest.mark.parametrize("name", MODELS)
def test_a_checkpoint_changes_nothing_in_the_model(tmp_path, name):
    same_model(make(name).fit(X, Y, checkpoint=tmp_path / "ck"), make(name).fit(X, Y))


@pytest.mark.parametrize(("name", "labels"), [("log", Y), ("squared hinge", Y), ("BR", MANY)])
@pytest.mark.parametrize("n_parts", [0, 1, 2])
def test_a_training_that_was_stopped_goes_on(tmp_path, monkeypatch, name, labels, n_parts):
    begin(monkeypatch, tmp_path / "ck", n_parts, make(name, n_jobs=1), labels)
    kept = make(name, n_jobs=3).fit(X, labels, checkpoint=tmp_path / "ck")
    same_model(kept, make(name, n_jobs=1).fit(X, labels))


def test_weights_of_rows_are_part_of_it(tmp_path, monkeypatch):
    weight, folder = np.linspace(0.5, 2, 400), tmp_path / "ck"
    with monkeypatch.context() as patch:
        stop_after(patch, 1)
        with pytest.raises(KeyboardInterrupt):
            make().fit(X, Y, weight, checkpoint=folder)
    same_model(make().fit(X, Y, weight, checkpoint=folder), make().fit(X, Y, weight))
    with pytest.raises(CheckpointError, match="other data: its sample_weight differs"):
        make().fit(X, Y, checkpoint=folder)


def test_only_what_is_missing_is_trained(tmp_path, monkeypatch):
    parts = begin(monkeypatch, tmp_path / "ck", 3, make(n_trees=1))
    trained = note_trained(monkeypatch)
    model = make(n_trees=1).fit(X, Y, checkpoint=tmp_path / "ck")
    kept = [tuple(map(int, part.stem.split("-")[1:])) for part in parts]
    covered = sorted(kept + trained)
    assert len(kept) == 3
    assert covered[0][0] == 0
    assert covered[-1][1] == model.trees_[0].n_nodes
    assert all(a[1] == b[0] for a, b in pairwise(covered))


def test_a_finished_training_is_not_repeated(tmp_path, monkeypatch):
    model = make("squared hinge").fit(X, Y, checkpoint=tmp_path / "ck")
    trained = note_trained(monkeypatch)
    monkeypatch.setattr("longleaf._core.cluster_labels", None)  # nor are the trees built
    same_model(make("squared hinge").fit(X, Y, checkpoint=tmp_path / "ck"), model)
    assert trained == []


def test_trees_are_kept_as_they_are_built(tmp_path, monkeypatch):
    folder = tmp_path / "ck"
    with monkeypatch.context() as patch:
        save = WeightStore.save_tree

        def save_one(self, tree, label_tree):
            if tree == 1:
                raise KeyboardInterrupt
            save(self, tree, label_tree)

        patch.setattr(WeightStore, "save_tree", save_one)
        with pytest.raises(KeyboardInterrupt):
            make().fit(X, Y, checkpoint=folder)
    assert [path.parent.name for path in folder.glob("*/tree.bundle")] == ["tree0"]
    same_model(make().fit(X, Y, checkpoint=folder), make().fit(X, Y))


def test_seeds_left_to_chance_are_those_of_the_checkpoint(tmp_path, monkeypatch):
    chance = {"random_state": None, "max_leaf": 6}  # of so many clusters, no two seeds make the same
    begin(monkeypatch, tmp_path / "ck", 1, make(**chance))
    model = make(**chance).fit(X, Y, checkpoint=tmp_path / "ck")
    same_model(make(**chance).fit(X, Y, checkpoint=tmp_path / "ck"), model)
    assert not np.array_equal(make(**chance).fit(X, Y).trees_[0].label, model.trees_[0].label)


def test_the_model_outlives_its_checkpoint(tmp_path):
    model = make().fit(X, Y, checkpoint=tmp_path / "ck")
    shutil.rmtree(tmp_path / "ck")
    model.save(tmp_path / "m")
    plain = make().fit(X, Y)
    for again in (model, ll.load(tmp_path / "m"), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(again.top_k(X).scores, plain.top_k(X).scores)


KILLED = """
import itertools, os, random, signal, sys
import numpy as np
import longleaf as ll
from longleaf.training import resumable
from tests.helpers.checkpoints import MANY, SmallParts, X, make

def kill_at(n, folder):
    # what a kill leaves behind is files: between two uses of them one moment is as good as another
    count = itertools.count(1)
    def hook(event, arguments):
        touches = event in ("open", "os.rename", "os.remove", "os.mkdir")
        if touches and str(arguments[0]).startswith(folder) and next(count) == n:
            os.kill(os.getpid(), signal.SIGKILL)
    sys.addaudithook(hook)

chance, name, folder = random.Random(11), sys.argv[1], sys.argv[2]
kinds = {"log": {"loss": "log"}, "squared hinge": {"loss": "squared-hinge"}}
train = lambda **where: make(max_leaf=8, **kinds[name]).fit(X, MANY, **where)
plain = train()
for _ in range(12):
    child = os.fork()
    if child == 0:
        resumable.UnitQueue = SmallParts
        kill_at(chance.randint(1, 40), folder)
        train(checkpoint=folder)
        os._exit(0)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
kept = train(checkpoint=folder)
for a, b in zip(plain.weights_, kept.weights_, strict=True):
    assert all(np.array_equal(a[name], b[name]) for name in a)
assert plain.training_ == kept.training_
"""


@pytest.mark.parametrize("loss", ["log", "squared hinge"])
def test_killed_at_any_use_of_a_file_it_ends_in_the_same_bits(tmp_path, loss):
    # one process that forks, so that Python starts once and not for every kill
    command = [sys.executable, "-c", KILLED, loss, str(tmp_path / "ck")]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600)
    assert result.returncode == 0, result.stderr
    assert result.stdout.split() == [str(-signal.SIGKILL)] * 12


# ------------------------------------------------------------ damage


def damage(path, how):
    raw = bytearray(path.read_bytes())
    if how == "flipped":
        raw[len(raw) // 2] ^= 1
    path.write_bytes({"flipped": raw, "cut": raw[: len(raw) // 2], "empty": b""}[how])


@pytest.mark.parametrize("how", ["flipped", "cut", "empty"])
def test_a_damaged_part_is_trained_again(tmp_path, monkeypatch, caplog, how):
    parts = begin(monkeypatch, tmp_path / "ck", 4, make())
    damage(parts[1], how)
    damage(tmp_path / "ck" / "tree1" / "tree.bundle", how)
    (parts[0].parent / "nodes-1-2.bundle.unfinished").write_bytes(b"half")
    trained = note_trained(monkeypatch)
    same_model(make().fit(X, Y, checkpoint=tmp_path / "ck"), make().fit(X, Y))
    first, last = map(int, parts[1].stem.split("-")[1:])
    assert any(a <= first and last <= b for a, b in trained)
    assert caplog.text.count("is damaged") == 2
    assert not list((tmp_path / "ck").rglob("*.unfinished"))


def test_damaged_weights_of_a_finished_tree_are_trained_again(tmp_path):
    model = make().fit(X, Y, checkpoint=tmp_path / "ck")
    damage(tmp_path / "ck" / "tree0" / "weights.bundle", "flipped")
    same_model(make().fit(X, Y, checkpoint=tmp_path / "ck"), make().fit(X, Y))
    assert model.weights_


def test_killed_between_joining_and_tidying_up(tmp_path, monkeypatch):
    folder = tmp_path / "ck"
    parts = begin(monkeypatch, folder, 3, make(n_trees=1))
    shutil.copytree(folder, tmp_path / "before")
    make(n_trees=1).fit(X, Y, checkpoint=folder)
    for part in parts:
        shutil.copy(tmp_path / "before" / part.relative_to(folder), part)
    same_model(make(n_trees=1).fit(X, Y, checkpoint=folder), make(n_trees=1).fit(X, Y))
    assert not any(part.exists() for part in parts)


def test_a_full_disk_leaves_the_checkpoint_usable(tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        stop_after(patch, 1, OSError)
        with pytest.raises(OSError, match="enough"):
            make().fit(X, Y, checkpoint=tmp_path / "ck")
    same_model(make().fit(X, Y, checkpoint=tmp_path / "ck"), make().fit(X, Y))
