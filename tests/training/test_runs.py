"""Training by parts: any split of the nodes, any subset of rows that has theirs, gives the same bits."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

import longleaf as ll
from longleaf import _core
from longleaf._validation import check_features, check_labels
from longleaf.training.solver import NodeTrainer, SolverSettings, node_rows
from longleaf.weights.join import join_ranges

pytestmark = pytest.mark.native


def settings(**changes):
    given = {
        "loss": "squared-hinge",
        "C": 1.0,
        "tolerance": 0.01,
        "max_epochs": 200,
        "threshold": 0.01,
        "bias": 1.0,
        "positive_weight": 1.0,
        "C_scale": "log",
        "weight_bits": 32,
    }
    return SolverSettings(**(given | changes))


def problem(rows=300, features=60, labels=90, seed=1):
    random = np.random.default_rng(seed)
    X = sp.random_array((rows, features), density=0.15, rng=random, format="csr", dtype=np.float32)
    Y = sp.csr_array(
        (random.random((rows, labels)) < 0.02) | (np.arange(rows)[:, None] % labels == np.arange(labels))
    )
    return check_features(X, normalize=True), check_labels(Y)


def same(a, b):
    assert a.keys() == b.keys()
    for name in a:
        assert a[name].dtype == b[name].dtype, name
        np.testing.assert_array_equal(a[name], b[name], err_msg=name)


def tree_of(labels, arity=3, max_leaf=5):
    return ll.LabelTree.complete(np.arange(labels), arity, max_leaf)


@pytest.mark.parametrize("loss", ["log", "squared-hinge"])
@pytest.mark.parametrize("arity", [2, 7])
@pytest.mark.parametrize("weight_bits", [8, 32])
def test_parts_join_to_the_whole(loss, arity, weight_bits):
    rows, Y = problem()
    trainer = NodeTrainer.prepare(
        rows, Y, tree_of(90, arity), settings(loss=loss, weight_bits=weight_bits), seed=3
    )
    whole, facts = trainer.train(threads=2)
    first, costs = trainer.units()
    assert first[0] == 0
    assert first[-1] == trainer.tree.n_nodes
    assert len(first) == len(costs) + 1 > 3
    cuts = [first[0], first[1], first[-2], first[-1]]
    parts = [trainer.train(a, b, threads=1) for a, b in itertools.pairwise(cuts)]
    same(join_ranges([weights for weights, _ in parts]), whole)
    assert sum(part["row_visits"] for _, part in parts) == facts["row_visits"]


@pytest.mark.parametrize("size", [(500, 60), (12_000, 600)], ids=["cached", "visited in runs"])
def test_a_wide_family_falls_apart_too(size):
    rows, Y = problem(*size, labels=450)
    trainer = NodeTrainer.prepare(rows, Y, tree_of(450, 2, 450), settings(), seed=3)
    first, _ = trainer.units()
    assert len(first) == 4  # 450 siblings in chunks of 192
    parts = [trainer.train(a, b, threads=1)[0] for a, b in itertools.pairwise(first)]
    same(join_ranges(parts), trainer.train(threads=1)[0])


@pytest.mark.parametrize(
    ("arity", "begins"),
    [
        (2, [0, 15, 127, 1023, 1039, 1055]),  # 2 + 4 + 8 nodes, 8 and 64 times as many, then families
        (3, [0, 13, 121, 136, 151]),  # 3 + 9, and after 9 times as many there are too many subtrees
        (5, [0, 16, 31, 46]),  # 25 grandchildren do not fit beside the children
        (16, [0, 17, 33, 49]),
    ],
)
def test_levels_of_few_nodes_are_one_unit_at_the_top(arity, begins):
    tree = tree_of(1024, arity, 1)
    first, _ = _core.training_units(np.zeros(tree.n_nodes + 1, np.int64), tree.first_child, tree.label)
    assert first[: len(begins)].tolist() == begins
    assert first[-1] == tree.n_nodes


def test_a_part_needs_only_the_rows_of_its_families():
    rows, Y = problem()
    trainer = NodeTrainer.prepare(rows, Y, tree_of(90, max_leaf=20), settings(), seed=3)
    first, _ = trainer.units()
    begin, end = first[-2], first[-1]
    families = np.unique(trainer.tree.parent[begin:end])
    members = np.split(trainer.node_rows, trainer.node_indptr[1:-1])
    needed = np.unique(np.concatenate([members[v] for v in families]))
    assert len(needed) < rows.n_rows
    X = sp.csr_array((rows.csr[2], rows.csr[1], rows.csr[0]), shape=(rows.n_rows, rows.n_features))
    few = NodeTrainer.prepare(
        check_features(X[needed], normalize=True), Y[needed], trainer.tree, trainer.settings, seed=3
    )
    alone = replace(few, costs=trainer.costs)
    same(alone.train(begin, end, threads=1)[0], trainer.train(begin, end, threads=1)[0])


def test_rows_that_lack_the_last_labels_are_held_by_the_same_nodes():
    _, Y = problem()
    few = Y[:, :40].tocsr()
    wide = few.copy()
    wide.resize(Y.shape)
    for narrow, whole in zip(node_rows(tree_of(90), few), node_rows(tree_of(90), wide), strict=True):
        np.testing.assert_array_equal(narrow, whole)


def test_a_range_that_cuts_a_unit_is_refused():
    rows, Y = problem()
    trainer = NodeTrainer.prepare(rows, Y, tree_of(90), settings(), seed=3)
    first, _ = trainer.units()
    with pytest.raises(ValueError, match="where units begin"):
        trainer.train(int(first[1]) + 1, int(first[-1]), threads=1)
    with pytest.raises(ValueError, match="range of the tree's nodes"):
        trainer.train(5, int(first[-1]) + 1, threads=1)


def test_a_factor_weighs_positive_rows():
    """At weight 3, the positive rows of a leaf count as if an error on its label cost three times as much."""
    random = np.random.default_rng(5)
    X = sp.csr_array(random.random((40, 6)).astype(np.float32))
    Y = sp.csr_array((random.random((40, 1)) < 0.4).astype(np.float32))
    Y = sp.csr_array(sp.hstack([Y, 1 - Y.toarray()]))
    tree = ll.LabelTree.complete(np.arange(2), 2, 2)
    tight = settings(tolerance=1e-7, max_epochs=5000, threshold=0.0, C_scale="none")
    trainer = NodeTrainer.prepare(check_features(X, normalize=False), check_labels(Y), tree, tight, seed=1)
    factor = np.ones(len(trainer.node_rows), np.float32)
    leaf = int(np.flatnonzero(tree.label == 0)[0])
    factor[trainer.node_indptr[leaf] : trainer.node_indptr[leaf + 1]] = 3
    weighted = replace(trainer, positive_factor=factor).train(threads=1)[0]
    costly = replace(tight, label_weight=np.array([3.0, 1.0]))
    by_cost = NodeTrainer.prepare(trainer.rows, check_labels(Y), tree, costly, seed=1)
    same(weighted, by_cost.train(threads=1)[0])


@pytest.mark.parametrize("loss", ["log", "squared-hinge"])
def test_training_goes_on_from_weights_and_stays_near_them(loss):
    """The weights after are the minimiser of |w - w0|^2 / 2 + C loss, here found by SciPy."""
    from scipy.optimize import minimize

    rows, Y = problem(rows=60, features=12, labels=4)
    X = sp.csr_array((rows.csr[2], rows.csr[1], rows.csr[0]), shape=(60, 12)).toarray() * rows.scale[:, None]
    tight = settings(loss=loss, tolerance=1e-6, max_epochs=5000, threshold=0.0, C_scale="none")
    model = ll.PLT(
        n_trees=1, loss=loss, C=0.5, max_leaf=4, arity=4, weight_bits=32, threshold=0.0, random_state=1
    )
    model.fit(X[:30], Y[:30])
    tree = model.trees_[0]
    forest = model._prepared.forest
    later = check_features(X[30:], normalize=False)
    trainer = NodeTrainer.prepare(later, Y[30:], tree, tight, seed=2)
    weights, _ = trainer.train(threads=1, initial=(forest, 0))
    features = np.arange(12, dtype=np.int32)
    after = ll._core.Forest([tree.first_child], [tree.label], [weights], 12, 4, 0)
    for node in range(1, tree.n_nodes):
        start = np.append(forest.node_weights(0, node, features), model.weights_[0]["bias"][node]).astype(
            float
        )
        side = 2 * Y[30:].toarray()[:, tree.label[node]] - 1.0
        x = np.hstack([X[30:], np.ones((30, 1))]).astype(float)

        def objective(w, x=x, side=side, start=start):
            margin = side * (x @ w)
            losses = np.log1p(np.exp(-margin)) if loss == "log" else np.maximum(0, 1 - margin) ** 2
            return 0.5 * ((w - start) ** 2).sum() + losses.sum()

        best = minimize(objective, start, tol=1e-10).x
        got = np.append(after.node_weights(0, node, features), weights["bias"][node])
        np.testing.assert_allclose(got, best, atol=2e-3)
