"""The XMLC reader: what it accepts, what it refuses and with which words."""

import numpy as np
import pytest
from scipy import sparse

from longleaf import _core
from longleaf._validation import DataError
from longleaf.io.xmlc import load_sparse
from tests.helpers.same import same_matrix
from tests.helpers.xmlc import PLAIN, load_bytes, rows_of

pytestmark = pytest.mark.native


def test_a_hand_written_file_gives_the_matrices_it_describes():
    X, Y = load_bytes(PLAIN)
    assert X.toarray().tolist() == [
        [1.5, 0, 0, 2],
        [1, 0, 0, 0],
        [0, float(np.float32(-0.03)), 0.5, 0],
    ]
    assert Y.toarray().tolist() == [[0, 1, 1, 0, 0], [0, 0, 0, 0, 0], [0, 0, 0, 0, 1]]
    for matrix in (X, Y):
        assert isinstance(matrix, sparse.csr_matrix)
        assert (matrix.dtype, matrix.indices.dtype, matrix.indptr.dtype) == (np.float32, np.int32, np.int32)


@pytest.mark.parametrize(
    ("row", "features", "labels"),
    [
        (b"1,2 0:1 3:2", {0: 1, 3: 2}, [1, 2]),
        (b"1,2 0:1 3:2\r", {0: 1, 3: 2}, [1, 2]),
        (b" 0:1", {0: 1}, []),
        (b"\t0:1", {0: 1}, []),
        (b"0:1 3:2", {0: 1, 3: 2}, []),
        (b"1,2", {}, [1, 2]),
        (b"1,2 ", {}, [1, 2]),
        (b"1\t 0:1 \t 3:2 \t", {0: 1, 3: 2}, [1]),
        (b"1 3:2 0:1 2:4", {0: 1, 2: 4, 3: 2}, [1]),
        (b"1 3:2 0:1 3:0.5 0:1", {0: 2, 3: 2.5}, [1]),
        (b"4,1,4,0 0:1", {0: 1}, [0, 1, 4]),
        (b"1 0:1e2 1:1E-1 2:+2.5e+1 3:-1e0", {0: 100, 1: np.float32(0.1), 2: 25, 3: -1}, [1]),
        (b"1 0:+1 1:.5 2:5. 3:007", {0: 1, 1: 0.5, 2: 5, 3: 7}, [1]),
        (b"001 0003:1", {3: 1}, [1]),
        (b"1 0:0 1:1e-60 2:-0", {0: 0, 1: 0, 2: 0}, [1]),
        (b"1 0:1e-99999999999999999999 1:0." + b"0" * 400 + b"1 2:0e999", {0: 0, 1: 0, 2: 0}, [1]),
        (
            b"1 0:3.4028235e38 1:340282350000000000000000000000000000000",
            dict.fromkeys([0, 1], 2**128 - 2**104),
            [1],
        ),
        (b"", {}, []),
        (b"  ", {}, []),
    ],
)
def test_a_row_may_be_written_as(row, features, labels):
    X, Y = load_bytes(b"1 4 5\n" + row + b"\n")
    assert rows_of(X) == [features]
    assert Y.indices.tolist() == labels
    assert X.indices.tolist() == sorted(features)


@pytest.mark.parametrize("end", [b"", b"\n", b"\r\n", b"\n\n\n", b"\n \t\r\n", b"\n\r\n\r\n"])
def test_blank_lines_after_the_last_row_do_not_matter(end):
    X, Y = load_bytes(PLAIN + end)
    same_matrix(X, load_bytes(PLAIN)[0])
    same_matrix(Y, load_bytes(PLAIN)[1])


def test_a_blank_line_among_the_promised_rows_is_an_empty_row():
    X, Y = load_bytes(b"3 2 2\n0 0:1\n\n1 1:1\n")
    assert rows_of(X) == [{0: 1}, {}, {1: 1}]
    assert rows_of(Y) == [{0: 1}, {}, {1: 1}]


@pytest.mark.parametrize("header", [b"0 0 0", b"0 4 5\n", b" 0\t4   5 \r\n"])
def test_a_file_may_have_no_rows(header):
    X, Y = load_bytes(header)
    assert X.shape[0] == Y.shape[0] == X.nnz == Y.nnz == 0


