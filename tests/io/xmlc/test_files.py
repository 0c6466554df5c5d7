"""XMLC files on disk: compressed, damaged, missing; and written ones, which load as the same bits."""

import bz2
import gzip
import io
import lzma

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import sparse

from longleaf import _core
from longleaf._validation import DataError
from longleaf.io.xmlc import load_sparse, load_xmlc, save_xmlc
from tests.helpers.same import same_matrix
from tests.helpers.xmlc import PLAIN, load_bytes

pytestmark = pytest.mark.native

COMPRESS = {"txt": bytes, "gz": gzip.compress, "xz": lzma.compress, "bz2": bz2.compress}


@pytest.mark.parametrize("form", COMPRESS)
@pytest.mark.parametrize("suffix", ["", ".txt", ".gz"])
def test_compressed_files_are_known_by_their_content(tmp_path, form, suffix):
    path = tmp_path / f"data{suffix}"
    path.write_bytes(COMPRESS[form](PLAIN))
    for source in (path, str(path)):
        same_matrix(load_xmlc(source)[0], load_bytes(PLAIN)[0])
    with path.open("rb") as file:
        same_matrix(load_xmlc(file)[1], load_bytes(PLAIN)[1])
        assert not file.closed


def test_a_stream_that_gives_a_byte_at_a_time_is_read_whole():
    class Trickle(io.BytesIO):
        name = 3  # what os.fdopen says

        def read(self, size=-1):
            return super().read(min(size, 1))

    for compress in COMPRESS.values():
        same_matrix(load_xmlc(Trickle(compress(PLAIN)))[0], load_bytes(PLAIN)[0])


def test_gzip_files_of_several_members_are_read_to_the_end():
    content = gzip.compress(PLAIN[:20]) + gzip.compress(PLAIN[20:])
    same_matrix(load_bytes(content)[0], load_bytes(PLAIN)[0])


@pytest.mark.parametrize("form", ["gz", "xz", "bz2"])
def test_a_compressed_file_cut_short_is_refused(tmp_path, form):
    path = tmp_path / "data.txt"
    path.write_bytes(COMPRESS[form](PLAIN)[:-9])
    with pytest.raises(DataError) as caught:
        load_xmlc(path)
    assert str(caught.value) == f"{path} is truncated: its {form} data have no end."


