"""Label trees: hand-worked cases of every builder, and what must hold of any tree."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

import longleaf as ll
from longleaf import LabelTree

pytestmark = pytest.mark.native


def check_tree(tree, labels):
    """The tree is breadth-first, has every label at one leaf, and no needless inner node."""
    first_child, label = tree.first_child, tree.label
    assert first_child.dtype == label.dtype == np.int32
    assert len(first_child) == tree.n_nodes + 1
    assert first_child[0] == 1
    assert first_child[-1] == tree.n_nodes
    sizes = np.diff(first_child)
    assert (sizes >= 0).all()
    assert (first_child[:-1][sizes > 0] > np.flatnonzero(sizes > 0)).all()
    np.testing.assert_array_equal(label >= 0, sizes == 0)
    assert sorted(tree.labels.tolist()) == sorted(labels)
    assert (sizes[1:] != 1).all()
    assert (np.diff(tree.depth) >= 0).all()


def clusters(tree):
    """Give the labels of every node that has leaves only, and of every leaf beside inner nodes."""
    found = []
    for v in range(tree.n_nodes):
        children = range(tree.first_child[v], tree.first_child[v + 1])
        leaves = [int(tree.label[child]) for child in children if tree.label[child] >= 0]
        found += [leaves] if len(leaves) == len(children) and leaves else [[leaf] for leaf in leaves]
    return found


def below(tree):
    """Give how many labels lie below each node."""
    count = (tree.label >= 0).astype(int)
    for v in range(tree.n_nodes - 1, 0, -1):
        count[tree.parent[v]] += count[v]
    return count


def test_from_parents_brings_a_tree_into_breadth_first_order():
    #       4            node 4 is the root, 2 and 0 are inner, the others leaves
    #     2   3(=7)
    #   1(=5) 0
    #       5(=1) 6(=0)
    tree = LabelTree.from_parents([2, 2, 4, 4, -1, 0, 0], [-1, 5, -1, 7, -1, 1, 0])
    assert tree.first_child.tolist() == [1, 3, 5, 5, 7, 7, 7, 7]
    assert tree.label.tolist() == [-1, -1, 7, -1, 5, 1, 0]
    assert tree.parent.tolist() == [-1, 0, 0, 1, 1, 3, 3]
    assert tree.depth.tolist() == [0, 1, 1, 2, 2, 3, 3]


def test_from_parents_leaves_out_barren_and_thin_nodes():
    # the root has a chain of thin nodes down to label 3, a barren branch, and label 1
    tree = LabelTree.from_parents([-1, 0, 1, 2, 0, 4, 0], [-1, -1, -1, 3, -1, -1, 1])
    assert tree.label.tolist() == [-1, 3, 1]
    check_tree(tree, [1, 3])


@pytest.mark.parametrize(
    ("parent", "label", "message"),
    [
        ([-1, 2, 1], [-1, -1, 0], "circle"),
        ([-1, 1, 0], [-1, -1, 0], "circle"),
        ([-1, -1, 0], [-1, 0, 1], "the root"),
        ([0, 0], [-1, 0], "the root"),
        ([-1, 5], [-1, 0], "name a node"),
        ([-1, -3], [-1, 0], "name a node"),
        ([-1, 0, 0], [-1, 0, 0], "every label once"),
        ([-1, 0], [-1, -1], "at least one label"),
        ([-1, 0, 1], [-1, 0, 1], "must be -1 for nodes that have children"),
        ([-1, 0], [-1], "one length"),
        ([], [], "one length"),
    ],
)
def test_what_is_no_tree_is_refused(parent, label, message):
    with pytest.raises(ValueError, match=message):
        LabelTree.from_parents(parent, label)


def test_a_complete_tree_worked_by_hand():
    tree = LabelTree.complete([4, 2, 0, 1, 3], arity=2, max_leaf=2)
    # 5 labels are cut into 2 and 3, and 3 into 1 and 2
    assert tree.label.tolist() == [-1, -1, -1, 4, 2, -1, 0, 1, 3]
    assert tree.first_child.tolist() == [1, 3, 5, 7, 7, 7, 9, 9, 9, 9]


@given(st.integers(1, 60), st.integers(2, 70), st.integers(1, 20), st.integers(0, 9))
def test_complete_and_random_trees_keep_their_promises(n, arity, max_leaf, seed):
    labels = np.arange(n) * 3
    trees = [
        LabelTree.complete(labels, arity, max_leaf),
        LabelTree.random(labels, np.random.RandomState(seed), arity, max_leaf),
    ]
    for tree in trees:
        check_tree(tree, labels.tolist())
        assert max(map(len, clusters(tree))) <= max(max_leaf, arity)
        count, inner = below(tree), np.flatnonzero(tree.label < 0)
        for v in inner:
            sizes = count[tree.first_child[v] : tree.first_child[v + 1]]
            assert sizes.max() - sizes.min() <= 1
    same = LabelTree.random(labels, np.random.RandomState(seed), arity, max_leaf)
    np.testing.assert_array_equal(trees[1].label, same.label)


def test_huffmans_tree_worked_by_hand():
    tree = LabelTree.huffman([10, 11, 12, 13], [1, 1, 2, 4])
    depth = {int(label): int(d) for label, d in zip(tree.label, tree.depth, strict=True) if label >= 0}
    assert depth == {13: 1, 12: 2, 11: 3, 10: 3}


@given(st.lists(st.integers(0, 1000), min_size=1, max_size=50), st.integers(2, 8))
def test_huffmans_tree_gives_no_rarer_label_a_shorter_path(counts, arity):
    tree = LabelTree.huffman(np.arange(len(counts)), counts, arity)
    check_tree(tree, list(range(len(counts))))
    depth = np.zeros(len(counts))
    depth[tree.labels] = tree.depth[tree.label >= 0]
    for a in range(len(counts)):
        for b in range(len(counts)):
            assert counts[a] >= counts[b] or depth[a] >= depth[b]
    assert np.diff(tree.first_child).max() <= arity


def test_a_users_hierarchy_worked_by_hand():
    # labels 0..3; 4 and 5 are groups; label 1 has label 2 below it; group 5 is empty
    tree = LabelTree.from_hierarchy([4, 4, 1, -1, -1, -1], n_labels=4)
    check_tree(tree, [0, 1, 2, 3])
    leaf = {int(label): v for v, label in enumerate(tree.label) if label >= 0}
    parent = tree.parent
    assert parent[leaf[3]] == 0
    assert parent[leaf[1]] == parent[leaf[2]]  # label 1 has a leaf of its own beside its child
    assert parent[parent[leaf[1]]] == parent[leaf[0]]
    assert parent[parent[leaf[0]]] == 0


@pytest.mark.parametrize("parents", [[1, 0], [0], [5], [-2], []])
def test_a_hierarchy_with_circles_or_strangers_is_refused(parents):
    with pytest.raises(ValueError, match=r"circle|positions"):
        LabelTree.from_hierarchy(parents)


def test_merging_two_levels_of_a_binary_tree_gives_arity_four():
    tree = LabelTree.complete(range(16), arity=2, max_leaf=1)
    merged = tree.merge_levels(2)
    check_tree(merged, list(range(16)))
    # the root has the 4 nodes of the second level; those have the lowest inner nodes, of 2 leaves each
    assert np.diff(merged.first_child)[merged.label < 0].tolist() == [4] + [2] * 4 + [2] * 8


@given(st.integers(2, 80), st.integers(1, 4), st.integers(1, 4))
def test_merging_levels_keeps_which_labels_are_together(n, levels, max_leaf):
    tree = LabelTree.complete(range(n), arity=2, max_leaf=max_leaf)
    merged = tree.merge_levels(levels)
    check_tree(merged, list(range(n)))
    assert sorted(map(sorted, clusters(merged))) == sorted(map(sorted, clusters(tree)))
    if levels == 1:
        np.testing.assert_array_equal(merged.first_child, tree.first_child)


@given(st.integers(2, 40), st.integers(0, 99))
def test_restricting_leaves_out_the_other_labels_and_keeps_the_groups(n, seed):
    rng = np.random.default_rng(seed)
    tree = LabelTree.complete(rng.permutation(n), arity=3, max_leaf=2)
    kept = rng.permutation(n)[: rng.integers(1, n + 1)]
    restricted = tree.restrict(kept)
    check_tree(restricted, kept.tolist())

    def groups(t):
        sets = [{int(label)} if label >= 0 else set() for label in t.label]
        for v in range(t.n_nodes - 1, 0, -1):
            sets[t.parent[v]] |= sets[v]
        return {frozenset(group & set(kept.tolist())) for group in sets} - {frozenset()}

    assert groups(restricted) == groups(tree)


# ---------------------------------------------------------------- trees built from data


def planted(n_groups=8, per_group=6, seed=0):
    """Labels of a group have rows with the group's own features; labels within a group differ a little."""
    rng = np.random.default_rng(seed)
    X, rows = [], []
    for label in rng.permutation(n_groups * per_group):
        for _ in range(4):
            x = np.zeros(n_groups * 5)
            x[label // per_group * 5 : label // per_group * 5 + 5] = rng.uniform(0.5, 1, 5)
            X.append(x)
            rows.append([int(label)])
    return np.array(X), rows


@pytest.mark.parametrize("arity", [2, 4, 8])
def test_kmeans_finds_planted_clusters(arity):
    X, rows = planted()
    best = False
    for seed in range(5):  # k-means starts from random labels and may get stuck
        tree = ll.PLT(n_trees=1, arity=arity, max_leaf=6, random_state=seed).fit(X, rows).trees_[0]
        check_tree(tree, list(range(48)))
        best |= all(len({label // 6 for label in cluster}) == 1 for cluster in clusters(tree))
    assert best


def random_data(n_rows, n_labels, seed, features=30):
    rng = np.random.default_rng(seed)
    X = sp.csr_array((rng.random((n_rows, features)) < 0.2) * rng.random((n_rows, features)))
    Y = rng.random((n_rows, n_labels)) < 3 / max(n_labels, 4)
    Y[0, 0] = True
    return X, Y


@given(
    st.sampled_from(["kmeans", "merged", "unbalanced", "complete", "random", "huffman"]),
    st.integers(1, 60),
    st.sampled_from([2, 4, 16, 64]),
    st.sampled_from([1, 2, 7, 100]),
    st.integers(0, 99),
)
def test_every_builder_has_every_seen_label_once(name, n_labels, arity, max_leaf, seed):
    X, Y = random_data(20, n_labels, seed)  # rows without labels, rows without features, labels without rows
    model = ll.PLT(
        n_trees=2, tree=name, arity=arity, max_leaf=max_leaf, max_epochs=1, random_state=seed, n_jobs=2
    )
    seen = np.flatnonzero(Y.any(axis=0)).tolist()
    for tree in model.fit(X, Y).trees_:
        check_tree(tree, seen)
        if name != "huffman":
            assert max(map(len, clusters(tree))) <= max(max_leaf, arity)
        if name in ("kmeans", "complete", "random"):
            count = below(tree)
            for v in np.flatnonzero(tree.label < 0):
                sizes = count[tree.first_child[v] : tree.first_child[v + 1]]
                assert sizes.max() - sizes.min() <= 1
    top = model.top_k(X, k=n_labels)
    assert set(np.unique(top.labels)) - {-1} == set(seen)


@pytest.mark.parametrize("empty_features", [0, 5000])  # many: the root's centroids are copied, too
@pytest.mark.parametrize("arity", [2, 16])
def test_clusters_do_not_hang_on_the_number_of_threads(arity, empty_features):
    X, Y = random_data(300, 200, 1)
    X = sp.hstack([X, sp.csr_array((300, empty_features))], format="csr")
    model = ll.PLT(n_trees=1, arity=arity, max_leaf=8, max_epochs=1, random_state=1)
    alone, two, three = (model.set_params(n_jobs=n).fit(X, Y).trees_[0] for n in (1, 2, 3))
    for tree in (two, three):
        np.testing.assert_array_equal(tree.first_child, alone.first_child)
        np.testing.assert_array_equal(tree.label, alone.label)


def test_duplicate_centroids_are_split_all_the_same():
    X, rows = np.ones((30, 4)), [[label] for label in range(30)]
    for name in ("kmeans", "merged", "unbalanced"):
        for arity in (2, 4):
            model = ll.PLT(n_trees=1, tree=name, arity=arity, max_leaf=3, random_state=1, max_epochs=1)
            tree = model.fit(X, rows).trees_[0]
            check_tree(tree, list(range(30)))
            assert max(map(len, clusters(tree))) <= 4


def test_a_single_label_is_a_root_and_a_leaf():
    for name in ("kmeans", "merged", "unbalanced", "complete", "random", "huffman"):
        model = ll.PLT(n_trees=1, tree=name, random_state=1).fit(np.eye(4), [[3], [3], [], [3]])
        assert model.trees_[0].label.tolist() == [-1, 3]
        assert model.top_k(np.eye(4), k=2).labels.tolist() == [[3, -1]] * 4


def test_merged_trees_need_an_arity_of_a_power_of_two():
    with pytest.raises(ValueError, match="arity must be a power of two"):
        ll.PLT(tree="merged", arity=3).fit(np.eye(2), [[0], [1]])


def test_a_tree_of_the_users_own_is_restricted_to_what_was_seen():
    tree = LabelTree.from_hierarchy([-1, -1, 0, 0, 1, 1])
    model = ll.PLT(n_trees=2, tree=tree, random_state=1).fit(np.eye(3), [[2], [3, 4], [1]])
    for own in model.trees_:
        check_tree(own, [1, 2, 3, 4])
    with pytest.raises(ValueError, match="label 1 has none"):
        ll.PLT(tree=LabelTree.flat([0, 2])).fit(np.eye(2), [[0], [1]])
    with pytest.raises(ValueError, match="a list of 3 of them"):
        ll.PLT(tree=[LabelTree.flat([0, 1])]).fit(np.eye(2), [[0], [1]])
