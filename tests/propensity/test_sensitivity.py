"""psp over a grid of constants is what `evaluate` says at each of them."""

from unittest.mock import Mock

import numpy as np
import pytest

import longleaf as ll

TRUTH = [[0, 2], [1], [0, 1, 2], [0], []]
FREQUENT = np.array([[0, 1], [0, 1], [0, 1], [0, 1], [0, 1]])
RARE = np.array([[2, 1], [2, 1], [2, -1], [2, 1], [2, 1]])
COUNTS, ROWS = [80, 20, 1], 100
GRID = {"a": [0.0, 0.5, 3.0], "b": [0.4, 2.6]}


def test_every_cell_is_what_evaluate_says():
    found = ll.psp_sensitivity(TRUTH, FREQUENT, RARE, COUNTS, ROWS, k=(1, 2, 3), **GRID)
    for i, a in enumerate(GRID["a"]):
        for j, b in enumerate(GRID["b"]):
            worth = ll.propensity.inverse_propensity_from_counts(COUNTS, ROWS, a, b)
            for top, name in ((FREQUENT, "psp_a"), (RARE, "psp_b")):
                expected = ll.metrics.evaluate(TRUTH, top, worth, k=(1, 2, 3))
                for metric, grid in found.items():
                    assert getattr(grid, name)[i, j] == pytest.approx(expected[metric])


def test_the_order_changes_where_rare_labels_become_worth_more():
    found = ll.psp_sensitivity(TRUTH, FREQUENT, RARE, COUNTS, ROWS, k=[1], **GRID)["psp@1"]
    assert (found.difference[0] < 0).all()  # A = 0: all labels are worth the same
    assert (found.difference[-1] > 0).all()
    assert found.order_changes
    same = ll.psp_sensitivity(TRUTH, RARE, RARE, COUNTS, ROWS, **GRID)["psp@3"]
    assert not same.order_changes
    assert (same.difference == 0).all()


@pytest.mark.parametrize(("top", "lines"), [(FREQUENT, 1), (RARE, 0)])
def test_a_line_is_drawn_only_where_the_order_changes(top, lines):
    axes = Mock()
    found = ll.psp_sensitivity(TRUTH, top, RARE, COUNTS, ROWS, k=[1], **GRID)["psp@1"]
    assert found.draw(axes) is axes.pcolormesh.return_value
    assert axes.contour.call_count == lines


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"a": [0.5]}, r"a must be at least two ascending numbers; got \[0.5\]"),
        ({"b": [2.0, 1.0]}, r"b must be at least two ascending numbers; got \[2.0, 1.0\]"),
        ({"b": [0.0, 1.0]}, "B of the grid must be above 0"),
        ({"a": 0.5}, r"a must be at least two ascending numbers; got 0.5"),
        ({"b": ["x", "y"]}, r"b must be at least two ascending numbers; got \['x', 'y'\]"),
        ({"counts": [1, 2]}, "Y_true must hold labels from 0 to 1; got 2"),
        ({"n_rows": None}, "n_rows must be a whole number; got None"),
        ({"n_rows": float("nan")}, "n_rows must be a whole number; got nan"),
        ({"top_b": RARE[:1]}, "top_b must have .* rows, as Y_true has; got 1"),
    ],
)
def test_faulty_grids_are_refused(change, message):
    arguments = {"top_b": RARE, "counts": COUNTS, "n_rows": ROWS, **GRID} | change
    with pytest.raises(ValueError, match=message):
        ll.psp_sensitivity(TRUTH, FREQUENT, **arguments)
