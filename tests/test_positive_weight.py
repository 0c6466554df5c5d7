"""Weights of positive rows per row and node, against products taken label by label."""

import numpy as np
import pytest
import scipy.sparse as sp

import longleaf as ll
from longleaf._positive_weight import positive_factors, relevance_estimates
from longleaf.linear import node_rows
from reference import parents


def drawn_labels(n_rows=60, n_labels=13, seed=0, share=0.2):
    random = np.random.default_rng(seed)
    return sp.csr_array((random.random((n_rows, n_labels)) < share).astype(np.float32))


def slow_estimates(tree, Y, worth):
    """Give E[z] and the highest worth by (node, row): up from every leaf of every row, one label at a time."""
    parent, found = parents(tree), {}
    for row, indicator in enumerate(Y.toarray()):
        found[0, row] = []
        for leaf, label in enumerate(tree.label):
            node = leaf
            while label >= 0 and indicator[label] and node > 0:
                found.setdefault((node, row), []).append(worth[label])
                node = parent[node]
    return {
        place: (1 - np.prod([1 - q for q in noted]), max(noted)) if place[0] else (1, 1)
        for place, noted in found.items()
    }


TREES = {
    "flat": ll.LabelTree.flat(range(13)),
    "binary": ll.LabelTree.complete(range(13), arity=2, max_leaf=1),
    "wide": ll.LabelTree.complete(range(13), arity=3, max_leaf=4),
    "leaves on all levels": ll.LabelTree.huffman(range(13), 2.0 ** np.arange(13)),
    "without some labels": ll.LabelTree.complete([1, 5, 3, 12, 9], arity=2, max_leaf=2),
}


@pytest.mark.parametrize("name", TREES)
def test_estimates_are_products_over_the_noted_labels_in_the_order_of_node_rows(name):
    tree, Y = TREES[name], drawn_labels()
    worth = np.random.default_rng(1).uniform(1, 9, 13)
    indptr, rows = node_rows(tree, Y)
    places = list(zip(np.repeat(np.arange(tree.n_nodes), np.diff(indptr)), rows, strict=True))
    slow = slow_estimates(tree, Y, worth)
    assert set(places) == set(slow)
    want = np.array([slow[place] for place in places])
    estimate, most = relevance_estimates(tree, Y, worth)
    np.testing.assert_allclose(estimate, want[:, 0], rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(most, want[:, 1])
    clipped = np.clip(want[:, 0], 1, want[:, 1])
    np.testing.assert_allclose(positive_factors(tree, Y, worth), 2 * clipped - 1, rtol=1e-6)


def test_a_case_by_hand():
    tree = ll.LabelTree.complete(range(4), arity=2, max_leaf=2)  # nodes 0; 1, 2; 3 to 6 with labels 0 to 3
    worth = np.array([2.0, 3.0, 4.0, 1.0])
    Y = sp.csr_array([[1, 1, 0, 0], [0, 1, 1, 0], [0, 0, 1, 1]])
    factors = [
        *[1, 1, 1],  # the root
        *[1, 5],  # labels 0, 1: rows 0 (both: 1 - (-1)(-2) = -1, clipped to 1) and 1 (label 1 alone: 3)
        *[7, 1],  # labels 2, 3: rows 1 (label 2 alone: 4) and 2 (both: 1 - (-3)(0) = 1)
        *[3, 5, 5, 7, 7, 1],  # the leaves
    ]
    assert positive_factors(tree, Y, worth).tolist() == factors


def test_three_labels_are_clipped_to_the_highest_worth():
    tree = ll.LabelTree.complete(range(6), arity=2, max_leaf=3)
    Y = sp.csr_array([[1, 1, 1, 0, 0, 0]])
    estimate, most = relevance_estimates(tree, Y, np.full(6, 5.0))
    assert (estimate[1], most[1]) == (pytest.approx(1 + 4**3), 5)
    assert positive_factors(tree, Y, np.full(6, 5.0))[1] == 9


@pytest.mark.parametrize(("n_labels", "factor"), [(1200, 1), (1201, 17)])
def test_a_row_with_very_many_labels_does_not_overflow(n_labels, factor):
    below_one_node = np.concatenate([[-1, 0], np.ones(n_labels, int), [0]])
    tree = ll.LabelTree.from_parents(below_one_node, np.arange(-2, n_labels + 1).clip(-1))
    Y, worth = sp.csr_array(np.ones((1, n_labels + 1))), np.full(n_labels + 1, 9.0)
    assert positive_factors(tree, Y, worth)[1] == factor
    worth[0] = 1.0  # always noted: whatever else, the row truly has a label below
    assert positive_factors(tree, Y, worth)[1] == 1
    assert relevance_estimates(tree, Y, worth)[0][1] == 1


def test_the_estimate_is_unbiased_before_it_is_clipped():
    tree = ll.LabelTree.complete(range(4), arity=2, max_leaf=2)
    complete = np.repeat(np.array([[1, 1, 0, 1]]), 40000, axis=0)
    p = np.array([0.4, 0.6, 0.5, 0.8])
    noted = ll.datasets.lose_labels(complete, p, random_state=1)
    indptr, _ = node_rows(tree, sp.csr_array(noted))
    estimate, _ = relevance_estimates(tree, sp.csr_array(noted), 1 / p)
    for node, truth in ((1, 1), (2, 1), (3, 1), (4, 1), (5, 0), (6, 1)):
        total = estimate[indptr[node] : indptr[node + 1]].sum()
        assert total / len(complete) == pytest.approx(truth, abs=0.02)
