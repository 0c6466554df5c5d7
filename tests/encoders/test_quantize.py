"""Quantised matrices are as near as their bits allow."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from longleaf.encoders.quantize import per_column, per_row

MATRICES = arrays.arrays(
    np.float32, arrays.array_shapes(min_dims=2, max_dims=2), elements=st.floats(-100, 100, width=32)
)


@given(MATRICES)
def test_each_row_is_off_by_at_most_half_a_step(matrix):
    integers, scales = per_row(matrix)
    assert integers.dtype == np.int8
    assert scales.shape == (len(matrix), 1)
    assert (np.abs(integers * scales - matrix) <= 0.5001 * scales).all()


@given(MATRICES)
def test_each_column_has_seven_bits(matrix):
    integers, scales = per_column(matrix)
    assert np.abs(integers.astype(int)).max() <= 63
    assert (np.abs(integers * scales - matrix) <= 0.5001 * scales).all()


def test_the_largest_value_of_a_column_becomes_the_largest_integer():
    integers, scales = per_column(np.array([[2, 0], [-6.3, 0]], np.float32))
    assert integers.tolist() == [[20, 0], [-63, 0]]
    assert scales[1] == 1