HEADER = "the header must be three whole numbers, rows features labels; got "
MOST = "at most 2147483647 are possible."
OUT = "is out of range; the header says 3 features."
BINARY = "a NUL byte was found; this is not a text file."


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", f'line 1: {HEADER}"".'),
        (b"\n", f'line 1: {HEADER}"".'),
        (b"3 4\n", f'line 1: {HEADER}"3 4".'),
        (b"3 4 5 6\n", f'line 1: {HEADER}"3 4 5 6".'),
        (b"-3 4 5\n", f'line 1: {HEADER}"-3 4 5".'),
        (b"3 4.0 5\n", f'line 1: {HEADER}"3 4.0 5".'),
        (b"rows features labels\n", f'line 1: {HEADER}"rows features labels".'),
        (b"\xff\xfe1\x02\n", f'line 1: {HEADER}"\\xff\\xfe1\\x02".'),
        (b"x" * 5000, f'line 1: {HEADER}"{"x" * 40}...".'),
        (b"1 2147483648 1\n", f"line 1: the header says 2147483648 features; {MOST}"),
        (b"9" * 25 + b" 1 1\n", f"line 1: the header says {'9' * 25} rows; {MOST}"),
        (b"1 1 18446744073709551617\n", f"line 1: the header says 18446744073709551617 labels; {MOST}"),
        (b"3 4 5\n1 0:1\n", "line 2: the file ends after 1 row; the header says 3 rows."),
        (b"3 4 5", "line 1: the file ends after 0 rows; the header says 3 rows."),
        (b"2147483647 9 9", "line 1: the file ends after 0 rows; the header says 2147483647 rows."),
        (b"1 4 5\n1 0:1\n\n2 0:1\n", "line 4: a row too many was found; the header says 1 row."),
        (b"0 4 5\nx", "line 2: a row too many was found; the header says 0 rows."),
    ],
)  # fmt: skip
def test_a_bad_or_lying_header_is_refused(content, sentence):
    with pytest.raises(DataError) as caught:
        load_bytes(content)
    assert str(caught.value) == f"<input>, {sentence}"


@pytest.mark.parametrize(
    ("row", "sentence"),
    [
        (b"0 7:1", f"feature 7 {OUT}"),
        (b"0 3:1", f"feature 3 {OUT}"),
        (b"3:1", f"feature 3 {OUT}"),
        (b"0 -1:1", f"feature -1 {OUT}"),
        (b"-1:1", f"feature -1 {OUT}"),
        (b"0 4294967296:1", f"feature 4294967296 {OUT}"),
        (b"0 18446744073709551616:1", f"feature 18446744073709551616 {OUT}"),
        (b"0 " + b"1" * 50 + b":1", f"feature {'1' * 40}... {OUT}"),
        (b"0 7:nan", f"feature 7 {OUT}"),
        (b"1 0:1", "label 1 is out of range; the header says 1 label."),
        (b"0,-2 0:1", "label -2 is out of range; the header says 1 label."),
        (b"0,99999999999999999999", "label 99999999999999999999 is out of range; the header says 1 label."),
        (b"0 0:nan", 'the value of feature 0 must be a finite number; got "nan".'),
        (b"0 0:inf", 'the value of feature 0 must be a finite number; got "inf".'),
        (b"0 0:-Infinity", 'the value of feature 0 must be a finite number; got "-Infinity".'),
        (b"0 0:1x", 'the value of feature 0 must be a finite number; got "1x".'),
        (b"0 0:0x10", 'the value of feature 0 must be a finite number; got "0x10".'),
        (b"0 0:1:2", 'the value of feature 0 must be a finite number; got "1:2".'),
        (b"0 0:1.2.3", 'the value of feature 0 must be a finite number; got "1.2.3".'),
        (b"0 0:1e", 'the value of feature 0 must be a finite number; got "1e".'),
        (b"0 0:+-1", 'the value of feature 0 must be a finite number; got "+-1".'),
        (b"0 0:--1", 'the value of feature 0 must be a finite number; got "--1".'),
        (b"0 0:+", 'the value of feature 0 must be a finite number; got "+".'),
        (b"0 0:.", 'the value of feature 0 must be a finite number; got ".".'),
        (b"0 0:\xd9\xa1", 'the value of feature 0 must be a finite number; got "\\xd9\\xa1".'),
        (b"0 0:1\r 1:2", 'the value of feature 0 must be a finite number; got "1\\x0d".'),
        (b"0 0:1e39", 'the value of feature 0 must fit a 32-bit float; got "1e39".'),
        (b"0 0:-3.4028236e38", 'the value of feature 0 must fit a 32-bit float; got "-3.4028236e38".'),
        (b"0 0:1e9999999999", 'the value of feature 0 must fit a 32-bit float; got "1e9999999999".'),
        (b"0 0:3e38 0:3e38", "the values of feature 0 add up to more than a 32-bit float holds."),
        (b"0 5", '"5" is not a feature:value pair.'),
        (b"0 2:", '"2:" is not a feature:value pair.'),
        (b"0 2: 1:1", '"2:" is not a feature:value pair.'),
        (b"0 :3", '":3" is not a feature:value pair.'),
        (b":3", '":3" is not a feature:value pair.'),
        (b"0 a:b", '"a:b" is not a feature:value pair.'),
        (b"a:b", '"a:b" is not a feature:value pair.'),
        (b"0 +1:2", '"+1:2" is not a feature:value pair.'),
        (b"0 1.5:2", '"1.5:2" is not a feature:value pair.'),
        (b"0,0:1", '"0,0:1" is not a feature:value pair.'),
        (b"9,0:1", '"9,0:1" is not a feature:value pair.'),
        (b" 0 0:1", '"0" is not a feature:value pair.'),
        (b"a 0:1", '"a" is not a list of labels, whole numbers joined by commas.'),
        (b"0, 0:1", '"0," is not a list of labels, whole numbers joined by commas.'),
        (b"0,,0 0:1", '"0,,0" is not a list of labels, whole numbers joined by commas.'),
        (b",0 0:1", '",0" is not a list of labels, whole numbers joined by commas.'),
        (b"0.5 0:1", '"0.5" is not a list of labels, whole numbers joined by commas.'),
        (b"\0", BINARY),
        (b"0 0:1 \0", BINARY),
        (b"0 0:1\0", BINARY),
        (b"0 0\0:1", BINARY),
    ],
)  # fmt: skip
@pytest.mark.parametrize("end", [b"", b"\n", b"\r\n 0:1\n"])
def test_a_faulty_row_is_refused_with_its_line(row, sentence, end):
    with pytest.raises(DataError) as caught:
        load_bytes(b"4 3 1\n0 0:1\n\n" + row + end)
    assert str(caught.value) == f"<input>, line 4: {sentence}"