@pytest.mark.parametrize("form", ["gz", "xz", "bz2"])
def test_a_damaged_compressed_file_is_refused(tmp_path, form):
    path = tmp_path / "data.txt"
    content = bytearray(COMPRESS[form](PLAIN * 50))
    content[len(content) // 2] ^= 255
    path.write_bytes(content)
    with pytest.raises(DataError) as caught:
        load_xmlc(path)
    assert str(caught.value).startswith((f"{path} is damaged: its {form} data", f"{path}, line "))


def test_a_missing_file_and_a_directory_are_refused_by_name(tmp_path):
    with pytest.raises(DataError) as caught:
        load_xmlc(tmp_path / "none.txt")
    assert str(caught.value) == f"{tmp_path / 'none.txt'} does not exist."
    with pytest.raises(DataError) as caught:
        load_sparse(tmp_path)
    assert str(caught.value) == f"{tmp_path} is a directory; a file is needed."


def test_messages_name_the_file(tmp_path):
    path = tmp_path / "bad.txt"
    path.write_bytes(b"1 3 1\n0 7:1\n")
    message = f"{path}, line 2: feature 7 is out of range; the header says 3 features."
    for source in (path, str(path), path.open("rb")):
        with pytest.raises(DataError) as caught:
            load_xmlc(source)
        assert str(caught.value) == message
    source.close()


FLOATS = st.floats(width=32, allow_nan=False, allow_infinity=False)


@st.composite
def data_sets(draw):
    n_rows, n_features, n_labels = draw(st.tuples(*[st.integers(0, 6)] * 3))
    X = draw(hnp.arrays(np.float32, (n_rows, n_features), elements=FLOATS, fill=st.just(0.0)))
    Y = draw(hnp.arrays(np.bool_, (n_rows, n_labels)))
    return sparse.csr_matrix(X), sparse.csr_matrix(Y.astype(np.float32))


@given(data_sets())
def test_what_is_saved_loads_as_the_same_bits(tmp_path_factory, data):
    X, Y = data
    path = tmp_path_factory.mktemp("xmlc") / "data.txt"
    save_xmlc(path, X, Y)
    X_again, Y_again = load_xmlc(path)
    same_matrix(X_again, X)
    same_matrix(Y_again, Y)


@given(hnp.arrays(np.float32, 200, elements=FLOATS))
def test_every_float32_survives_in_no_more_characters_than_numpy_needs(values):
    indptr = np.array([0, values.size])
    indices = np.arange(values.size, dtype=np.int32)
    text = _core.format_xmlc(indptr, indices, values, np.array([0, 0]), indices[:0], 0, 1)
    for value, pair in zip(values, text.decode().split(), strict=True):
        fixed = np.format_float_positional(value, unique=True, trim="-")
        scientific = np.format_float_scientific(value, unique=True, trim="-", exp_digits=2)
        assert len(pair.partition(":")[2]) <= min(len(fixed), len(scientific))
    X, _ = load_bytes(b"1 200 1\n" + text)
    assert np.array_equal(X.data.view(np.int32), values.view(np.int32))


@pytest.mark.parametrize(("form", "magic"), [("gz", b"\x1f\x8b"), ("xz", b"\xfd7zXZ\x00"), ("bz2", b"BZh")])
def test_the_suffix_says_how_a_saved_file_is_compressed(tmp_path, form, magic):
    X, Y = load_bytes(PLAIN)
    save_xmlc(tmp_path / f"data.{form}", X, Y)
    assert (tmp_path / f"data.{form}").read_bytes().startswith(magic)
    same_matrix(load_xmlc(tmp_path / f"data.{form}")[0], X)


def test_many_rows_are_written_in_blocks_without_a_seam(tmp_path, monkeypatch):
    monkeypatch.setattr("longleaf.io.xmlc.NUMBERS_PER_BLOCK", 7)
    rng = np.random.default_rng(1)
    X = sparse.random_array((50, 30), density=0.2, format="csr", dtype=np.float32, rng=rng)
    X = sparse.csr_matrix(X)
    X.sort_indices()
    Y = sparse.csr_matrix((rng.random((50, 8)) < 0.1).astype(np.float32))
    save_xmlc(tmp_path / "data.txt", X, Y)
    same_matrix(load_xmlc(tmp_path / "data.txt")[0], X)
    same_matrix(load_xmlc(tmp_path / "data.txt")[1], Y)


def test_saving_takes_dense_and_unsorted_input_and_changes_none_of_it(tmp_path):
    X = sparse.csr_matrix((np.array([2.0, 1.0, 1.0]), np.array([3, 0, 3]), np.array([0, 3])), shape=(1, 4))
    Y = np.array([[0, 1, 0, 5]])
    save_xmlc(tmp_path / "data.txt", X, Y)
    assert (tmp_path / "data.txt").read_bytes() == b"1 4 4\n1,3 0:1 3:3\n"
    assert (X.indices.tolist(), X.data.tolist(), Y.tolist()) == ([3, 0, 3], [2, 1, 1], [[0, 1, 0, 5]])


def test_saving_refuses_what_could_not_be_read_back_and_leaves_the_old_file(tmp_path):
    path = tmp_path / "data.txt"
    path.write_text("old")
    with pytest.raises(DataError, match=r"^X and Y must have the same number of rows; got 2 and 3\.$"):
        save_xmlc(path, np.ones((2, 2)), np.ones((3, 1)))
    for value in (np.nan, np.inf, 1e39):
        with pytest.raises(DataError, match=r"^X must hold finite numbers that fit a 32-bit float; got "):
            save_xmlc(path, np.array([[1.0, value]]), np.ones((1, 1)))
    assert [file.name for file in tmp_path.iterdir()] == ["data.txt"]
    assert path.read_text() == "old"


def test_a_write_that_fails_leaves_nothing_behind(tmp_path, monkeypatch):
    def fail(*_):
        raise OSError("disk full")

    monkeypatch.setattr("longleaf._core.format_xmlc", fail)
    with pytest.raises(OSError, match="disk full"):
        save_xmlc(tmp_path / "data.gz", np.ones((1, 1)), np.ones((1, 1)))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("indptr", [[0, 9], [2, 1], [-1, 1]])
def test_the_native_writer_refuses_arrays_that_do_not_fit_together(indptr):
    indices, data = np.zeros(2, np.int32), np.zeros(2, np.float32)
    with pytest.raises(ValueError, match="indptr must rise"):
        _core.format_xmlc(np.array(indptr), indices, data, np.array([0, 0]), indices, 0, 1)
    with pytest.raises(ValueError, match="rows must lie inside"):
        _core.format_xmlc(np.array([0, 2]), indices, data, np.array([0, 0]), indices, 0, 2)
    with pytest.raises(ValueError, match="the same size"):
        _core.format_xmlc(np.array([0, 2]), indices, data[:1], np.array([0, 0]), indices, 0, 1)
