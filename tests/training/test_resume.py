"""Which checkpoints are refused, and how taggers, commands and parts of trees use them."""

import json
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

import longleaf as ll
from longleaf._validation import check_features, check_labels
from longleaf.baselines.pfastrexml import PfastreXML
from longleaf.baselines.proxml import ProXML
from longleaf.training import checkpoint, resumable
from longleaf.training.checkpoint import CheckpointError, open_checkpoint
from longleaf.training.queue import UnitQueue
from longleaf.training.solver import NodeTrainer
from longleaf.training.store import WeightStore
from longleaf.weights.join import join_ranges
from tests.helpers.checkpoints import OWN, SmallParts, X, Y, make, stop_after
from tests.helpers.commands import complaint, fill, run, run_well
from tests.helpers.same import same_model

# ------------------------------------------------------------ refusals


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"C": 2.0}, "a training with C=None, this one has C=2.0"),
        ({"n_trees": 3}, "a training with n_trees=2, this one has n_trees=3"),
        ({"tree": "random"}, "a training with tree='kmeans', this one has tree='random'"),
        ({"tree": OWN}, "a training with tree='kmeans', this one has tree="),
        ({"random_state": 2}, "a training with another random_state"),
    ],
)
def test_other_settings_are_refused(tmp_path, changes, sentence):
    make().fit(X, Y, checkpoint=tmp_path / "ck")
    with pytest.raises(CheckpointError) as caught:
        make(**changes).fit(X, Y, checkpoint=tmp_path / "ck")
    assert str(caught.value).startswith(f"The checkpoint in {tmp_path / 'ck'} is of {sentence}")
    assert str(caught.value).endswith(": use another folder, or remove it to start over.")


def test_other_data_models_and_versions_are_refused(tmp_path, monkeypatch):
    folder = tmp_path / "ck"
    make().fit(X, Y, checkpoint=folder)
    other = X.copy()
    other.data[7] *= 1.5
    with pytest.raises(CheckpointError, match="is of other data: its features differ: use"):
        make().fit(other, Y, checkpoint=folder)
    with pytest.raises(CheckpointError, match="is of other data: its labels differ: use"):
        make().fit(X, [[0], *Y[1:]], checkpoint=folder)
    with pytest.raises(CheckpointError, match="is of a plt model, this is a br model: use"):
        ll.BR().fit(X, Y, checkpoint=folder)
    with monkeypatch.context() as patch:
        patch.setattr(checkpoint, "__version__", "9.9")
        with pytest.raises(CheckpointError, match=r"is of longleaf .*, this is 9.9: use"):
            make().fit(X, Y, checkpoint=folder)
    make(k=3, n_jobs=1).fit(X, Y, checkpoint=folder)  # what does not matter may differ


def test_other_trees_of_the_users_own_are_refused(tmp_path):
    make("own trees").fit(X, Y, checkpoint=tmp_path / "ck")
    with pytest.raises(CheckpointError, match="a training with tree="):
        make("own trees", tree=OWN[::-1]).fit(X, Y, checkpoint=tmp_path / "ck")


