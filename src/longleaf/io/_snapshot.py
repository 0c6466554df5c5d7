"""A private, verified copy of a model folder, independent of later changes to the original."""

import errno
import os
from pathlib import Path

from longleaf._validation import ModelError
from longleaf.io import _arrays, _manifest
from longleaf.io._manifest import MANIFEST, ArrayEntry, Manifest
from longleaf.io.storage import StrPath, open_directory

_CHUNK = 1 << 24
_NOT_HERE = {errno.EXDEV, errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP, errno.EPERM}


def copy_folder(source: StrPath, target: Path, free: int | None = None) -> bytes:
    """Copy a model folder and verify the checksums of the copy.

    Parameters
    ----------
    source : str or path
        A folder written by `longleaf.io.storage.save_folder`. It may be replaced meanwhile.
    target : Path
        The folder to create.
    free : int, optional
        Number of bytes that the copy may take.

    Returns
    -------
    bytes
        The content of ``model.json``.

    Raises
    ------
    ModelError
        If the model is damaged or larger than ``free``.
    """
    directory = open_directory(source)
    try:
        raw = _read(directory, MANIFEST)
        manifest = _manifest.parse(raw, os.fspath(source))
        _check_free(manifest, free)
        target.mkdir(mode=0o700)
        for name, entry in manifest.arrays.items():
            file = target / f"{name}.npy"
            file.parent.mkdir(parents=True, exist_ok=True)
            try:
                _copy_array(directory, file, f"{name}.npy", entry)
            except ModelError as error:
                raise ModelError(f"The model in {os.fspath(source)} is damaged: {error}") from None
        (target / MANIFEST).write_bytes(raw)
        return raw
    finally:
        os.close(directory)


def _read(directory: int, name: str) -> bytes:
    with open(_arrays.open_file(directory, name), "rb") as file:
        return file.read()


def _check_free(manifest: Manifest, free: int | None) -> None:
    size = sum(entry.file_bytes for entry in manifest.arrays.values())
    if free is not None and size > free:
        raise ModelError(f"A snapshot of the model must have {size} bytes free; got {free}.")


def _copy_array(directory: int, target: Path, name: str, entry: ArrayEntry) -> None:
    original = _arrays.open_file(directory, name)
    try:
        with open(target, "x+b", buffering=0) as copy:
            _copy_bytes(original, copy.fileno(), entry.file_bytes)
            _arrays.check_checksum(name, copy.fileno(), entry)
    finally:
        os.close(original)


def _copy_bytes(source: int, target: int, size: int) -> None:
    """Copy a file, sharing its blocks if the file system supports it."""
    done = 0
    try:
        while hasattr(os, "copy_file_range") and done < size:
            count = os.copy_file_range(source, target, min(_CHUNK, size - done))
            if not count:
                break
            done += count
    except OSError as error:
        if error.errno not in _NOT_HERE:
            raise
    while done < size and (chunk := os.pread(source, min(_CHUNK, size - done), done)):
        done += os.pwrite(target, chunk, done)
