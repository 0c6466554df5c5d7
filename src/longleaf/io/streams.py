"""Reading files, compressed or not, and writing files that appear only when they are complete."""

from __future__ import annotations

import errno
import io
import os
import secrets
import zlib
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, BinaryIO, cast

from longleaf._validation import DataError

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

Source = str | os.PathLike[str] | BinaryIO
"""A path, or a binary file object, which is read from its current position and left open."""

CHUNK = 1 << 20
DISK_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
MAGIC = {b"\x1f\x8b": "gz", b"\xfd7zXZ\x00": "xz", b"BZh": "bz2"}


def source_name(source: Source) -> str:
    """Return the name of `source` for messages."""
    if isinstance(source, (str, os.PathLike)):
        return os.fspath(source)
    name = getattr(source, "name", None)
    return name if isinstance(name, str) else "<input>"


def read_chunks(source: Source) -> Generator[bytes, None, None]:
    """Yield the content of `source` in chunks, decompressed if it starts like gzip, xz or bzip2 data.

    Raises
    ------
    DataError
        If there is no such file, it cannot be read, or its compressed data are damaged or truncated.
    """
    name = source_name(source)
    try:
        if isinstance(source, (str, os.PathLike)):
            with open(source, "rb") as file:
                yield from _decompressed(file, name)
        else:
            yield from _decompressed(source, name)
    except FileNotFoundError:
        raise DataError(f"{name} does not exist.") from None
    except IsADirectoryError:
        raise DataError(f"{name} is a directory; a file is needed.") from None
    except OSError as error:
        raise DataError(f"{name} cannot be read: {error.strerror or error}.") from None


def _decompressed(file: BinaryIO, name: str) -> Iterator[bytes]:
    head = b""
    while len(head) < 6 and (piece := file.read(6 - len(head))):
        head += piece
    form = next((form for magic, form in MAGIC.items() if head.startswith(magic)), None)
    if form is None:
        yield head
        yield from _pieces(file)
        return
    import lzma

    try:
        with _open_compressed(cast(BinaryIO, _Rejoined(head, file)), form, "rb") as stream:
            yield from _pieces(stream)
    except EOFError:
        raise DataError(f"{name} is truncated: its {form} data have no end.") from None
    except (lzma.LZMAError, zlib.error, OSError) as error:
        raise DataError(f"{name} is damaged: its {form} data cannot be read ({error}).") from None


def _pieces(stream: IO[bytes]) -> Iterator[bytes]:
    while piece := stream.read(CHUNK):
        yield piece


def _open_compressed(file: BinaryIO, form: str, mode: str) -> IO[bytes]:
    """Wrap `file`; the modules are imported here because few programs need all three."""
    if form == "gz":
        import gzip

        # No name or time inside, so that the same content gives the same file.
        return cast(IO[bytes], gzip.GzipFile(filename="", fileobj=file, mode=mode, mtime=0))
    if form == "xz":
        import lzma

        return cast(IO[bytes], lzma.open(file, mode))
    import bz2

    return cast(IO[bytes], bz2.open(file, mode))


class _Rejoined(io.RawIOBase):
    """A stream with the bytes already read from its start put back; for pipes, which cannot seek."""

    def __init__(self, head: bytes, rest: BinaryIO) -> None:
        self._head = head
        self._rest = rest

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        view = memoryview(buffer).cast("B")
        piece, self._head = self._head[: len(view)], self._head[len(view) :]
        piece = piece or self._rest.read(len(view))
        view[: len(piece)] = piece
        return len(piece)


@contextmanager
def naming_what_is_full(path: str | os.PathLike[str]) -> Iterator[None]:
    """Add the name of the file being written to errors of a full disk, which lack it."""
    try:
        yield
    except OSError as error:
        if error.filename is None and error.errno in DISK_FULL:
            error.filename = os.fspath(path)
        raise


@contextmanager
def open_replacing(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """Open a new file, compressed according to its suffix, that replaces `path` once it is complete."""
    target = Path(path)
    beside = target.with_name(f".{target.name}.{secrets.token_hex(4)}")
    form = target.suffix.removeprefix(".")
    try:
        with naming_what_is_full(path), open(beside, "xb") as file:
            if form in MAGIC.values():
                with _open_compressed(file, form, "wb") as stream:
                    yield stream
            else:
                yield file
        os.replace(beside, target)
    except BaseException as error:
        with suppress(OSError):
            beside.unlink()
        if isinstance(error, OSError) and error.filename == str(beside):
            error.filename = os.fspath(path)  # the name that the caller knows
        raise
