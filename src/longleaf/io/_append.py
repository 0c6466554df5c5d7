"""Appending to a ``.npy`` file, for arrays that do not fit in memory."""

import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longleaf.io._manifest import ArrayEntry, check_name, checksum

_CHUNK = 1 << 24


class ArrayAppender:
    """Writes ``folder/name.npy``, one-dimensional and little-endian, piece by piece.

    The header is written last: for one dimension its length does not depend on the size. The checksum
    covers it, so the file is read again at the end.

    Parameters
    ----------
    folder : Path
    name : str
        A ``/`` creates a subfolder, as in `longleaf.io.storage.save_folder`.
    dtype : str
        Little-endian, for instance ``"<f4"``.
    """

    def __init__(self, folder: Path, name: str, dtype: str) -> None:
        check_name(name)
        self._dtype = dtype
        self._path = folder / f"{name}.npy"
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._file = open(self._path, "xb")  # noqa: SIM115 (closed by finish or close)
        self._file.write(self._entry(0).header())
        self.size = 0

    def append(self, values: NDArray[Any]) -> None:
        """Append values."""
        piece = np.ascontiguousarray(values, self._dtype)
        self._file.write(piece.view(np.uint8).data)
        self.size += len(piece)

    def finish(self) -> ArrayEntry:
        """Complete the file and return its description."""
        entry = self._entry(self.size)
        self._file.seek(0)
        self._file.write(entry.header())
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()
        crc = 0
        with open(self._path, "rb") as file:
            while chunk := file.read(_CHUNK):
                crc = checksum(chunk, crc)
        return ArrayEntry(entry.dtype, entry.shape, len(entry.header()) + entry.data_bytes(), f"{crc:08x}")

    def close(self) -> None:
        """Close the file, whether it is finished or not."""
        self._file.close()

    def _entry(self, size: int) -> ArrayEntry:
        return ArrayEntry(self._dtype, (size,), 0, "")
