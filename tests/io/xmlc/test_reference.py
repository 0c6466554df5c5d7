"""The native XMLC reader beside a slow and obvious one: rounding, mutated files, random bytes."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from longleaf._validation import DataError
from longleaf.io.streams import MAGIC
from longleaf.io.xmlc import load_sparse
from tests.helpers.xmlc import load_bytes, rows_of
from tests.reference import xmlc as reference

pytestmark = pytest.mark.native


def outcome(content, labelled=True):
    """What the native reader makes of `content`, in the reference's terms."""
    try:
        if not labelled:
            M = load_bytes(content, load_sparse)
            return M.shape, rows_of(M), [set()] * M.shape[0]
        X, Y = load_bytes(content)
        return (*X.shape, Y.shape[1]), rows_of(X), [set(row) for row in rows_of(Y)]
    except DataError as error:
        return int(str(error).split("line ")[1].split(":")[0])


def reference_outcome(content, labelled=True):
    try:
        return reference.parse(content, labelled)
    except reference.RefusedError as refusal:
        return refusal.line


def read_value(text):
    return load_bytes(b"1 1 1\n 0:" + text.encode())[0].data[0]


@given(st.from_regex(r"[+-]?([0-9]{1,21}\.?[0-9]{0,24}|\.[0-9]{1,30})([eE][+-]?[0-9]{1,2})?", fullmatch=True))
def test_a_number_is_rounded_to_the_nearest_float32(text):
    expected = reference.nearest_float32(text)
    if expected is None:
        with pytest.raises(DataError, match="must fit a 32-bit float"):
            read_value(text)
    else:
        assert read_value(text).view(np.int32) == expected.view(np.int32), text


@given(st.floats(width=32, min_value=2**-20, max_value=2**20), st.sampled_from(["", "0000001", "1"]))
def test_numbers_at_and_beside_the_middle_of_two_floats_are_rounded_right(value, more):
    value = np.float32(value)
    middle = (float(value) + float(np.nextafter(value, np.float32(np.inf)))) / 2
    for text in (f"{middle:.60f}".rstrip("0") + more, f"{middle:.15f}", f"{middle:.12f}", f"{middle:.16g}"):
        assert read_value(text).view(np.int32) == reference.nearest_float32(text).view(np.int32), text


BASE = b"4 6 3\n1,2 0:1.5 3:2 5:0.25\n0:1 4:33\n2,0 1:-3e-2 2:.5 1:7\n\n"
ALPHABET = b"0123456789:, \t\r\n.-+eE\0\xffa"


@given(st.lists(st.tuples(st.integers(0, 99), st.integers(0, 2), st.sampled_from(ALPHABET)), max_size=4))
def test_a_mutated_file_is_read_or_refused_as_by_the_slow_reader(edits):
    content = bytearray(BASE)
    for position, deleted, byte in edits:
        position = min(position, len(content))
        content[position : position + deleted] = bytes([byte])
    content = bytes(content)
    assert outcome(content) == reference_outcome(content)
    assert outcome(content[6:], labelled=False) == reference_outcome(content[6:], labelled=False)


@given(st.binary(max_size=200), st.booleans())
def test_random_bytes_are_read_or_refused_as_by_the_slow_reader(noise, with_header):
    content = b"3 9 9\n" * with_header + noise
    assume(not content.startswith(tuple(MAGIC)))
    assert outcome(content) == reference_outcome(content)
