"""Embeddings kept on disk, so that a second training on the same texts does not embed them again.

There is one SQLite file per fingerprint of an encoder. Its rows are keyed by a hash of the text; each has the
embedding as float16, which `Encoder.embed` rounds to, and a checksum. What cannot be read or written is
embedded again and reported once: the cache is never a reason to fail.
"""

from __future__ import annotations

import logging
import sqlite3
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np

from longleaf.encoders.column import Column
from longleaf.encoders.encoder import Encoder, Progress, Vectors
from longleaf.encoders.places import embeddings_folder, models_folder

logger = logging.getLogger("longleaf")

SUFFIX = ".sqlite"
KEY_BYTES = 16
CHECKSUM_BYTES = 4
TEXTS_AT_ONCE = 256
"""How many texts are embedded between two writes: a process that is killed loses at most these."""
KEYS_AT_ONCE = 500
"""How many keys one query asks for; SQLite allows a limited number of parameters."""
SECONDS_TO_WAIT = 30
"""How long to wait while another process is writing."""

_TABLE = "CREATE TABLE IF NOT EXISTS embedding (key BLOB PRIMARY KEY, value BLOB NOT NULL)"


class EmbeddingCache:
    """The embeddings of one encoder on disk.

    Parameters
    ----------
    path : Path
        Created by the first write.
    dimensions : int
    """

    def __init__(self, path: Path, dimensions: int) -> None:
        self.path = path
        self._dimensions = dimensions
        self._readable = self._writable = True
        self._reported = False

    def read(self, keys: Sequence[bytes]) -> Iterator[tuple[int, Vectors]]:
        """Yield the places of those keys that are stored, and their embeddings."""
        place = {key: number for number, key in enumerate(keys)}
        try:
            for key, value in self._rows(keys) if self._readable and self.path.exists() else ():
                vector = self._unpacked(key, value)
                if vector is not None:
                    yield place[key], vector
        except (sqlite3.Error, OSError) as error:
            self._readable = self._writable = False
            self._report("read", error)

    def write(self, keys: Sequence[bytes], vectors: Vectors) -> None:
        """Store embeddings, all or none of them."""
        if not self._writable:
            return
        rows = [(key, self._packed(key, vector)) for key, vector in zip(keys, vectors, strict=True)]
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with _connected(self.path) as connection, connection:
                connection.execute(_TABLE)
                connection.executemany("INSERT OR REPLACE INTO embedding VALUES (?, ?)", rows)
        except (sqlite3.Error, OSError) as error:
            self._writable = False
            self._report("written", error)

    def _rows(self, keys: Sequence[bytes]) -> Iterator[tuple[bytes, bytes]]:
        with _connected(self.path) as connection:
            for start in range(0, len(keys), KEYS_AT_ONCE):
                some = keys[start : start + KEYS_AT_ONCE]
                places = ", ".join("?" * len(some))
                query = f"SELECT key, value FROM embedding WHERE key IN ({places})"
                yield from connection.execute(query, some).fetchall()

    def _packed(self, key: bytes, vector: Vectors) -> bytes:
        data = vector.astype("<f2").tobytes()
        return data + _checksum(key, data)

    def _unpacked(self, key: Any, value: Any) -> Vectors | None:
        """Return the embedding of a row; None if the row is damaged."""
        if not isinstance(value, bytes) or len(value) != 2 * self._dimensions + CHECKSUM_BYTES:
            return None
        data, checksum = value[:-CHECKSUM_BYTES], value[-CHECKSUM_BYTES:]
        return np.frombuffer(data, "<f2").astype(np.float32) if checksum == _checksum(key, data) else None

    def _report(self, done: str, error: Exception) -> None:
        if not self._reported:
            self._reported = True
            reason = error.strerror if isinstance(error, OSError) else error
            logger.warning("%s cannot be %s (%s); embeddings are not kept there.", self.path, done, reason)


class _NoCache:
    """Keeps nothing."""

    def read(self, keys: Sequence[bytes]) -> Iterator[tuple[int, Vectors]]:
        return iter(())

    def write(self, keys: Sequence[bytes], vectors: Vectors) -> None:
        pass


