"""Rows that are searched together, level by level: when one is handed back to the search of single rows.

Such a row has the evaluations of both searches, which is how these tests see that it was handed back.
"""

import numpy as np
import pytest

import longleaf as ll
from longleaf.datasets import load_sample
from tests import reference
from tests.helpers import handmade

pytestmark = pytest.mark.native


def certain(parents, probabilities):
    """Make a model whose node probabilities are the given ones in every row; leaves are numbered in order."""
    inner = np.isin(np.arange(len(parents)), parents)
    labels = np.where(inner, -1, np.cumsum(~inner) - 1)
    eta = np.array([0.5, *probabilities], np.float64)  # that of the root is never read
    part = (
        ll.LabelTree.from_parents(parents, labels),
        np.zeros((1, len(eta)), np.float32),
        np.log(eta / (1 - eta)),
    )
    return part, handmade.estimator([part], labels.max() + 1)


# Four nodes below the root: three of them look best and lead nowhere, all that is good lies below the fourth.
DECEIVING = [-1, *[0] * 4, 1, 1, 2, 2, 3, 3, *[4] * 4, *np.repeat(range(5, 15), 2)]
PROBABILITIES = [*[0.9] * 3, 0.8, *[0.1] * 6, *[0.9] * 4, *[0.01] * 12, *[0.5] * 8]


def test_a_row_whose_beam_excludes_what_was_expanded_on_looking_around_is_handed_back():
    part, model = certain(DECEIVING, PROBABILITIES)
    options = {"k": 1, "search": "beam", "beam": 4}
    together = model.top_k(np.zeros((3, 1)), **options)
    alone = model.top_k(np.zeros((1, 1)), **options)
    looked_around, looked_further = 4 + 3 * 2 + 3 * 2, 4
    assert alone.evaluations.tolist() == [4 + (2 + 2 + 2 + 4) + 4 * 2]
    assert together.evaluations.tolist() == [looked_around + looked_further + alone.evaluations[0]] * 3
    cost = reference.node_costs(reference.LOG, *part[1:], np.zeros(1))
    expected, _ = reference.beam_search(part[0], cost, np.ones(20), 8, beam=4)
    assert sorted(expected) == [*range(12, 20)]  # which all score the same
    assert together.labels[0, 0] in expected
    np.testing.assert_array_equal(together.labels, np.repeat(alone.labels, 3, axis=0))
    np.testing.assert_allclose(together.scores, 0.8 * 0.9 * 0.5, rtol=1e-6)


def test_a_row_of_the_same_tree_whose_beam_includes_them_is_not():
    _, model = certain(DECEIVING, PROBABILITIES)
    together = model.top_k(np.zeros((3, 1)), k=1, search="beam", beam=10)
    assert together.evaluations.tolist() == [len(PROBABILITIES)] * 3


@pytest.mark.parametrize(("k", "handed_back"), [(6, False), (7, True)])
def test_a_row_that_sees_fewer_than_k_labels_on_looking_around_is_handed_back(k, handed_back):
    # The three best families have two labels each; the others are all in the fourth.
    parents = [-1, *[0] * 4, 1, 1, 2, 2, 3, 3, *[4] * 100]
    _, model = certain(parents, [*[0.9] * 3, 0.5, *[0.9] * 6, *np.linspace(0.2, 0.8, 100)])
    together = model.top_k(np.zeros((2, 1)), k=k)
    alone = model.top_k(np.zeros((1, 1)), k=k)
    looked_around = 4 + 3 * 2
    assert alone.evaluations.tolist() == [looked_around + (100 if handed_back else 0)]
    assert together.evaluations.tolist() == [alone.evaluations[0] + (looked_around if handed_back else 0)] * 2
    assert sorted(together.labels[0]) == [0, 1, 2, 3, 4, 5, 105][:k]
    np.testing.assert_array_equal(together.labels, np.repeat(alone.labels, 2, axis=0))


@pytest.mark.parametrize("options", [{}, {"search": "auto"}, {"epsilon": 0.1}])
def test_the_nominees_of_refined_labels_are_searched_together(options):
    sample = load_sample()
    model = ll.PLT(random_state=1).fit(sample.X_train, sample.Y_train)
    rows = [sample.X_test[[i]] for i in range(100)]
    alone = sum(int(model.top_k(row, **options).evaluations[0]) for row in rows)
    together = int(model.top_k(sample.X_test[:100], **options).evaluations.sum())
    assert together > alone  # rows by themselves take the best node first, and so the fewest
