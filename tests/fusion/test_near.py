"""The tags whose names mean what a record means, against a plain search."""

import numpy as np
import pytest

from longleaf import _core
from longleaf.fusion.near import LARGEST, NEAREST, NearNames, as_codes

pytestmark = pytest.mark.native


def vectors(rows, columns, seed):
    return np.random.default_rng(seed).normal(size=(rows, columns)).astype(np.float32)


def plain_nearest(codes, labels, row, most):
    """Return the best labels by the largest product of a name; smaller numbers first."""
    products = codes.astype(np.int64) @ row.astype(np.int64)
    best = {label: int(products[labels == label].max()) for label in np.unique(labels)}
    order = sorted(best, key=lambda label: (-best[label], label))
    return sorted(order[:most])


@pytest.mark.parametrize(
    ("names", "columns", "n_labels"), [(300, 20, 90), (1500, 128, 700), (5, 16, 3), (1, 7, 1)]
)
@pytest.mark.parametrize("threads", [1, 3])
def test_the_nearest_labels_are_those_of_a_plain_search(names, columns, n_labels, threads):
    labels = np.random.default_rng(names).integers(0, n_labels, names)
    near = NearNames.of(vectors(names, columns, 1), labels)
    rows = as_codes(vectors(40, columns, 2))
    indptr, found = near.nearest(rows, threads)
    for row in range(len(rows)):
        own = found[indptr[row] : indptr[row + 1]].tolist()
        assert own == plain_nearest(near.codes, near.labels, rows[row], NEAREST)


def test_of_equal_names_the_smaller_label_is_nearer():
    near = NearNames.of(np.ones((50, 16), np.float32), np.arange(50)[::-1])
    indptr, found = near.nearest(as_codes(np.ones((1, 16))), 1)
    assert found.tolist() == list(range(NEAREST))
    assert indptr.tolist() == [0, NEAREST]


def test_a_cosine_is_that_of_the_nearest_name_of_the_label():
    columns, labels = vectors(60, 32, 3), np.random.default_rng(3).integers(0, 12, 60)
    near, rows = NearNames.of(columns, labels), vectors(5, 32, 4)
    unit = columns / np.linalg.norm(columns, axis=1, keepdims=True)
    cosines = rows / np.linalg.norm(rows, axis=1, keepdims=True) @ unit.T
    row, label = np.repeat(np.arange(5), 12), np.tile(np.arange(12), 5)
    wanted = [cosines[r, labels == one].max() for r, one in zip(row, label, strict=True)]
    assert np.allclose(near.cosines(as_codes(rows), row, label), wanted, atol=0.02)
    assert near.cosines(as_codes(rows), np.array([0]), np.array([99])).tolist() == [0.0]


def test_names_without_columns_and_of_removed_labels_are_dropped():
    columns = vectors(4, 16, 5)
    columns[1] = 0
    near = NearNames.of(columns, np.array([3, 1, 2, 3]))
    assert near.labels.tolist() == [2, 3, 3]
    assert near.without(np.array([3])).labels.tolist() == [2]
    indptr, labels = near.without(np.array([2, 3])).nearest(as_codes(columns), 1)
    assert (indptr.tolist(), labels.tolist()) == ([0] * 5, [])


def test_codes_are_of_unit_length_in_whole_sixteens():
    codes = as_codes(np.array([[3.0, 4.0], [0.0, 0.0]]))
    assert codes.shape == (2, 16)
    assert codes[0, :2].tolist() == [round(0.6 * LARGEST), round(0.8 * LARGEST)]
    assert not codes[1].any()


def test_what_was_saved_is_read_again_and_damage_is_refused():
    near = NearNames.of(vectors(6, 20, 6), np.arange(6))
    state = near.state()
    again = NearNames.from_state(state, 6)
    assert (again.codes == near.codes).all()
    assert (again.labels == near.labels).all()
    for damaged, message in (
        (state | {"codes": state["codes"][:-1]}, "whole sixteens"),
        (state | {"labels": state["labels"][::-1].copy()}, "ascend"),
        (state | {"labels": state["labels"] + np.int32(1)}, "labels must hold numbers"),
        ({"codes": state["codes"]}, "labels.npy must exist"),
    ):
        with pytest.raises(ValueError, match=message):
            NearNames.from_state(damaged, 6)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"columns": 15}, "multiple of 16"),
        ({"columns": 4112}, "multiple of 16"),
        ({"codes": np.zeros(33, np.int8)}, "as many columns"),
        ({"rows": np.zeros(17, np.int8)}, "as many columns"),
        ({"most": 0}, "at least 1"),
        ({"labels": np.array([1, 0], np.int32)}, "ascend from 0"),
        ({"labels": np.array([-1, 0], np.int32)}, "ascend from 0"),
    ],
)
def test_native_code_checks_what_it_is_given(change, message):
    given = {
        "codes": np.zeros(32, np.int8),
        "labels": np.array([0, 1], np.int32),
        "rows": np.zeros(16, np.int8),
        "columns": 16,
        "most": 3,
        "n_threads": 1,
    }
    assert [len(one) for one in _core.nearest_labels(**given)] == [2, 2, 2]
    with pytest.raises(ValueError, match=message):
        _core.nearest_labels(**(given | change))
