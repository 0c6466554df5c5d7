"""The model folder comes back bit for bit, and never takes the place of anything else."""

import os

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from longleaf._validation import ModelError, ModelExistsError
from longleaf.io import _manifest
from longleaf.io.storage import (
    check_target,
    folder_bytes,
    load_folder,
    pack_strings,
    save_folder,
    unpack_strings,
)
from tests.helpers.storage import META, edit_manifest, small_arrays

DTYPES = ["?", "i1", "u1", "<i2", ">u2", "<i4", ">i4", "<u8", "<i8", "<f2", "<f4", ">f8", "<c8", "<c16"]
SHAPES = [(), (0,), (1,), (7,), (3, 4), (0, 5), (5, 0, 2), (2, 3, 4, 5)]


@pytest.fixture
def model(tmp_path):
    path = tmp_path / "model.ll"
    save_folder(path, "plt", META, small_arrays())
    return path


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_arrays_come_back_bit_for_bit(tmp_path, dtype, shape):
    rng = np.random.default_rng(7)
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    bits = rng.integers(0, 2 if dtype == "?" else 256, size, dtype=np.uint8)
    array = np.frombuffer(bits.tobytes(), dtype).reshape(shape)  # any bits at all: NaNs with payloads too
    save_folder(tmp_path / "m", "plt", {}, {"a": array})
    back = load_folder(tmp_path / "m", verify=True).arrays["a"]
    assert back.dtype == np.dtype(dtype).newbyteorder("<")
    assert back.shape == shape
    assert back.tobytes() == array.astype(back.dtype).tobytes()
    assert back.flags.c_contiguous
    assert back.flags.aligned
    assert not back.flags.writeable


@pytest.mark.parametrize(
    "array", [np.arange(12).reshape(3, 4).T, np.asfortranarray(np.eye(3)), np.arange(20)[::-3]]
)
def test_any_memory_layout_is_saved_in_c_order(tmp_path, array):
    save_folder(tmp_path / "m", "plt", {}, {"a": array})
    np.testing.assert_array_equal(load_folder(tmp_path / "m", verify=True).arrays["a"], array)


def test_the_files_are_plain_npy_files_that_numpy_reads(model):
    for name, array in small_arrays().items():
        np.testing.assert_array_equal(np.load(model / f"{name}.npy", allow_pickle=False), array, strict=True)


def test_kind_meta_and_parts_come_back(model):
    folder = load_folder(model)
    assert (folder.kind, folder.meta) == ("plt", META)
    assert list(folder.arrays) == list(small_arrays())
    assert set(folder.part("tree0")) == {"first_child", "deep/weights"}


@given(
    st.dictionaries(
        st.text(),
        st.recursive(
            st.none()
            | st.booleans()
            | st.integers()
            | st.floats(allow_nan=False, allow_infinity=False)
            | st.text(),
            lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
            max_leaves=10,
        ),
    )
)
def test_any_json_is_metadata(meta):
    manifest = _manifest.Manifest("plt", meta, {})
    assert _manifest.parse(_manifest.render(manifest), "here") == manifest


def test_the_same_model_gives_the_same_bytes(tmp_path, model):
    save_folder(tmp_path / "again", "plt", META, small_arrays())
    for file in [path for path in model.rglob("*") if path.is_file()]:
        assert (tmp_path / "again" / file.relative_to(model)).read_bytes() == file.read_bytes()


def test_loading_reads_no_array_data(tmp_path):
    path = tmp_path / "huge"
    save_folder(path, "plt", {}, {"a": np.zeros(16, np.uint8)})
    entry = _manifest.ArrayEntry("|u1", (1 << 38,), 0, "00000000")
    with open(path / "a.npy", "wb") as file:  # 256 GiB, all of it a hole
        file.write(entry.header())
        file.truncate(len(entry.header()) + (1 << 38))
    change = {"shape": [1 << 38], "bytes": len(entry.header()) + (1 << 38)}
    edit_manifest(path, lambda body: body["arrays"]["a"].update(change))
    assert load_folder(path).arrays["a"][-1] == 0
    assert folder_bytes(path) > 1 << 38


def test_folder_bytes_counts_every_file(model):
    assert folder_bytes(model) == sum(path.stat().st_size for path in model.rglob("*") if path.is_file())


# What cannot be saved


@pytest.mark.parametrize(
    "array",
    [np.array([object()]), np.array(["text"]), np.zeros(2, "M8[s]"), np.zeros(2, "i4,f4"), np.zeros(1, "g")],
)
def test_only_numbers_and_booleans_are_saved(tmp_path, array):
    with pytest.raises(ModelError, match="weights cannot be saved: An array's dtype must be one of"):
        save_folder(tmp_path / "m", "plt", {}, {"weights": array})
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("name", ["../a", "/a", "a/../b", "a//b", "", ".", "a.npy", "a/", "a\n", "a b", "ä"])
def test_names_that_could_lead_astray_are_refused(tmp_path, name):
    with pytest.raises(ModelError, match="An array's name must be words of letters"):
        save_folder(tmp_path / "m", "plt", {}, {name: np.zeros(1)})
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("meta", [{"a": float("nan")}, {"a": np.zeros(2)}, {"a": {1}}, {1: 0, "1": 0}])
def test_metadata_must_be_plain_json(tmp_path, meta):
    with pytest.raises(ModelError, match=r"must be plain JSON|a name must occur once"):
        save_folder(tmp_path / "m", "plt", meta, {})


