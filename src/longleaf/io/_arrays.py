"""One array per ``.npy`` file: written with its checksum, and mapped without parsing its header."""

import mmap
import os
import stat
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longleaf._validation import ModelError
from longleaf.io._manifest import ArrayEntry, check_dtype, check_name, checksum

_CHUNK = 1 << 24  # bytes between two checks for Ctrl-C


def write_array(folder: Path, name: str, array: NDArray[Any]) -> ArrayEntry:
    """Write ``array`` to ``folder/name.npy``, in C order and little-endian, and sync it to disk."""
    check_name(name)
    array = np.asarray(array)
    array = np.asarray(array, array.dtype.newbyteorder("<"), order="C")
    try:
        check_dtype(array.dtype.str)
    except ModelError as error:
        raise ModelError(f"{name} cannot be saved: {error}") from None
    entry = ArrayEntry(array.dtype.str, array.shape, 0, "")
    file = folder / f"{name}.npy"
    file.parent.mkdir(parents=True, exist_ok=True)
    crc = write_file(file, entry.header(), array.reshape(-1).view(np.uint8).data)
    return ArrayEntry(entry.dtype, entry.shape, len(entry.header()) + entry.data_bytes(), f"{crc:08x}")


def write_file(path: Path, *pieces: bytes | memoryview) -> int:
    """Write a new file, sync it to disk, and return its checksum."""
    crc = 0
    with open(path, "xb") as file:
        for piece in pieces:
            for start in range(0, len(piece), _CHUNK):
                chunk = piece[start : start + _CHUNK]
                crc = checksum(chunk, crc)
                file.write(chunk)
        file.flush()
        os.fsync(file.fileno())
    return crc


def map_array(directory: int, name: str, entry: ArrayEntry, verify: bool) -> NDArray[Any]:
    """Map ``name.npy`` of an open directory read-only, after comparing its size and header with ``entry``."""
    file = f"{name}.npy"
    header = entry.header()
    wanted = len(header) + entry.data_bytes()
    handle = open_file(directory, file)
    try:
        size = os.fstat(handle).st_size
        if size != wanted or size != entry.file_bytes:
            raise ModelError(f"{file} must have {wanted} bytes for {entry.dtype} {entry.shape}; got {size}.")
        buffer = mmap.mmap(handle, size, access=mmap.ACCESS_READ)  # not empty, as the header is mapped too
    except OSError as error:
        raise ModelError(f"{file} cannot be mapped: {error.strerror}.") from None
    finally:
        os.close(handle)
    if buffer[: len(header)] != header:
        raise ModelError(
            f"{file} must have the header of an array of {entry.dtype} {entry.shape}; got another."
        )
    if verify:
        _verify(file, buffer, entry)
    return np.ndarray(entry.shape, entry.dtype, buffer, offset=len(header))


def open_file(directory: int, name: str) -> int:
    """Open a regular file of a folder for reading; links are followed, because model stores use them."""
    try:
        # Opening a named pipe must not wait for a writer.
        handle = os.open(name, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=directory)
    except OSError as error:
        raise ModelError(f"{name} cannot be opened: {error.strerror}.") from None
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise ModelError(f"{name} must be a regular file.")
    return handle


def _verify(file: str, buffer: mmap.mmap, entry: ArrayEntry) -> None:
    crc = 0
    with memoryview(buffer) as view:
        for start in range(0, len(view), _CHUNK):
            with view[start : start + _CHUNK] as chunk:
                crc = checksum(chunk, crc)
    _compare(file, crc, entry)


def check_checksum(file: str, handle: int, entry: ArrayEntry) -> None:
    """Read an open file and compare it with its checksum."""
    crc = place = 0
    while chunk := os.pread(handle, _CHUNK, place):
        crc = checksum(chunk, crc)
        place += len(chunk)
    _compare(file, crc, entry)


def _compare(file: str, crc: int, entry: ArrayEntry) -> None:
    if f"{crc:08x}" != entry.crc32:
        raise ModelError(f"{file} was altered: its checksum must be {entry.crc32}; got {crc:08x}.")
