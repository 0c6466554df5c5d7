"""Models that go on learning: new rows, new labels, labels taken out, families trained anew."""

import numpy as np
import pytest
import scipy.optimize

import longleaf as ll
from longleaf import _core
from longleaf.learning.placement import CROWDING
from longleaf.learning.tree_edits import leaf_of_label
from longleaf.learning.update import PRESSING
from tests import reference
from tests.helpers import handmade
from tests.helpers.training import TIGHT, WHOLE, texts, unit_rows

pytestmark = pytest.mark.native

SMALL = {"n_trees": 2, "arity": 3, "max_leaf": 4, "random_state": 1, "n_jobs": 1}
N_LABELS = 15
X, ROWS = texts(n_rows=160, n_features=80, n_labels=N_LABELS)
OLD, NEW = slice(0, 110), slice(110, 160)


def fitted(**params):
    return ll.PLT(**(SMALL | params)).fit(X[OLD], labels_of(ROWS[OLD]))


def labels_of(rows, n_labels=N_LABELS):
    indicator = np.zeros((len(rows), n_labels), np.float32)
    for row, labels in enumerate(rows):
        indicator[row, labels] = 1
    return indicator


def probabilities(model, labels, rows=X):
    labels = np.asarray(labels)
    pairs = np.repeat(np.arange(rows.shape[0]), len(labels)), np.tile(labels, rows.shape[0])
    return model.probability(rows, *pairs).reshape(rows.shape[0], len(labels))


def seen(model):
    return np.flatnonzero(model.label_counts_)


def same_model(a, b):
    for tree, other in zip(a.trees_, b.trees_, strict=True):
        np.testing.assert_array_equal(tree.first_child, other.first_child)
        np.testing.assert_array_equal(tree.label, other.label)
    for weights, other in zip(a.weights_, b.weights_, strict=True):
        assert weights.keys() == other.keys()
        for name in weights:
            np.testing.assert_array_equal(weights[name], other[name], err_msg=name)


# ------------------------------------------------------------ new rows


@pytest.mark.parametrize("loss", ["log", "squared-hinge"])
def test_an_update_is_the_least_move_that_the_new_rows_ask_for_where_old_rows_hold(loss):
    tree = ll.LabelTree.complete(np.arange(N_LABELS), 3, 5)
    settings = {"n_trees": 1, "tree": tree, "loss": loss, "C": 2.0, "C_scale": "none", "bias": 1.0}
    settings |= WHOLE | TIGHT
    Y = [[*row, 1 + number % (N_LABELS - 1)] for number, row in enumerate(ROWS)]
    model = ll.PLT(**settings, random_state=1, n_jobs=1).fit(X[OLD], labels_of(Y[OLD]))
    before = handmade.decode(model.weights_[0], X.shape[1]), np.array(model.weights_[0]["bias"])
    model.partial_fit(X[NEW], Y[NEW])
    after = handmade.decode(model.weights_[0], X.shape[1]), model.weights_[0]["bias"]
    unit = [np.column_stack([unit_rows(X[part]), np.ones(X[part].shape[0])]) for part in (OLD, NEW)]
    old, new = (np.square(rows).sum(axis=0) for rows in unit)
    targets = reference.node_targets(tree, Y[NEW])
    for node, (held, positive) in targets.items():
        start = np.append(before[0][:, node], before[1][node]).astype(float)
        y = np.where(np.isin(held, positive), 1.0, -1.0)
        beside = np.unique(np.concatenate([targets[other][0] for other in together(tree, node)]))
        pressing = np.square(unit[1][beside]).sum(axis=0) * old / np.maximum(new, 1e-9)
        expected = least_move(loss, unit[1][held], y, start, 2.0, 1 + 2.0 * PRESSING * pressing)
        np.testing.assert_allclose(np.append(after[0][:, node], after[1][node]), expected, atol=4e-3)


def together(tree, node):
    """Give the nodes that are trained in one unit with this one."""
    rows = np.zeros(tree.n_nodes + 1, np.int64)
    starts, _ = _core.training_units(rows, tree.first_child, tree.label)
    unit = np.searchsorted(starts, node, side="right") - 1
    return range(max(1, starts[unit]), starts[unit + 1])


