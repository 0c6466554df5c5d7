"""Embeddings on disk: the same bits as fresh ones, whatever happens to the files."""

import logging
import multiprocessing
import os
import signal
import sqlite3
import subprocess
import sys

import numpy as np
import pytest

import longleaf as ll
from longleaf.encoders.cache import TEXTS_AT_ONCE, EmbeddingCache
from longleaf.encoders.places import embeddings_folder
from tests.helpers.encoders import WORDS

MANY = [f"{WORDS[number % len(WORDS)]} {number}" for number in range(3 * TEXTS_AT_ONCE)]


class Letters:
    """Embeds the counts of bytes, and remembers for which texts."""

    def __init__(self, fingerprint="letters 1"):
        self.fingerprint = fingerprint
        self.seen = []

    def __call__(self, texts):
        self.seen += texts
        return np.array([np.bincount(list(text.encode("utf-8", "replace")), minlength=256) for text in texts])


@pytest.fixture
def letters():
    return Letters()


@pytest.fixture
def fresh():
    return ll.encoders.load(Letters()).embed(MANY)


def cached(function):
    return ll.encoders.cached(ll.encoders.load(function))


def the_file():
    (path,) = embeddings_folder().iterdir()
    return path


def test_the_second_time_nothing_is_embedded(letters, fresh):
    assert (cached(letters).embed(MANY) == fresh).all()
    again = Letters()
    assert (cached(again).embed(MANY[::-1]) == fresh[::-1]).all()
    assert len(again.seen) <= 1  # one word, to learn the dimensions


def test_only_what_is_new_is_embedded(letters, fresh):
    cached(letters).embed(MANY[:100])
    again = Letters()
    assert (cached(again).embed(MANY[50:150]) == fresh[50:150]).all()
    assert again.seen[1:] == MANY[100:150]


def test_equal_texts_are_embedded_once(letters):
    vectors = cached(letters).embed(["a", "b", "a", "", "b"])
    assert letters.seen[1:] == ["a", "b"]
    assert (vectors[[0, 1]] == vectors[[2, 4]]).all()
    assert not vectors[3].any()


def test_another_fingerprint_is_another_file(letters):
    cached(letters).embed(["a"])
    other = Letters("letters 2")
    cached(other).embed(["a"])
    assert "a" in other.seen
    assert len(list(embeddings_folder().iterdir())) == 2


def test_a_function_without_a_fingerprint_is_not_kept():
    cached(lambda texts: np.ones((len(texts), 3))).embed(["a", "a"])
    assert not embeddings_folder().exists()


def test_a_cached_encoder_is_what_it_keeps(letters):
    encoder = ll.encoders.load(letters)
    kept = ll.encoders.cached(encoder)
    assert ll.encoders.cached(kept) is kept
    assert (kept.name, kept.dimensions, kept.max_tokens, kept.fingerprint, kept.facts) == (
        (encoder.name, 256, None, encoder.fingerprint, encoder.facts)
    )


def test_halves_of_surrogate_pairs_are_kept_apart(letters):
    cached(letters).embed(["a\ud800", "a\ud801"])
    assert letters.seen[1:] == ["a\ud800", "a\ud801"]


def test_progress_rises_to_one(letters):
    shares = []
    cached(letters).embed(MANY, progress=shares.append)
    assert shares == sorted(shares)
    assert shares[-1] == 1
    assert len(shares) > 3


def test_what_was_embedded_before_an_interruption_is_kept(letters):
    def stop(share):
        if share > 0.5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        cached(letters).embed(MANY, progress=stop)
    again = Letters()
    cached(again).embed(MANY)
    assert len(again.seen) - 1 == len(MANY) - TEXTS_AT_ONCE


KILLED = """
import sys
import longleaf as ll
from tests.encoders.test_cache import MANY, Letters

class Slow(Letters):
    def __call__(self, texts):
        if MANY[-1] in texts:
            print("at the last batch", flush=True)
            sys.stdin.read()
        return super().__call__(texts)

ll.encoders.cached(ll.encoders.load(Slow())).embed(MANY)
"""


def test_a_process_that_is_killed_loses_at_most_one_batch(fresh):
    command = [sys.executable, "-c", KILLED]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout.readline() == "at the last batch\n"
        child.send_signal(signal.SIGKILL)
    again = Letters()
    assert (cached(again).embed(MANY) == fresh).all()
    assert len(again.seen) - 1 == TEXTS_AT_ONCE


def embed_from(start):
    order = np.roll(np.arange(len(MANY)), start)
    vectors = cached(Letters()).embed([MANY[place] for place in order])
    return vectors[np.argsort(order)]


def test_two_processes_can_write_at_once(fresh):
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        for found in pool.map(embed_from, [0, 300, 100, 500]):
            assert (found == fresh).all()
    again = Letters()
    assert (cached(again).embed(MANY) == fresh).all()
    assert len(again.seen) <= 1


@pytest.mark.parametrize(
    "damage",
    [lambda data: b"no database" * 100, lambda data: data[: len(data) // 2], lambda data: data[:50] + data],
    ids=["other content", "half", "shifted"],
)
def test_a_damaged_file_is_reported_once_and_ignored(letters, fresh, caplog, damage):
    cached(letters).embed(MANY)
    the_file().write_bytes(damage(the_file().read_bytes()))
    with caplog.at_level(logging.WARNING, "longleaf"):
        encoder = cached(Letters())
        for _ in range(2):
            assert (encoder.embed(MANY) == fresh).all()
    assert len(caplog.records) <= 1
    assert all("embeddings are not kept there" in record.message for record in caplog.records)


def test_damaged_rows_are_embedded_again(letters, fresh):
    cached(letters).embed(MANY)
    connection = sqlite3.connect(the_file())
    with connection:
        connection.execute("UPDATE embedding SET value = zeroblob(516) WHERE rowid = 1")
        connection.execute("UPDATE embedding SET value = 'text' WHERE rowid = 2")
        connection.execute("UPDATE embedding SET value = substr(value, 3) WHERE rowid = 3")
    connection.close()
    again = Letters()
    assert (cached(again).embed(MANY) == fresh).all()
    assert len(again.seen) - 1 == 3


def test_a_folder_that_cannot_be_written_is_reported_once(letters, fresh, caplog, tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv("LONGLEAF_CACHE", str(tmp_path / "file"))
    with caplog.at_level(logging.WARNING, "longleaf"):
        encoder = cached(letters)
        for _ in range(2):
            assert (encoder.embed(MANY) == fresh).all()
    (record,) = caplog.records
    assert record.message.endswith("cannot be written (Not a directory); embeddings are not kept there.")


def test_a_read_of_unknown_keys_finds_nothing(tmp_path):
    cache = EmbeddingCache(tmp_path / "one.sqlite", 2)
    assert list(cache.read([b"a"])) == []
    cache.write([b"b"], np.ones((1, 2), np.float32))
    assert list(cache.read([b"a"])) == []
    ((place, vector),) = cache.read([b"a", b"b"])
    assert (place, vector.tolist()) == (1, [1, 1])


def test_the_cache_can_be_cleared(letters, cache_folder):
    assert ll.encoders.cache_size() == ll.encoders.clear_cache() == 0
    cached(letters).embed(MANY)
    size = os.path.getsize(the_file())
    assert ll.encoders.cache_size() == size
    assert ll.encoders.clear_cache() == size
    assert ll.encoders.cache_size() == 0
    assert not list(embeddings_folder().iterdir())
