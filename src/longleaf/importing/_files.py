"""Reading untrusted files: every error is one sentence that names the file."""

from __future__ import annotations

import json
import math
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from longleaf._validation import ModelError
from longleaf._validation.sparse import check_structure

DEFLATE_LIMIT = 1032
"""Maximum compression ratio of deflate."""


class Records:
    """A binary file read sequentially; sizes are checked against the file before memory is allocated."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._bytes = np.memmap(path, np.uint8, "r") if _size(path) else np.zeros(0, np.uint8)
        self._at = 0

    def array(self, dtype: npt.DTypeLike, count: int) -> npt.NDArray[Any]:
        """Return the next ``count`` items; a view of the file, not a copy."""
        item, left = np.dtype(dtype), len(self._bytes) - self._at
        if count < 0 or count > left // item.itemsize:
            raise ModelError(
                f"{self.path} is damaged: {count} items of {item.itemsize} bytes must follow byte "
                f"{self._at}; got {left} bytes."
            )
        begin, self._at = self._at, self._at + count * item.itemsize
        return self._bytes[begin : self._at].view(item)

    def number(self, dtype: npt.DTypeLike) -> Any:
        """Return the next number."""
        return self.array(dtype, 1)[0].item()

    def text(self) -> str:
        """Return the next string: its length, then its bytes."""
        return self.array(np.uint8, self.number("<i8")).tobytes().decode("utf-8", "replace")

    def finish(self) -> None:
        """Reject a file with further bytes."""
        if self._at != len(self._bytes):
            raise ModelError(
                f"{self.path} is damaged: it must end after {self._at} bytes; got {len(self._bytes)}."
            )


def read_json(path: Path) -> dict[str, Any]:
    """Read one JSON object."""
    _size(path)
    try:
        found = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise ModelError(f"{path} is damaged: it must be JSON; {error}.") from None
    if not isinstance(found, dict):
        raise ModelError(f"{path} is damaged: it must hold a JSON object; got {type(found).__name__}.")
    return found


def setting(settings: dict[str, Any], name: str, kind: type | tuple[type, ...], path: Path) -> Any:
    """Return a required entry of a JSON object, checking its type."""
    value = settings.get(name)
    if not isinstance(value, kind) or isinstance(value, bool):
        raise ModelError(f"{path} is damaged: it must have a valid {name}; got {value!r}.")
    return value


def read_sparse(path: Path) -> sp.csc_array:
    """Read a SciPy sparse matrix as CSC, after checking that its arrays have their declared sizes."""
    _size(path)
    try:
        with zipfile.ZipFile(path) as archive:
            for member in archive.infolist():
                _check_member(archive, member, path)
        loaded = sp.load_npz(path)
        check_structure(loaded, "it")
        matrix = sp.csc_array(loaded, dtype=np.float32)
        matrix.check_format(full_check=True)
    except ModelError:
        raise
    except Exception as error:  # damaged archives raise many kinds of exceptions
        raise ModelError(f"{path} is damaged: it must be a sparse matrix of SciPy; {error}") from None
    return matrix


def _check_member(archive: zipfile.ZipFile, member: zipfile.ZipInfo, path: Path) -> None:
    """Compare the size declared in a member's header with its actual size, before memory is allocated."""
    with archive.open(member) as file:
        version = np.lib.format.read_magic(file)
        read_header = (
            np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        )
        shape, _, dtype = read_header(file)
        expected = file.tell() + math.prod(shape) * dtype.itemsize
    if dtype.hasobject or expected != member.file_size:
        raise ModelError(
            f"{path} is damaged: {member.filename} must have {expected} bytes; got {member.file_size}."
        )
    if member.file_size > DEFLATE_LIMIT * member.compress_size:
        raise ModelError(f"{path} is damaged: {member.filename} cannot have {member.file_size} bytes.")


def _size(path: Path) -> int:
    if not path.is_file():
        raise ModelError(f"{path} must be a file of the model; got no file.")
    return path.stat().st_size
