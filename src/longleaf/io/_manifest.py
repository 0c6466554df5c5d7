"""``model.json``: the contents of a model folder, with a checksum.

Rendering is canonical: the same manifest always gives the same bytes. A file is accepted only if it is
byte for byte what its own content renders to, so that even a changed space is detected.
"""

import json
import math
import re
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from longleaf._validation import ModelError

MANIFEST = "model.json"
FORMAT = "longleaf"
FORMAT_VERSION = 2
_CHECKSUM = "crc32"
_NAME = re.compile(r"[A-Za-z0-9_-]+(/[A-Za-z0-9_-]+)*")
_HEX = re.compile(r"[0-9a-f]{8}")
_MAX_DIMENSIONS = 32
_MOST_DEPTH = 32
_DTYPES = frozenset(
    ("|b1", "|i1", "|u1", "<i2", "<u2", "<i4", "<u4", "<i8", "<u8", "<f2", "<f4", "<f8", "<c8", "<c16")
)


@dataclass(frozen=True)
class ArrayEntry:
    """One array: its little-endian dtype, its shape, its file's size and CRC-32 (8 hexadecimal digits)."""

    dtype: str
    shape: tuple[int, ...]
    file_bytes: int
    crc32: str

    def header(self) -> bytes:
        """Return the ``.npy`` header (format 1.0, C order, padded to 64 bytes), for any NumPy version."""
        text = f"{{'descr': {self.dtype!r}, 'fortran_order': False, 'shape': {self.shape!r}, }}"
        length = -(-(len(text) + 11) // 64) * 64 - 10
        return b"\x93NUMPY\x01\x00" + length.to_bytes(2, "little") + text.ljust(length - 1).encode() + b"\n"

    def data_bytes(self) -> int:
        """Return the size of the array's data in bytes."""
        return math.prod(self.shape) * np.dtype(self.dtype).itemsize


@dataclass(frozen=True)
class Manifest:
    """The contents of ``model.json`` except versions and checksum."""

    kind: str
    meta: dict[str, Any]
    arrays: dict[str, ArrayEntry]


def checksum(data: bytes | memoryview, start: int = 0) -> int:
    """Continue the checksum ``start`` over ``data``."""
    return zlib.crc32(data, start)


def check_name(name: str) -> None:
    """Reject an array name that could leave the folder or clash with another."""
    if not _NAME.fullmatch(name):
        raise ModelError(
            f"An array's name must be words of letters, digits, _ and -, joined by /; got {name!r:.80}."
        )


def check_dtype(dtype: str) -> None:
    """Reject what is not a plain little-endian number or boolean."""
    if dtype not in _DTYPES:
        raise ModelError(f"An array's dtype must be one of {', '.join(sorted(_DTYPES))}; got {dtype!r:.80}.")


def render(manifest: Manifest) -> bytes:
    """Return the bytes of ``model.json``."""
    from longleaf import __version__  # not at the top: the package imports this module

    arrays = {
        name: {
            "dtype": entry.dtype,
            "shape": list(entry.shape),
            "bytes": entry.file_bytes,
            "crc32": entry.crc32,
        }
        for name, entry in manifest.arrays.items()
    }
    body = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "kind": manifest.kind,
        "library_version": __version__,
        "checksum": _CHECKSUM,
        "meta": manifest.meta,
        "arrays": arrays,
    }
    try:
        return _seal(body)
    except (TypeError, ValueError, RecursionError) as error:
        raise ModelError(f"A model's meta must be plain JSON; {error}.") from None


def parse(raw: bytes, where: str) -> Manifest:
    """Read the bytes of ``model.json``.

    Parameters
    ----------
    raw : bytes
        What the file holds; anything at all.
    where : str
        The folder, for error messages.
    """
    body = _parse_object(raw, where)
    if body.get("format") != FORMAT:
        raise ModelError(f"{where} is not a longleaf model: its {MANIFEST} names another format.")
    version = body.get("format_version")
    if type(version) is not int or version < 1:
        raise ModelError(f"The format version of {where} must be a positive integer; got {version!r:.80}.")
    if version > FORMAT_VERSION:
        raise ModelError(
            f"{where} was written by a newer longleaf (format {version!s:.20}); "
            f"this one reads up to {FORMAT_VERSION}."
        )
    _check_seal(raw, body, where)
    kind, meta, arrays = body.get("kind"), body.get("meta"), body.get("arrays")
    if not isinstance(kind, str) or not isinstance(meta, dict) or not isinstance(arrays, dict):
        raise ModelError(f"{MANIFEST} in {where} must have a kind, meta and arrays.")
    try:
        return Manifest(kind, meta, {name: _parse_entry(name, entry) for name, entry in arrays.items()})
    except ModelError as error:
        raise ModelError(f"{MANIFEST} in {where} is damaged: {error}") from None