class CachedEncoder(Encoder):
    """An encoder whose embeddings are kept on disk; equal texts are embedded once.

    Parameters
    ----------
    encoder : Encoder
        Nothing is kept for a function without an attribute ``fingerprint``.
    count : callable, optional
        Called after each batch with the number of texts that were embedded so far.
    """

    def __init__(self, encoder: Encoder, count: Callable[[int], None] | None = None) -> None:
        self.encoder, self._count, self._embedded = encoder, count, 0
        self.name, self.max_tokens, self.keeps = encoder.name, encoder.max_tokens, encoder.keeps
        self.source, self.held_out = encoder.source, encoder.held_out
        self._cache: EmbeddingCache | _NoCache | None = None

    @property
    def dimensions(self) -> int:  # noqa: D102
        return self.encoder.dimensions

    @property
    def fingerprint(self) -> str:  # noqa: D102
        return self.encoder.fingerprint

    @property
    def facts(self) -> dict[str, Any]:  # noqa: D102
        return self.encoder.facts

    def _embed(self, texts: list[str], threads: int, progress: Progress) -> Vectors:
        cache = self._opened()
        keys = [_key(text) for text in texts]
        row = {key: number for number, key in enumerate(dict.fromkeys(keys))}
        text = dict(zip(keys, texts, strict=True))
        distinct = list(row)
        vectors = np.empty((len(distinct), self.dimensions), np.float32)
        missing = dict.fromkeys(distinct)
        for number, vector in cache.read(distinct):
            vectors[number] = vector
            missing.pop(distinct[number], None)
        todo = list(missing)
        for start in range(0, len(todo), TEXTS_AT_ONCE):
            some = todo[start : start + TEXTS_AT_ONCE]
            share = _within(progress, start, len(some), len(todo))
            found = self.encoder.embed([text[key] for key in some], threads=threads, progress=share)
            vectors[[row[key] for key in some]] = found
            cache.write(some, found)
            self._embedded += len(some)
            if self._count is not None:
                self._count(self._embedded)
        return vectors if len(distinct) == len(texts) else vectors[[row[key] for key in keys]]

    def _opened(self) -> EmbeddingCache | _NoCache:
        """Return the cache; it stays the same, so that what is wrong with it is reported once."""
        if self._cache is None:
            path = embeddings_folder() / f"{self.fingerprint}{SUFFIX}"
            self._cache = EmbeddingCache(path, self.dimensions) if self.keeps else _NoCache()
        return self._cache


def cached(encoder: Encoder, count: Callable[[int], None] | None = None) -> Encoder:
    """Return an encoder that keeps its embeddings on disk; `count` is as in `CachedEncoder`."""
    if isinstance(encoder, CachedEncoder | Column):  # embeddings in a column are kept there
        return encoder
    return CachedEncoder(encoder, count)


def cache_sizes() -> dict[str, int]:
    """Return the bytes of embeddings and of converted models in the cache folder."""
    folders = {"embeddings": embeddings_folder(), "models": models_folder()}
    return {name: sum(_size(path) for path in _files(folder)) for name, folder in folders.items()}


def cache_size() -> int:
    """Return the bytes of all that encoders keep in the cache folder."""
    return sum(cache_sizes().values())


def clear_cache() -> int:
    """Remove all that encoders keep in the cache folder, and return how many bytes that was."""
    before = cache_size()
    for folder in (embeddings_folder(), models_folder()):
        for path in _files(folder):
            path.unlink(missing_ok=True)
    return before - cache_size()


def _files(folder: Path) -> list[Path]:
    return [path for path in folder.iterdir() if path.is_file()] if folder.is_dir() else []


def _size(path: Path) -> int:
    with suppress(FileNotFoundError):  # another process may have cleared the cache
        return path.stat().st_size
    return 0


def _key(text: str) -> bytes:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=KEY_BYTES).digest()


def _checksum(key: bytes, data: bytes) -> bytes:
    return zlib.crc32(data, zlib.crc32(key)).to_bytes(CHECKSUM_BYTES, "little")


def _within(progress: Progress, start: int, number: int, total: int) -> Progress:
    """Return what reports the progress of some texts as that of all."""
    return None if progress is None else lambda share: progress((start + share * number) / total)


@contextmanager
def _connected(path: Path) -> Iterator[sqlite3.Connection]:
    """Open a file for one operation: connections must not be shared by threads, or by forked processes."""
    connection = sqlite3.connect(path, timeout=SECONDS_TO_WAIT)
    try:
        yield connection
    finally:
        connection.close()
