"""Several arrays in one file: written atomically by renaming, verified as a whole, mapped by name.

The file consists of eight bytes that name the format, the length of a JSON header in eight more, the header,
the arrays at multiples of 64 bytes, and the CRC-32 of everything before. Saving a bundle is a single rename.
"""

import json
import mmap
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from longleaf._validation import DataError, check_count
from longleaf.io._manifest import check_dtype, checksum
from longleaf.io._replace import sync_directory
from longleaf.io._schema import Object

UNFINISHED = ".unfinished"
"""The suffix of a file while it is being written."""

_MAGIC = b"LLBNDL1\n"
_ALIGNMENT = 64
_CHUNK = 1 << 24
_CRC_BYTES = 4
_MOST_LENGTH = 2**59

Layout = dict[str, tuple[np.dtype[Any], int]]
"""Arrays by name: their dtype and length. All are one-dimensional."""


@dataclass(frozen=True)
class Bundle:
    """A file of arrays, as described by its header."""

    path: Path
    meta: dict[str, Any]
    layout: Layout
    data_start: int

    def read(self, name: str) -> NDArray[Any]:
        """Read one array into memory."""
        dtype, length = self.layout[name]
        return np.fromfile(self.path, dtype, length, offset=self.data_start + _offsets(self.layout)[name])

    def map(self) -> dict[str, NDArray[Any]]:
        """Map all arrays read-only; they stay valid when the file is removed."""
        with open(self.path, "rb") as file:
            buffer = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        offsets = _offsets(self.layout)
        return {
            name: np.ndarray(length, dtype, buffer, offset=self.data_start + offsets[name])
            for name, (dtype, length) in self.layout.items()
        }


def write_bundle(
    path: Path, meta: Mapping[str, Any], layout: Layout, pieces: Mapping[str, Iterable[NDArray[Any]]]
) -> Bundle:
    """Write a bundle, sync it to disk and rename it to its path, replacing an existing file.

    Parameters
    ----------
    path : Path
        Its folder must exist.
    meta : mapping
        Plain JSON.
    layout : mapping of str to (dtype, length)
        The arrays in the order of the file.
    pieces : mapping of str to iterable of ndarray
        The consecutive pieces of each array; they are consumed one by one, so that the whole need not fit
        in memory.
    """
    arrays = {name: [dtype.newbyteorder("<").str, length] for name, (dtype, length) in layout.items()}
    header = json.dumps({"meta": dict(meta), "arrays": arrays}, allow_nan=False).encode()
    start = _MAGIC + len(header).to_bytes(8, "little") + header
    unfinished = path.with_name(path.name + UNFINISHED)
    with open(unfinished, "wb") as file:
        data_start = _aligned(len(start))
        crc = _write(file, start.ljust(data_start, b"\0"), 0)
        for name, offset in _offsets(layout).items():
            crc = _write(file, bytes(data_start + offset - file.tell()), crc)
            for piece in pieces[name]:
                array = np.ascontiguousarray(piece, layout[name][0].newbyteorder("<"))
                crc = _write(file, array.view(np.uint8).data, crc)
        if file.tell() != data_start + _size(layout):
            raise ValueError(f"{path.name} must have {_size(layout)} bytes of arrays, as its layout says.")
        file.write(crc.to_bytes(_CRC_BYTES, "little"))
        file.flush()
        os.fsync(file.fileno())
    os.rename(unfinished, path)
    sync_directory(path.parent)
    return Bundle(path, dict(meta), layout, data_start)


def write_arrays(path: Path, meta: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Bundle:
    """Write a bundle of arrays that are in memory."""
    layout = {name: (array.dtype, len(array)) for name, array in arrays.items()}
    return write_bundle(path, meta, layout, {name: [array] for name, array in arrays.items()})


def open_bundle(path: Path) -> Bundle:
    """Read the header of a bundle and verify its checksum; raise DataError if it is damaged."""
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        if size < len(_MAGIC) + 8 + _CRC_BYTES or not _is_intact(file, size):
            raise DataError(f"{path} is damaged: it does not match its own checksum.")
        file.seek(0)
        if file.read(len(_MAGIC)) != _MAGIC:
            raise DataError(f"{path} is not a bundle of arrays of this format.")
        length = int.from_bytes(file.read(8), "little")
        try:
            header = _HEADER(json.loads(file.read(min(length, size))), "its header")
        except (ValueError, RecursionError) as error:
            raise DataError(f"{path} is damaged: {error}") from None
    layout: Layout = {name: (np.dtype(dtype), n) for name, (dtype, n) in header["arrays"].items()}
    start = _aligned(len(_MAGIC) + 8 + length)
    if not layout or start + _size(layout) + _CRC_BYTES != size:
        raise DataError(f"{path} is damaged: it must have as many bytes as its arrays; got {size}.")
    return Bundle(path, header["meta"], layout, start)


def _check_entry(value: Any, name: str) -> None:
    """Reject what is not the type and length of an array."""
    if not isinstance(value, list) or len(value) != 2 or not isinstance(value[0], str):
        raise ValueError(f"{name} must be a type and a length; got {value!r:.80}.")
    check_dtype(value[0])
    check_count(value[1], name, low=0, high=_MOST_LENGTH)


def _check_entries(value: Any, name: str) -> None:
    """Reject what is not an object of array entries."""
    for key, entry in Object()(value, name).items():
        _check_entry(entry, f"{name}.{key:.80}")


_HEADER = Object({"meta": Object(optional={"facts": Object()}), "arrays": _check_entries})


def _is_intact(file: BinaryIO, size: int) -> bool:
    crc, left = 0, size - _CRC_BYTES
    while left:
        chunk = file.read(min(left, _CHUNK))
        if not chunk:
            return False
        crc, left = checksum(chunk, crc), left - len(chunk)
    return file.read() == crc.to_bytes(_CRC_BYTES, "little")


def _write(file: BinaryIO, data: bytes | memoryview, crc: int) -> int:
    for start in range(0, len(data), _CHUNK):
        chunk = data[start : start + _CHUNK]
        file.write(chunk)
        crc = checksum(chunk, crc)
    return crc


def _offsets(layout: Layout) -> dict[str, int]:
    """Return the offset of each array from the first one."""
    offsets, end = {}, 0
    for name, (dtype, length) in layout.items():
        offsets[name] = _aligned(end)
        end = offsets[name] + dtype.itemsize * length
    return offsets


def _size(layout: Layout) -> int:
    *_, (name, offset) = _offsets(layout).items()
    dtype, length = layout[name]
    return offset + dtype.itemsize * length


def _aligned(offset: int) -> int:
    return -(-offset // _ALIGNMENT) * _ALIGNMENT