def least_move(loss, rows, y, start, cost, firmness):
    def value_and_slope(w):
        margin = y * (rows @ w)
        value, slope = 0.5 * firmness @ (w - start) ** 2, firmness * (w - start)
        if loss == "log":
            value += cost * np.logaddexp(0, -margin).sum()
            slope = slope - cost * rows.T @ (y / (1 + np.exp(margin)))
        else:
            value += cost * (np.maximum(0, 1 - margin) ** 2).sum()
            slope = slope - cost * rows.T @ (2 * y * np.maximum(0, 1 - margin))
        return value, slope

    tight = {"ftol": 1e-14, "gtol": 1e-8, "maxiter": 1000}
    return scipy.optimize.minimize(value_and_slope, start, jac=True, method="L-BFGS-B", options=tight).x


def test_the_first_partial_fit_is_fit():
    model = ll.PLT(**SMALL).partial_fit(X[OLD], labels_of(ROWS[OLD]))
    same_model(model, fitted())


def test_only_the_families_on_the_paths_of_new_rows_change():
    model = fitted()
    before = [(tree, dict(weights)) for tree, weights in zip(model.trees_, model.weights_, strict=True)]
    label = int(seen(model)[0])
    row = next(i for i, labels in enumerate(ROWS) if label in labels)
    model.partial_fit(X[[row]], [[label]])
    for (tree, old), weights in zip(before, model.weights_, strict=True):
        parent = reference.parents(tree)
        node, touched = int(leaf_of_label(tree, N_LABELS)[label]), set()
        while node > 0:
            node = parent[node]
            touched.add(node)
        W, V = (handmade.decode(arrays, X.shape[1]) for arrays in (old, weights))
        for child in range(1, tree.n_nodes):
            same = np.array_equal(W[:, child], V[:, child]) and old["bias"][child] == weights["bias"][child]
            assert same or parent[child] in touched
        assert not np.array_equal(W, V)


def test_counts_and_propensities_follow():
    model = fitted().partial_fit(X[NEW], ROWS[NEW])
    whole = labels_of(ROWS)
    np.testing.assert_array_equal(model.label_counts_, whole.sum(axis=0))
    assert model.n_rows_ == len(whole)
    np.testing.assert_allclose(model.inverse_propensity(), ll.inverse_propensity(whole))


def test_learning_goes_on_after_loading_in_the_same_bits_with_any_threads(tmp_path):
    model = fitted(weight_bits=8)
    model.save(tmp_path / "m.ll")
    loaded = ll.load(tmp_path / "m.ll")
    loaded.set_params(n_jobs=2)
    same_model(loaded.partial_fit(X[NEW], ROWS[NEW]), model.partial_fit(X[NEW], ROWS[NEW]))
    model.save(tmp_path / "m2.ll")
    again = ll.load(tmp_path / "m2.ll")
    np.testing.assert_array_equal(again.top_k(X).labels, model.top_k(X).labels)


def test_new_rows_are_learned():
    model = fitted()
    truth = labels_of(ROWS[NEW]) > 0
    before = probabilities(model, np.arange(N_LABELS), X[NEW])
    after = probabilities(model.partial_fit(X[NEW], ROWS[NEW]), np.arange(N_LABELS), X[NEW])
    assert after[truth].mean() > before[truth].mean() + 0.05
    assert after[~truth].mean() < before[~truth].mean() + 0.05


@pytest.mark.parametrize(
    ("rows", "y", "sentence"),
    [
        (X[NEW][:, :-1], ROWS[NEW], "X must have 80 features, as in fit; got 79"),
        (X[NEW], ROWS[OLD], "X and y must have the same number of rows; got 50 and 110"),
        (X[NEW], labels_of(ROWS[NEW])[:, :-1], "y must have at least 15 labels; got 14"),
        (X[:0], [], "X must have at least one row to learn from"),
    ],
)
def test_what_cannot_be_learned_leaves_the_model_as_it_was(rows, y, sentence):
    model = fitted()
    with pytest.raises(ValueError, match=sentence):
        model.partial_fit(rows, y)
    same_model(model, fitted())


