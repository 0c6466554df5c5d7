"""Every damage to a model folder is a clear sentence, and verifying notices every changed byte."""

import os
import shutil
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from longleaf._validation import ModelError
from longleaf.io import _manifest
from longleaf.io.storage import folder_bytes, load_folder, save_folder
from tests.helpers.storage import META, edit_manifest, small_arrays


@pytest.fixture
def model(tmp_path):
    path = tmp_path / "model.ll"
    save_folder(path, "plt", META, small_arrays())
    return path


def test_a_missing_path_is_a_clear_error(tmp_path):
    with pytest.raises(ModelError, match=r"There is no model at .*nothing\."):
        load_folder(tmp_path / "nothing")
    with pytest.raises(ModelError, match="There is no model"):
        folder_bytes(tmp_path / "nothing")


def test_a_file_is_not_a_model(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(ModelError, match="A longleaf model must be a folder"):
        load_folder(tmp_path / "file")


def test_an_empty_folder_is_not_a_model(tmp_path):
    with pytest.raises(ModelError, match=r"is not a longleaf model: model\.json cannot be opened"):
        load_folder(tmp_path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "must be JSON"),
        (b"{", "must be JSON"),
        (b"\xff\xfe", "must be JSON"),
        (b"[" * 100_000, "must be JSON"),
        (b"9" * 10_000, "must be JSON"),
        (b"[]", "is not a longleaf model"),
        (b'{"format": "pine"}', "is not a longleaf model"),
        (b'{"format": "longleaf", "format": "longleaf"}', "'format' occurs 2 times"),
        (b'{"format": "longleaf", "format_version": true}', "must be a positive integer; got True"),
        (b'{"format": "longleaf", "format_version": 1, "x": 1e999}', "was altered"),
        (
            b'{"format": "longleaf", "format_version": 3}',
            r"was written by a newer longleaf \(format 3\); this one reads up to 2\.",
        ),
    ],
)
def test_a_bad_manifest_is_a_clear_error(model, content, message):
    (model / "model.json").write_bytes(content)
    with pytest.raises(ModelError, match=message):
        load_folder(model)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"dtype": "|O"}, "dtype must be one of"),
        ({"dtype": ">i4"}, "dtype must be one of"),
        ({"dtype": 4}, "must have a dtype"),
        ({"dtype": "<f4"}, "must have the header of"),
        ({"shape": [1, 5]}, "must have the header of"),
        ({"shape": [6]}, "must have 152 bytes"),
        ({"shape": [-5]}, "possible shape"),
        ({"shape": [5.0]}, "possible shape"),
        ({"shape": 5}, "possible shape"),
        ({"shape": [1 << 62, 0]}, "possible shape"),
        ({"shape": [1 << 40, 1 << 40]}, "possible shape"),
        ({"shape": [1] * 33}, "possible shape"),
        ({"bytes": -1}, "size in bytes"),
        ({"bytes": 149}, "must have 148 bytes"),
        ({"crc32": "zz"}, "8 hexadecimal digits"),
        ({"extra": 1}, "must have a dtype, shape, bytes and crc32"),
    ],
)
def test_a_manifest_that_lies_about_an_array_is_a_clear_error(model, change, message):
    edit_manifest(model, lambda body: body["arrays"]["counts"].update(change))
    with pytest.raises(ModelError, match=message):
        load_folder(model)


@pytest.mark.parametrize("name", ["../outside", "/etc/passwd", "tree0/../counts", "counts.npy"])
def test_a_manifest_cannot_lead_out_of_its_folder(model, name):
    shutil.copy(model / "counts.npy", model.parent / "outside.npy")
    edit_manifest(model, lambda body: body["arrays"].update({name: body["arrays"]["counts"]}))
    with pytest.raises(ModelError, match="An array's name must be words of letters"):
        load_folder(model)


def test_an_array_named_twice_is_refused(model):
    text = (model / "model.json").read_text()
    (model / "model.json").write_text(text.replace('"empty": {', '"counts": {'))
    with pytest.raises(ModelError, match="'counts' occurs 2 times"):
        load_folder(model)


@pytest.mark.parametrize("key", ["kind", "meta", "arrays"])
def test_a_manifest_without_its_parts_is_refused(model, key):
    edit_manifest(model, lambda body: body.pop(key))
    with pytest.raises(ModelError, match="must have a kind, meta and arrays"):
        load_folder(model)


@pytest.mark.parametrize("name", list(small_arrays()))
def test_a_truncated_lengthened_missing_or_odd_array_file_is_a_clear_error(model, name):
    file = model / f"{name}.npy"
    whole = file.read_bytes()
    for size in (0, 1, 64, len(whole) - 1):
        file.write_bytes(whole[:size])
        with pytest.raises(ModelError, match=rf"{file.name} must have {len(whole)} bytes .* got {size}\."):
            load_folder(model)
    file.write_bytes(whole + b"\0")
    with pytest.raises(ModelError, match=f"must have {len(whole)} bytes"):
        load_folder(model)
    file.unlink()
    with pytest.raises(ModelError, match="cannot be opened: No such file"):
        load_folder(model)
    os.mkfifo(file)
    with pytest.raises(ModelError, match="must be a regular file"):
        load_folder(model)


@pytest.fixture(scope="module")
def shared_model(tmp_path_factory):
    path = tmp_path_factory.mktemp("flips") / "model.ll"
    save_folder(path, "plt", META, small_arrays())
    return path


@settings(max_examples=500, deadline=None)
@given(data=st.data())
def test_any_changed_byte_is_noticed_by_verify_and_harmless_without(shared_model: Path, data):
    files = sorted(path for path in shared_model.rglob("*") if path.is_file())
    file = data.draw(st.sampled_from(files))
    whole = file.read_bytes()
    place = data.draw(st.integers(0, len(whole) - 1))
    flip = data.draw(st.integers(1, 255))
    file.write_bytes(whole[:place] + bytes([whole[place] ^ flip]) + whole[place + 1 :])
    try:
        with pytest.raises(ModelError):
            load_folder(shared_model, verify=True)
        try:
            loaded = load_folder(shared_model)
        except ModelError:
            return
        assert {name: array.shape for name, array in loaded.arrays.items()} == {
            name: array.shape for name, array in small_arrays().items()
        }
    finally:
        file.write_bytes(whole)


@settings(max_examples=200, deadline=None)
@given(content=st.binary(max_size=200) | st.text(alphabet='{}[]":,0e-longleaf', max_size=60).map(str.encode))
def test_no_manifest_whatever_makes_a_traceback(content):
    with pytest.raises(ModelError):
        _manifest.parse(content, "here")


def test_no_byte_of_the_manifest_can_change_unnoticed(model):
    whole = (model / "model.json").read_bytes()
    for place, byte in enumerate(whole):
        for other in {byte ^ 1 << bit for bit in range(8)} | set(b' \t\n\r"0') - {byte}:
            with pytest.raises(ModelError):
                _manifest.parse(whole[:place] + bytes([other]) + whole[place + 1 :], "here")
