"""What the tests of checkpoints share: small models, trainings that end early, and what was trained."""

import threading

import numpy as np
import pytest
from sklearn.base import clone

import longleaf as ll
from longleaf.training import resumable
from longleaf.training.queue import UnitQueue
from longleaf.training.solver import NodeTrainer
from longleaf.training.store import WeightStore
from tests.helpers.training import texts

X, Y = texts(n_rows=400, n_features=150, n_labels=60, seed=3)
Y[0] = [*range(60)]  # every label occurs
MANY = [[row] for row in range(400)]  # so many labels that siblings fall apart into several units
OWN = [ll.LabelTree.complete(np.arange(60), arity, 8) for arity in (3, 5)]
MODELS = {
    "log": ll.PLT(n_trees=2, loss="log", arity=2, max_leaf=20, random_state=1, n_jobs=2),
    "squared hinge": ll.PLT(n_trees=3, arity=4, max_leaf=6, random_state=1, n_jobs=2),
    "whole weights": ll.PLT(n_trees=1, arity=2, max_leaf=12, weight_bits=32, random_state=1, n_jobs=2),
    "own trees": ll.PLT(n_trees=2, tree=OWN, random_state=1, n_jobs=2),
    "BR": ll.BR(random_state=1, n_jobs=2),
}


def make(name="log", **changes):
    """Give a new model, changed as asked for."""
    return clone(MODELS[name]).set_params(**changes)


def stop_after(monkeypatch, n_parts, error=KeyboardInterrupt):
    """Let training end with an error when so many parts are saved."""
    save, lock, saved = WeightStore.save, threading.Lock(), []

    def stopping(self, *part):
        with lock:
            if len(saved) == n_parts:
                raise error("enough")
            saved.append(part)
        save(self, *part)

    monkeypatch.setattr(WeightStore, "save", stopping)


def begin(monkeypatch, folder, n_parts, model, labels=Y):
    """Train until so many parts are saved; give their files."""
    with monkeypatch.context() as patch:
        patch.setattr(resumable, "UnitQueue", SmallParts)
        stop_after(patch, n_parts)
        with pytest.raises(KeyboardInterrupt):
            model.fit(X, labels, checkpoint=folder)
    parts = sorted(folder.glob("tree*/nodes-*.bundle"))
    assert len(parts) == n_parts
    return parts


class SmallParts(UnitQueue):
    """Parts of one unit each, however fast the machine is."""

    def _most(self):
        return 0.0


def note_trained(monkeypatch):
    """Give a list to which the nodes of every part that is trained are added."""
    trained, train = [], NodeTrainer.train

    def noting(self, first_node=0, last_node=None, **options):
        trained.append((first_node, last_node))
        return train(self, first_node, last_node, **options)

    monkeypatch.setattr(NodeTrainer, "train", noting)
    return trained