def test_a_weight_by_name_is_refused_since_it_needs_the_old_rows():
    model = fitted().set_params(positive_weight="propensity")
    with pytest.raises(ValueError, match="positive_weight must be a number to go on learning"):
        model.partial_fit(X[NEW], ROWS[NEW])


# ------------------------------------------------------------ new labels


def test_new_labels_get_the_next_numbers_and_are_found():
    model = fitted()
    numbers = model.add_labels(2)
    np.testing.assert_array_equal(numbers, [15, 16])
    assert probabilities(model, numbers).max() == 0
    like = [row for row, labels in enumerate(ROWS) if 0 in labels][:6]
    model.partial_fit(X[like], [[0, 15]] * 3 + [[16]] * 3)
    for tree in model.trees_:
        assert leaf_of_label(tree, 17).min(initial=0, where=model.label_counts_ > 0) >= 0
    top = model.top_k(X[like], 3).labels
    assert (top[:3] == 15).any(axis=1).all()
    assert (top[3:] == 16).any(axis=1).all()
    np.testing.assert_array_equal(model.label_counts_[15:], [3, 3])


def test_rows_of_a_new_label_may_come_with_it():
    one, other = fitted(), fitted()
    one.add_labels(1, X[NEW], [[15, *labels] for labels in ROWS[NEW]])
    other.partial_fit(X[NEW], [[15, *labels] for labels in ROWS[NEW]])
    same_model(one, other)


def test_a_new_label_joins_the_cluster_that_its_rows_score_best_unless_it_is_crowded():
    model = fitted(n_trees=1, loss="log", **WHOLE)
    tree, W = model.trees_[0], handmade.decode(model.weights_[0], X.shape[1])
    rows = [3, 8]
    eta = [
        reference.node_probabilities(reference.LOG, W, np.array(model.weights_[0]["bias"]), x)
        for x in unit_rows(X)[rows]
    ]
    parent, logs = reference.parents(tree), np.log(np.maximum(eta, 1e-30)).mean(axis=0)
    for node in range(1, tree.n_nodes):
        logs[node] += logs[parent[node]]
    clusters = np.setdiff1d(np.array(parent)[tree.label >= 0], np.array(parent)[tree.label < 0])
    crowding = CROWDING * np.log(np.diff(tree.first_child)[clusters])
    best = clusters[np.argmax(logs[clusters] - crowding)]
    siblings = tree.label[tree.first_child[best] : tree.first_child[best + 1]]
    model.set_params(max_leaf=50).partial_fit(X[rows], [[15], [15]])
    grown = model.trees_[0]
    above = grown.parent[leaf_of_label(grown, 16)[15]]
    np.testing.assert_array_equal(
        grown.label[grown.first_child[above] : grown.first_child[above + 1]], [*siblings, 15]
    )


@pytest.mark.parametrize("loss", ["log", "squared-hinge"])
def test_clusters_that_outgrow_their_size_are_split_and_every_probability_stays(loss):
    many = 40
    Y = [[15 + number % (many - 15), *labels] for number, labels in enumerate(ROWS[NEW])]
    wide = fitted(loss=loss, **WHOLE).set_params(max_leaf=1000).partial_fit(X[NEW], Y)
    split = fitted(loss=loss, **WHOLE).partial_fit(X[NEW], Y)
    for tree, other in zip(wide.trees_, split.trees_, strict=True):
        assert max(np.bincount(tree.parent[tree.label >= 0])) > 4
        assert max(np.bincount(other.parent[other.label >= 0])) <= 4
        np.testing.assert_array_equal(np.sort(tree.labels), np.sort(other.labels))
    known = seen(split)
    np.testing.assert_allclose(probabilities(split, known), probabilities(wide, known), rtol=3e-4)
    split.partial_fit(X[OLD], ROWS[OLD])  # and it learns on
    assert len(seen(split)) == len(np.unique(split.trees_[0].labels))