def test_binary_data_without_a_line_break_are_refused_before_they_fill_the_memory():
    parser = _core.XmlcParser(True)
    parser.feed(b"2 2 2\n0 0:1\n0 1")
    with pytest.raises(ValueError, match=r"^line 3: a NUL byte was found; this is not a text file\.$"):
        parser.feed(b"\0" * 100)


def test_a_parser_is_not_used_again_after_its_end_or_an_error():
    ended, failed = _core.XmlcParser(True), _core.XmlcParser(True)
    ended.feed(b"0 1 1\n")
    ended.finish()
    with pytest.raises(ValueError, match="line 1"):
        failed.feed(b"x\n")
    for parser in (ended, failed):
        with pytest.raises(RuntimeError, match="cannot be used again"):
            parser.feed(b"0 1 1\n")
        with pytest.raises(RuntimeError, match="cannot be used again"):
            parser.finish()


@pytest.mark.parametrize("size", [1, 2, 3, 7, 10_000])
def test_where_the_pieces_are_cut_does_not_matter(size):
    content = PLAIN.replace(b"\n", b"\r\n") + b"\r\n\r\n"
    parser = _core.XmlcParser(True)
    for start in range(0, len(content), size):
        parser.feed(content[start : start + size])
        parser.feed(b"")
    sizes, *arrays = parser.finish()
    whole = _core.XmlcParser(True)
    whole.feed(content)
    sizes_of_whole, *arrays_of_whole = whole.finish()
    assert sizes == sizes_of_whole == (3, 4, 5)
    assert [array.tolist() for array in arrays] == [array.tolist() for array in arrays_of_whole]
    assert [array.dtype for array in arrays] == [np.int64, np.int32, np.float32, np.int64, np.int32]


def test_the_plain_sparse_form_has_no_labels():
    M = load_bytes(b"3 5\n4:1 0:0.5\n\n2:1 2:1\n", load_sparse)
    assert rows_of(M) == [{0: 0.5, 4: 1}, {}, {2: 2}]
    assert (M.shape, M.dtype, M.indices.dtype) == ((3, 5), np.float32, np.int32)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"3 5 7\n", 'line 1: the header must be two whole numbers, rows columns; got "3 5 7".'),
        (b"1 5\n5:1\n", "line 2: column 5 is out of range; the header says 5 columns."),
        (b"1 5\n1,2 0:1\n", 'line 2: "1,2" is not a column:value pair.'),
        (b"1 5\n1:x\n", 'line 2: the value of column 1 must be a finite number; got "x".'),
    ],
)
def test_the_plain_sparse_form_is_refused_in_its_own_words(content, sentence):
    with pytest.raises(DataError) as caught:
        load_bytes(content, load_sparse)
    assert str(caught.value) == f"<input>, {sentence}"
