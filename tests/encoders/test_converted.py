"""A model is converted once; a damaged file is converted again, and a read-only folder does no harm."""

import pytest

import longleaf as ll
from longleaf.encoders import loading
from longleaf.encoders.places import cache_folder, models_folder
from tests.helpers.encoders import TEXTS, require_extra, save_bert

require_extra()


@pytest.fixture
def folder(tmp_path):
    return save_bert(tmp_path / "model")


@pytest.fixture
def conversions(monkeypatch):
    done = []

    def counted(*arguments):
        done.append(arguments)
        return convert(*arguments)

    convert = loading.transformer
    monkeypatch.setattr(loading, "transformer", counted)
    return done


def test_the_second_time_the_file_is_used(folder, conversions):
    first = ll.encoders.load(folder).embed(TEXTS)
    assert (ll.encoders.load(folder).embed(TEXTS) == first).all()
    assert len(conversions) == 1
    assert [path.suffix for path in models_folder().iterdir()] == [".model"]


def test_other_weights_or_another_pooling_are_another_file(folder, conversions):
    ll.encoders.load(folder)
    save_bert(folder, seed=1)
    ll.encoders.load(folder)
    save_bert(folder, seed=1, pooling="cls")
    ll.encoders.load(folder)
    ll.encoders.load(folder, max_tokens=7)
    assert len(conversions) == len(list(models_folder().iterdir())) == 3


@pytest.mark.parametrize("damage", [lambda data: data[:-1], lambda data: b"", lambda data: data[:99] + b"?"])
def test_a_damaged_file_is_converted_again(folder, conversions, damage):
    first = ll.encoders.load(folder).embed(TEXTS)
    (path,) = models_folder().iterdir()
    whole = path.read_bytes()
    path.write_bytes(damage(whole))
    assert (ll.encoders.load(folder).embed(TEXTS) == first).all()
    assert len(conversions) == 2
    assert path.read_bytes() == whole


def test_without_a_folder_to_write_the_model_is_in_memory(folder, conversions, tmp_path, monkeypatch):
    first = ll.encoders.load(folder).embed(TEXTS)
    (tmp_path / "file").touch()
    monkeypatch.setenv("LONGLEAF_CACHE", str(tmp_path / "file" / "cache"))
    assert (ll.encoders.load(folder).embed(TEXTS) == first).all()
    assert len(conversions) == 2


def test_the_cache_folder_is_that_of_longleaf_or_of_the_user(monkeypatch, tmp_path):
    monkeypatch.setenv("LONGLEAF_CACHE", "/one")
    monkeypatch.setenv("XDG_CACHE_HOME", "/two")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert str(cache_folder()) == "/one"
    monkeypatch.delenv("LONGLEAF_CACHE")
    assert str(cache_folder()) == "/two/longleaf"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache_folder() == tmp_path / ".cache" / "longleaf"