def test_a_flat_tree_takes_new_labels_at_the_root():
    model = fitted(max_leaf=100).partial_fit(X[NEW], [[20, *labels] for labels in ROWS[NEW]])
    assert model.n_labels_ == 21
    assert (model.top_k(X[NEW], 2).labels == 20).any(axis=1).mean() > 0.8


# ------------------------------------------------------------ labels taken out


def test_removed_labels_are_never_returned_and_the_others_stay_as_they_were():
    model = fitted()
    gone, stay = seen(model)[[0, 3]], np.delete(seen(model), [0, 3])
    before = probabilities(model, stay)
    model.remove_labels(gone)
    np.testing.assert_allclose(probabilities(model, stay), before, rtol=0.2, atol=1e-3)  # 8 bits, packed anew
    assert not np.isin(model.top_k(X, 15, tail=1.0).labels, gone).any()
    assert probabilities(model, gone).max() == 0
    np.testing.assert_array_equal(model.label_counts_[gone], 0)
    assert model.n_labels_ == N_LABELS


def test_whole_clusters_can_go_and_exact_weights_stay_exact():
    model = fitted(**WHOLE)
    tree = model.trees_[0]
    cluster = tree.parent[np.flatnonzero(tree.label >= 0)[-1]]
    gone = tree.label[tree.first_child[cluster] : tree.first_child[cluster + 1]]
    stay = np.setdiff1d(seen(model), gone)
    before = probabilities(model, stay)
    model.remove_labels(gone)
    np.testing.assert_array_equal(probabilities(model, stay), before)
    np.testing.assert_array_equal(np.sort(model.trees_[0].labels), stay)


def test_a_removed_label_comes_back_with_new_rows():
    model = fitted().remove_labels([0])
    model.partial_fit(X[NEW], [[0, *labels] for labels in ROWS[NEW]])
    assert model.label_counts_[0] == 50
    assert (model.top_k(X[NEW], 3).labels == 0).any(axis=1).mean() > 0.9


def test_the_last_label_cannot_be_removed():
    model = fitted()
    with pytest.raises(ValueError, match="labels must leave at least one label"):
        model.remove_labels(np.arange(N_LABELS))
    with pytest.raises(ValueError, match="labels must be at least 0 and below 15; got 15"):
        model.remove_labels([15])


# ------------------------------------------------------------ families trained anew


def test_refit_of_everything_is_training_on_the_same_trees():
    model = fitted(**WHOLE, **TIGHT).partial_fit(X[NEW], ROWS[NEW])
    trees = list(model.trees_)
    model.refit(X, labels_of(ROWS))
    anew = ll.PLT(**(SMALL | WHOLE | TIGHT | {"tree": trees})).fit(X, labels_of(ROWS))
    known = seen(anew)
    np.testing.assert_allclose(probabilities(model, known), probabilities(anew, known), atol=2e-3)
    np.testing.assert_array_equal(model.label_counts_, anew.label_counts_)


def test_refit_trains_the_paths_of_its_labels_only():
    model = fitted(**WHOLE, **TIGHT, n_trees=1)
    tree, before = model.trees_[0], handmade.decode(model.weights_[0], X.shape[1])
    label = int(tree.labels[0])
    model.refit(X, labels_of(ROWS), labels=[label])
    after = handmade.decode(model.weights_[0], X.shape[1])
    anew = ll.PLT(**(SMALL | WHOLE | TIGHT | {"n_trees": 1, "tree": tree})).fit(X, labels_of(ROWS))
    expected = handmade.decode(anew.weights_[0], X.shape[1])
    node, path = int(leaf_of_label(tree, N_LABELS)[label]), set()
    while node > 0:
        node = int(tree.parent[node])
        path.add(node)
    for child in range(1, tree.n_nodes):
        wanted = expected if int(tree.parent[child]) in path else before
        np.testing.assert_allclose(after[:, child], wanted[:, child], atol=5e-3)
    assert len(path) > 1
    assert not np.allclose(before, expected, atol=5e-3)
