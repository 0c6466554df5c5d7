import lzma
import math

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from longleaf.propensity import CONSTANTS, constants, inverse_propensity, inverse_propensity_from_counts
from tests import reference
from tests.helpers.data import shared


def test_equals_the_repositorys_file_to_its_printed_precision():
    golden_path = shared("eurlex4k-propensity/inv_prop.txt")
    with lzma.open(shared("eurlex4k-propensity/trn_X_Y.txt.xz"), "rt") as lines:
        n_rows, n_labels = map(int, next(lines).split())
        rows = [[int(pair.split(":")[0]) for pair in line.split()] for line in lines]
    assert len(rows) == n_rows
    indices = np.concatenate([np.array(row, dtype=np.int64) for row in rows])
    indptr = np.cumsum([0, *map(len, rows)])
    Y = sp.csr_matrix((np.ones(len(indices)), indices, indptr), (n_rows, n_labels))

    found = inverse_propensity(Y, *constants("EURLex-4K"))

    printed = golden_path.read_text().split()
    assert len(printed) == n_labels
    assert [f"{value:.5g}" for value in found] == printed


def test_hand_worked():
    # A = 1 and B = 1 give C = 2 (log N - 1): a label with 3 rows gets 1 + C / 4, one with none 1 + C.
    C = 2 * (math.log(100) - 1)
    found = inverse_propensity_from_counts([3, 0], 100, a=1.0, b=1.0)
    np.testing.assert_allclose(found, [1 + C / 4, 1 + C])


@given(
    rows=st.lists(st.lists(st.integers(0, 5), unique=True), min_size=1, max_size=40),
    a=st.floats(0, 2),
    b=st.floats(0.1, 5),
)
def test_agrees_with_the_formula_and_never_falls_below_one(rows, a, b):
    found = inverse_propensity(sp.csr_array(indicator(rows, 6)), a, b)
    np.testing.assert_allclose(found, reference.inverse_propensity(rows, 6, a, b), rtol=1e-12)
    assert found.dtype == np.float64
    assert (found >= 1).all()


@pytest.mark.parametrize("n_rows", [1, 2])
def test_is_one_where_the_logarithm_of_the_rows_is_below_one(n_rows):
    assert inverse_propensity(np.ones((n_rows, 3))).tolist() == [1, 1, 1]


def test_rarer_labels_are_worth_more():
    assert (np.diff(inverse_propensity_from_counts(np.arange(50), 50)) < 0).all()


def test_only_the_pattern_counts():
    plain = sp.csr_matrix([[1, 0, 1], [1, 0, 0], [1, 0, 0], [0, 0, 0]])
    valued = sp.csr_matrix(
        ([0.5, 0.0, 2.0, 7.0, 7.0, 1e-9], ([0, 0, 0, 1, 1, 2], [0, 1, 2, 0, 0, 0])), shape=(4, 3)
    )
    repeated = sp.coo_matrix(
        (np.array([100, 100, 1, 1, 1], np.int8), ([0, 0, 0, 1, 2], [0, 0, 2, 0, 0])), shape=(4, 3)
    )
    lists = [[2, 0, 0], (0,), {0}, []]
    expected = inverse_propensity_from_counts([3, 0, 1], 4)
    for Y in (plain, plain.toarray(), plain.tocsc(), plain.astype(bool), valued, repeated):
        np.testing.assert_array_equal(inverse_propensity(Y), expected)
    np.testing.assert_array_equal(inverse_propensity(lists), expected)


def test_the_callers_matrix_is_not_changed():
    Y = sp.csr_matrix(([0.0, 3.0, 3.0], [2, 1, 1], [0, 3]), shape=(1, 3))
    inverse_propensity(Y)
    assert Y.data.tolist() == [0, 3, 3]
    assert Y.indices.tolist() == [2, 1, 1]


def test_constants_are_found_whatever_the_spelling():
    assert constants("Amazon-670K") == constants("amazon 670k") == constants("AMAZON670K") == (0.6, 2.6)
    assert constants("eurlex-4k") == constants("AmazonCat-13K") == constants("wiki10-31k") == (0.55, 1.5)
    assert constants("WikiLSHTC-325K") == constants("WikipediaLarge-500K") == (0.5, 0.4)
    assert len(CONSTANTS) == 6
    with pytest.raises(ValueError, match=r"must be one of EURLex-4K, .*; got 'Amazon-3M'"):
        constants("Amazon-3M")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"a": -0.1}, "a must be at least 0 and at most 100; got -0.1"),
        ({"a": math.nan}, "a must be a finite number; got nan"),
        ({"a": 1e308, "b": 1e308}, r"a must be at least 0 and at most 100; got 1e\+308"),
        ({"a": 100, "b": 1e-10}, "a and b must give finite propensities"),
        ({"b": 0.0}, r"b must be above 0 and at most 1e\+09; got 0.0"),
        ({"b": 1e10}, r"b must be above 0 and at most 1e\+09; got 1"),
        ({"b": math.inf}, "b must be"),
        ({"n_rows": 0}, "n_rows must be at least 1; got 0"),
        ({"n_rows": 2}, "counts must be at most the 2 rows; got 3"),
        ({"counts": [1, -1]}, "counts must hold finite numbers that are at least 0; got -1.0 for label 1"),
        ({"counts": [[1]]}, "counts must be 1-D"),
    ],
)
def test_bad_arguments_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        inverse_propensity_from_counts(**{"counts": [3, 0], "n_rows": 10, **arguments})


@pytest.mark.parametrize(
    ("Y", "message"),
    [
        (np.ones(3), "Y must be a 2-D matrix of numbers or a list of label lists; got 1-D of float64"),
        (np.array([[np.nan, 1.0]]), "Y must hold finite numbers; got nan"),
        ([[0], [1, -2]], "Y must hold labels from 0 to 1; got -2 in row 1"),
        ([[0], [0.5]], "Y must hold a list of label numbers for every row; got"),
        (["ab", "c"], "Y must hold a list of label numbers for every row; got"),
        ([0, 1], "Y must hold a list of label numbers for every row;"),
        ([[0, [1]]], "Y must hold a list of label numbers for every row;"),
        ([[2**40]], "Y must have at most 2147483647 labels; got 1099511627777"),
        (np.ones((0, 3)), "n_rows must be at least 1; got 0"),
        (np.array([[1, -1], [-1, 1]]), "Y must hold 0 for a label that a row lacks .*; got -1"),
    ],
)
def test_bad_labels_are_named(Y, message):
    with pytest.raises(ValueError, match=message):
        inverse_propensity(Y)


def indicator(rows, n_labels):
    matrix = np.zeros((len(rows), n_labels))
    for number, row in enumerate(rows):
        matrix[number, row] = 1
    return matrix