def test_a_folder_that_is_no_checkpoint_is_refused_and_stays(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    for path, sentence in [
        (tmp_path, "must be a checkpoint, an empty folder or a new one; it holds notes.txt"),
        (tmp_path / "notes.txt", "A checkpoint is a folder"),
        (tmp_path / "a" / "b", "parent folder must exist"),
    ]:
        with pytest.raises(CheckpointError, match=sentence):
            make().fit(X, Y, checkpoint=path)
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


def test_a_manifest_that_cannot_be_read_is_refused(tmp_path):
    folder = tmp_path / "ck"
    make().fit(X, Y, checkpoint=folder)
    manifest = folder / "checkpoint.json"
    whole = json.loads(manifest.read_text())
    manifest.write_text(json.dumps(whole | {"format_version": 1}))
    with pytest.raises(CheckpointError, match="must have format 7; got 1"):
        make().fit(X, Y, checkpoint=folder)
    manifest.write_text("{")
    with pytest.raises(CheckpointError, match=r"checkpoint.json is damaged"):
        make().fit(X, Y, checkpoint=folder)


def test_a_checkpoint_serves_one_training_at_a_time(tmp_path):
    folder = tmp_path / "ck"
    make().fit(X, Y, checkpoint=folder)
    training = json.loads((folder / "checkpoint.json").read_text())["training"]
    with (
        open_checkpoint(folder, training, any_seeds=False),
        pytest.raises(CheckpointError, match="is in use by another training"),
    ):
        make().fit(X, Y, checkpoint=folder)
    make().fit(X, Y, checkpoint=folder)


@pytest.mark.parametrize("model", [ProXML(), PfastreXML()])
def test_models_that_cannot_resume_say_so(tmp_path, model):
    name = type(model).__name__
    with pytest.raises(
        ValueError, match=f"checkpoint must be None for {name}, whose training cannot be divided."
    ):
        model.fit(X, Y, checkpoint=tmp_path / "ck")
    assert not (tmp_path / "ck").exists()


# ------------------------------------------------------------ progress, texts, the command line


def test_progress_begins_where_the_training_was_stopped(tmp_path, monkeypatch):
    make().fit(X, Y, checkpoint=tmp_path / "ck")
    shares = []
    make().fit(X, Y, checkpoint=tmp_path / "ck", progress=shares.append)
    assert shares == sorted(shares)
    assert {*shares} == {0.5, 1.0}  # each tree is done when it is looked at


def test_an_error_in_progress_stops_the_training(tmp_path):
    def fail(share):
        raise RuntimeError("seen enough")

    with pytest.raises(RuntimeError, match="seen enough"):
        make().fit(X, Y, checkpoint=tmp_path / "ck", progress=fail)
    same_model(make().fit(X, Y, checkpoint=tmp_path / "ck"), make().fit(X, Y))


def test_a_tagger_resumes(tmp_path, monkeypatch):
    sentences = [f"word{i % 40} word{i % 5} word{i % 3}" for i in range(120)]
    tags = [[f"t{i % 40}", f"t{i % 5}"] for i in range(120)]
    tagger = ll.Tagger(make(n_trees=1, max_leaf=2))
    with monkeypatch.context() as patch:
        stop_after(patch, 1)
        patch.setattr(resumable, "UnitQueue", SmallParts)
        with pytest.raises(KeyboardInterrupt):
            tagger.fit(sentences, tags, checkpoint=tmp_path / "ck")
    kept = ll.Tagger(make(n_trees=1, max_leaf=2)).fit(sentences, tags, checkpoint=tmp_path / "ck")
    same_model(kept.estimator_, ll.Tagger(make(n_trees=1, max_leaf=2)).fit(sentences, tags).estimator_)


def test_the_command_line_resumes_and_refuses(tmp_path: Path) -> None:
    folder = fill(tmp_path)
    command = ("train", folder / "train.txt", "--max-leaf", 2, "--checkpoint", folder / "ck")
    for again in ((), ("--force",)):
        run_well(*command, "-o", folder / "kept.ll", *again)
    whole, kept = (
        {path.relative_to(folder / name): path.read_bytes() for path in (folder / name).rglob("*.npy")}
        for name in ("model.ll", "kept.ll")
    )
    assert whole == kept
    refused = run(*command, "-o", folder / "other.ll", "--max-leaf", 3)
    assert refused.status == 2
    assert "a training with max_leaf=2, this one has max_leaf=3" in refused.stderr.splitlines()[-1]
    assert "it holds" in complaint(*command[:-1], folder, "-o", folder / "other.ll")


# ------------------------------------------------------------ parts


def test_the_queue_hands_out_every_unit_once_and_the_costliest_first():
    first_node = np.arange(0, 210, 2, dtype=np.int32)
    cost = np.random.default_rng(0).integers(1, 50, 104).astype(float)
    queue = UnitQueue(first_node, cost, threads=2)
    queue.skip(10, 20)
    parts = []
    while (part := queue.take()) is not None:
        assert cost[part[0] : part[1]].max() == max(
            cost[u] for u in range(104) if not any(a <= u < b for a, b in [(5, 10), *parts])
        )
        parts.append(part)
        queue.finish(*part, seconds=cost[slice(*part)].sum() / 200)
    covered = sorted([(5, 10), *parts])
    assert [covered[0][0], covered[-1][1]] == [0, 104]
    assert all(a[1] == b[0] for a, b in pairwise(covered))
    assert queue.share() == pytest.approx(1)
    assert parts[0][1] - parts[0][0] == 1  # nothing is known of the speed yet
    assert max(cost[slice(*part)].sum() for part in parts) == pytest.approx(200, abs=50)  # a second each


def test_parts_on_disk_join_as_parts_in_memory(tmp_path):
    trainer = _trainer(make("whole weights"))
    first, _ = trainer.units()
    cuts = [0, int(first[2]), int(first[3]), trainer.tree.n_nodes]
    parts = [trainer.train(a, b, threads=1) for a, b in pairwise(cuts)]
    store = WeightStore(tmp_path)
    for (weights, facts), start in reversed(list(zip(parts, cuts[:-1], strict=True))):
        store.save(4, start, weights, facts)
    weights, facts = store.joined(4)
    expected = join_ranges([weights for weights, _ in parts])
    assert list(weights) == list(expected)
    for name, array in expected.items():
        np.testing.assert_array_equal(weights[name], array, err_msg=name)
    assert facts == trainer.train(threads=1)[1]
    again, _ = WeightStore(tmp_path).joined(4)
    np.testing.assert_array_equal(again["bytes"], expected["bytes"])


def test_parts_with_a_gap_are_not_joined(tmp_path):
    trainer = _trainer(make())
    first, _ = trainer.units()
    store = WeightStore(tmp_path)
    store.save(0, int(first[1]), *trainer.train(int(first[1]), threads=1))
    with pytest.raises(ValueError, match="must follow one another from node 0 on"):
        store.joined(0)


def _trainer(model):
    tree = ll.LabelTree.complete(np.arange(60), 2, 20)
    return NodeTrainer.prepare(check_features(X), check_labels(Y), tree, model._solver_settings(), seed=3)