def _seal(body: Mapping[str, Any]) -> bytes:
    """Render one line per top-level key; the last line is the checksum of the others."""
    lines = [f"{json.dumps(key)}: {json.dumps(value, allow_nan=False)}" for key, value in body.items()]
    digest = checksum("\n".join(lines).encode("ascii"))
    return ("{\n" + ",\n".join([*lines, f'"{_CHECKSUM}": "{digest:08x}"']) + "\n}\n").encode("ascii")


def _check_seal(raw: bytes, body: dict[str, Any], where: str) -> None:
    unsealed = {key: value for key, value in body.items() if key != _CHECKSUM}
    try:
        intact = raw == _seal(unsealed)
    except (ValueError, RecursionError):
        intact = False
    if not intact:
        raise ModelError(f"{MANIFEST} in {where} was altered: it does not match its own checksum.")


def _parse_object(raw: bytes, where: str) -> dict[str, Any]:
    try:
        body = json.loads(raw.decode("ascii"), object_pairs_hook=_refuse_duplicates)
    except ModelError as error:
        raise ModelError(f"{MANIFEST} in {where} is damaged: {error}") from None
    except (ValueError, RecursionError) as error:
        raise ModelError(f"{MANIFEST} in {where} must be JSON; {error}.") from None
    if not isinstance(body, dict):
        raise ModelError(f"{where} is not a longleaf model: its {MANIFEST} is not a JSON object.")
    if _depth(body) > _MOST_DEPTH:
        raise ModelError(f"{MANIFEST} in {where} must be nested at most {_MOST_DEPTH} deep.")
    return body


def _depth(value: Any) -> int:
    """Return how deeply lists and objects are nested."""
    depth, level = 0, [value]
    while level:
        depth += 1
        inside = [item.values() if isinstance(item, dict) else item for item in level]
        level = [below for items in inside for below in items if isinstance(below, dict | list)]
    return depth


def _refuse_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ModelError(f"a name must occur once; {twice!r:.80} occurs {names.count(twice)} times.")
    return result


def _parse_entry(name: str, entry: Any) -> ArrayEntry:
    check_name(name)
    if not isinstance(entry, dict) or set(entry) != {"dtype", "shape", "bytes", "crc32"}:
        raise ModelError(f"array {name} must have a dtype, shape, bytes and crc32.")
    dtype, shape, size, digest = entry["dtype"], entry["shape"], entry["bytes"], entry["crc32"]
    if not isinstance(dtype, str) or not isinstance(digest, str) or not _HEX.fullmatch(digest):
        raise ModelError(f"array {name} must have a dtype and 8 hexadecimal digits of checksum.")
    check_dtype(dtype)
    return ArrayEntry(
        dtype, _parse_shape(name, shape, np.dtype(dtype).itemsize), _parse_size(name, size), digest
    )


def _parse_shape(name: str, shape: Any, itemsize: int) -> tuple[int, ...]:
    whole = isinstance(shape, list) and all(type(length) is int and length >= 0 for length in shape)
    # NumPy multiplies in 63 bits and ignores zeros when it checks for overflow.
    if (
        not whole
        or len(shape) > _MAX_DIMENSIONS
        or math.prod(length for length in shape if length) * itemsize >= 1 << 63
    ):
        raise ModelError(f"array {name} must have a possible shape; got {str(shape)[:80]}.")
    return tuple(shape)


def _parse_size(name: str, size: Any) -> int:
    if type(size) is not int or size < 0:
        raise ModelError(f"array {name} must have a size in bytes; got {str(size)[:80]}.")
    return size
