"""Files of several arrays: what their headers may say."""

import json

import numpy as np
import pytest

from longleaf._validation import DataError
from longleaf.io import _bundle
from longleaf.io._manifest import checksum


@pytest.fixture
def path(tmp_path):
    arrays = {"a": np.arange(5), "b": np.ones(3, np.float32)}
    _bundle.write_arrays(tmp_path / "x.bundle", {"facts": {"epochs": 3}}, arrays)
    return tmp_path / "x.bundle"


def forge(path, change):
    """Change the header and all that follows from it, as a forger who knows the format would."""
    whole = path.read_bytes()
    length = int.from_bytes(whole[8:16], "little")
    header = json.loads(whole[16 : 16 + length])
    arrays = whole[_bundle._aligned(16 + length) : -4]
    header = json.dumps(change(header)).encode()
    start = b"LLBNDL1\n" + len(header).to_bytes(8, "little") + header
    start = start.ljust(_bundle._aligned(len(start)), b"\0")
    path.write_bytes(start + arrays + checksum(start + arrays).to_bytes(4, "little"))


def test_what_was_written_is_read(path):
    forge(path, lambda header: header)
    bundle = _bundle.open_bundle(path)
    assert bundle.meta == {"facts": {"epochs": 3}}
    np.testing.assert_array_equal(bundle.read("a"), np.arange(5))
    np.testing.assert_array_equal(bundle.map()["b"], np.ones(3))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda header: [], "its header must be an object"),
        (lambda header: {"meta": {}}, "must have the field arrays"),
        (lambda header: header | {"meta": 1}, "its header.meta must be an object"),
        (lambda header: header | {"meta": {"facts": []}}, "meta.facts must be an object"),
        (lambda header: header | {"arrays": []}, "its header.arrays must be an object"),
        (lambda header: header | {"arrays": {}}, "as many bytes as its arrays"),
        (lambda header: header | {"arrays": {"a": 5}}, "must be a type and a length; got 5"),
        (lambda header: header | {"arrays": {"a": ["|O", 5]}}, "dtype must be one of"),
        (lambda header: header | {"arrays": {"a": ["<i8", -1]}}, "must be at least 0"),
        (lambda header: header | {"arrays": {"a": ["<i8", 1e308]}}, "must be a whole number"),
        (lambda header: header | {"arrays": {"a": ["<i8", 10**12]}}, "as many bytes as its arrays"),
    ],
)
def test_a_header_that_cannot_be_is_a_data_error(path, change, message):
    forge(path, change)
    with pytest.raises(DataError, match=message):
        _bundle.open_bundle(path)


def test_a_length_beyond_the_file_is_a_data_error(path):
    whole = bytearray(path.read_bytes()[:-4])
    whole[8:16] = b"\xff" * 7 + b"\x7f"
    path.write_bytes(bytes(whole) + checksum(bytes(whole)).to_bytes(4, "little"))
    with pytest.raises(DataError, match="is damaged"):
        _bundle.open_bundle(path)