def test_a_missing_parent_is_named(tmp_path):
    with pytest.raises(ModelError, match="parent folder must exist"):
        save_folder(tmp_path / "no" / "m", "plt", {}, {})


# Strings


@given(st.lists(st.text(st.characters())))
def test_strings_in_any_language_come_back(strings):
    data, offsets = pack_strings(strings)
    assert (data.dtype, offsets.dtype, offsets.size) == (np.uint8, np.int64, len(strings) + 1)
    assert unpack_strings(data, offsets) == strings


def test_strings_survive_the_folder(tmp_path):
    strings = ["Grüße", "", "ภาษาไทย", "العربية", "🌲\u200d", "a\0b\n", "\ud800"]
    data, offsets = pack_strings(strings)
    save_folder(tmp_path / "m", "tagger", {}, {"tags/data": data, "tags/offsets": offsets})
    tags = load_folder(tmp_path / "m").part("tags")
    assert unpack_strings(tags["data"], tags["offsets"]) == strings


@pytest.mark.parametrize("offsets", [[], [0], [1, 3], [0, 2], [0, 4], [0, 3, 2, 3], [0, -1, 3]])
def test_wrong_offsets_are_refused(offsets):
    with pytest.raises(ModelError, match="must rise from 0 to their 3 bytes"):
        unpack_strings(np.frombuffer(b"abc", np.uint8), np.array(offsets, np.int64))


def test_packed_strings_that_are_not_utf8_are_refused():
    with pytest.raises(ModelError, match="must be UTF-8"):
        unpack_strings(np.array([0xFF], np.uint8), np.array([0, 1]))
    with pytest.raises(ModelError, match="must be uint8 bytes and int64 offsets"):
        unpack_strings(np.zeros(1, np.int8), np.array([0, 1]))


# Where a model may be written


def test_an_existing_path_is_refused_without_force(model):
    with pytest.raises(ModelExistsError, match="already exists"):
        save_folder(model, "br", {}, {})
    with pytest.raises(FileExistsError):
        check_target(model)
    assert load_folder(model, verify=True).kind == "plt"


def test_force_replaces_a_model_and_its_readers_keep_the_old_one(model):
    old = load_folder(model)
    save_folder(model, "br", {}, {"counts": np.zeros(2)}, force=True)
    assert load_folder(model, verify=True).kind == "br"
    for name, array in small_arrays().items():
        np.testing.assert_array_equal(old.arrays[name], array)
    assert os.listdir(model.parent) == ["model.ll"]


def test_a_model_can_be_replaced_by_its_own_mapped_arrays(model):
    save_folder(model, "plt", META, load_folder(model).arrays, force=True)
    np.testing.assert_array_equal(load_folder(model, verify=True).arrays["counts"], np.arange(5))


def test_force_needs_no_model_to_replace(tmp_path):
    save_folder(tmp_path / "m", "plt", {}, {}, force=True)
    assert load_folder(tmp_path / "m").kind == "plt"


def test_force_through_a_link_replaces_what_it_points_to(model, tmp_path):
    link = tmp_path / "latest"
    link.symlink_to(model)
    save_folder(link, "br", {}, {}, force=True)
    assert link.is_symlink()
    assert load_folder(model).kind == load_folder(link).kind == "br"


@pytest.mark.parametrize("content", [None, b"{}", b'{"format": "other"}', b"not json"])
def test_force_never_replaces_a_folder_that_is_not_a_model(tmp_path, content):
    path = tmp_path / "thesis"
    path.mkdir()
    (path / "chapter1.tex").write_text("years of work")
    if content is not None:
        (path / "model.json").write_bytes(content)
    with pytest.raises(ModelExistsError, match="Only a longleaf model can be replaced"):
        save_folder(path, "plt", {}, {}, force=True)
    assert (path / "chapter1.tex").read_text() == "years of work"


def test_force_never_replaces_a_file(tmp_path):
    (tmp_path / "m").write_text("precious")
    with pytest.raises(ModelExistsError, match="must be a folder"):
        save_folder(tmp_path / "m", "plt", {}, {}, force=True)
    assert (tmp_path / "m").read_text() == "precious"


def test_force_never_removes_a_file_that_someone_put_into_a_model(model):
    (model / "tree0" / "notes.txt").write_text("precious")
    assert load_folder(model, verify=True).kind == "plt"
    with pytest.raises(ModelExistsError, match=r"notes\.txt does not belong to the model"):
        save_folder(model, "plt", {}, {}, force=True)
    assert (model / "tree0" / "notes.txt").read_text() == "precious"
