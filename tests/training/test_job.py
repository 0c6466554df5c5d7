"""Where all trees of an ensemble would be the same tree, one is trained."""

import numpy as np
import pytest

import longleaf as ll
from longleaf.datasets import make_hierarchy
from longleaf.training.job import TrainingJob
from tests.helpers.same import same_model

X, Y = make_hierarchy(400, 300, 40, random_state=1)
TIGHT = {"tolerance": 1e-5, "max_epochs": 2000, "weight_bits": 32, "threshold": 0.0}


def make(**params: object) -> ll.PLT:
    return ll.PLT(**({"random_state": 1, "n_jobs": 1} | params))


@pytest.mark.parametrize(
    ("params", "trees"),
    [
        ({}, 1),
        ({"max_leaf": 40}, 1),
        ({"max_leaf": 39}, 3),
        ({"tree": "unbalanced"}, 1),
        ({"tree": "merged", "max_leaf": 10}, 3),
        ({"tree": "random"}, 1),
        ({"tree": "random", "max_leaf": 10}, 3),
        ({"tree": "complete", "max_leaf": 10}, 1),
        ({"tree": "huffman"}, 1),
        ({"tree": ll.LabelTree.complete(range(40), max_leaf=5)}, 1),
        ({"tree": [ll.LabelTree.complete(range(40), max_leaf=n) for n in (5, 6, 7)]}, 3),
    ],
)
def test_trees_that_differ_are_all_trained(params: dict[str, object], trees: int) -> None:
    model = make(**params).fit(X, Y)
    assert len(model.trees_) == len(model.weights_) == len(model.training_) == trees
    assert ll.plan(X, Y, make(**params)).trees == trees


def test_only_labels_that_occur_count() -> None:
    wide = [[*row.indices, 0] for row in Y]
    lists = [[1000 * label for label in row] for row in wide]
    assert len(make(max_leaf=40).fit(X, lists).trees_) == 1


def test_one_tree_answers_as_three_did(monkeypatch: pytest.MonkeyPatch) -> None:
    one = make(**TIGHT).fit(X, Y)
    monkeypatch.setattr(TrainingJob, "tree_count", lambda self, n_labels: self.n_trees)
    three = make(**TIGHT).fit(X, Y)
    assert (len(one.trees_), len(three.trees_)) == (1, 3)
    rows, labels = np.repeat(np.arange(400), 40), np.tile(np.arange(40), 400)
    np.testing.assert_allclose(
        one.probability(X, rows, labels), three.probability(X, rows, labels), atol=2e-3
    )


def test_the_one_tree_is_the_first_of_the_three() -> None:
    same_model(make(n_trees=3).fit(X, Y), make(n_trees=1).fit(X, Y))


def test_a_saved_model_of_one_tree_trains_again_as_it_did(tmp_path) -> None:
    for tree in ("kmeans", ll.LabelTree.complete(range(40), max_leaf=5)):
        model = make(tree=tree).fit(X, Y)
        model.save(tmp_path / "model", force=True)
        loaded = ll.load(tmp_path / "model")
        assert loaded.n_trees == 3
        np.testing.assert_array_equal(loaded.top_k(X).scores, model.top_k(X).scores)
        same_model(loaded.fit(X, Y), model)


def test_a_checkpoint_of_one_tree_is_gone_on_with(tmp_path) -> None:
    model = make().fit(X, Y, checkpoint=tmp_path / "checkpoint")
    same_model(make().fit(X, Y, checkpoint=tmp_path / "checkpoint"), model)
    same_model(make().fit(X, Y), model)


def test_a_tree_that_outgrows_a_cluster_becomes_the_ensemble_that_was_asked_for() -> None:
    few = Y[:, :20]
    known = np.flatnonzero(np.diff(few.tocsr().indptr))
    model = make(max_leaf=20).fit(X[known], few[known])
    assert len(model.trees_) == 1
    model.partial_fit(X[:50], Y[:50, :20].tolil().rows.tolist())
    assert len(model.trees_) == 1
    model.partial_fit(X, Y)
    assert len(model.trees_) == len(model.weights_) == 3
    shapes = {tuple(tree.label.tolist()) for tree in model.trees_}
    assert len(shapes) == 3
    assert model.score(X, Y) > 0.8
