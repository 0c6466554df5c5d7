"""The answers of a search as a table and as a matrix."""

import sys

import numpy as np
import pytest

import longleaf as ll

TOP = ll.TopK(
    np.array([[4, 0], [2, -1], [-1, -1]], np.int32),
    np.array([[3.0, 0.5], [0.0, 0.0], [0.0, 0.0]], np.float32),
    np.array([[0.25, 0.5], [0.125, 0.0], [0.0, 0.0]], np.float32),
    np.zeros(3, np.int64),
)


def test_a_table_has_a_line_per_label():
    pandas = pytest.importorskip("pandas")
    want = pandas.DataFrame(
        {
            "row": [0, 0, 1],
            "rank": [1, 2, 1],
            "label": np.array([4, 0, 2], np.int32),
            "score": np.array([3.0, 0.5, 0.0], np.float32),
            "probability": np.array([0.25, 0.5, 0.125], np.float32),
        }
    )
    pandas.testing.assert_frame_equal(TOP.to_frame(), want)


def test_a_table_calls_rows_and_labels_by_their_names():
    pytest.importorskip("pandas")
    table = TOP.to_frame(classes=["oil", "b", "wine", "d", "fish"], ids=iter(["x", "y", 7]))
    assert list(table.columns) == ["id", "rank", "tag", "score", "probability"]
    assert table[["id", "rank", "tag"]].to_numpy().tolist() == [
        ["x", 1, "fish"],
        ["x", 2, "oil"],
        ["y", 1, "wine"],
    ]
    empty = ll.TopK(*(one[:0] for one in (TOP.labels, TOP.scores, TOP.probabilities, TOP.evaluations)))
    assert list(empty.to_frame(classes=[], ids=[]).columns) == list(table.columns)
    assert len(empty.to_frame()) == 0


def test_a_matrix_has_probabilities_or_scores_at_the_labels():
    chances = TOP.to_csr(6)
    assert (chances.shape, chances.dtype, chances.nnz) == ((3, 6), np.float32, 3)
    assert chances.has_sorted_indices
    np.testing.assert_array_equal(
        chances.toarray(), [[0.5, 0, 0, 0, 0.25, 0], [0, 0, 0.125, 0, 0, 0], [0] * 6]
    )
    scores = TOP.to_csr(5, values="score")
    assert scores.nnz == 3, "a score of 0 is an entry"
    assert scores.toarray()[0].tolist() == [0.5, 0, 0, 0, 3.0]


def test_wrong_sizes_are_named():
    pytest.importorskip("pandas")
    with pytest.raises(ValueError, match="include every label; got 4, and the largest label is 4"):
        TOP.to_csr(4)
    with pytest.raises(ValueError, match="classes must have an entry for every label; got 2"):
        TOP.to_frame(classes=["a", "b"])
    with pytest.raises(ValueError, match="ids must have 3 entries, one per row; got 2"):
        TOP.to_frame(ids=["a", "b"])
    with pytest.raises(ValueError, match="values must be"):
        TOP.to_csr(5, values="rank")


def test_a_missing_pandas_is_said_in_one_sentence(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match=r"TopK.to_frame needs the extra pandas, .* 'longleaf\[pandas\]'."):
        TOP.to_frame()
