"""The model folder: ``model.json`` and one ``.npy`` file per array, memory-mapped and never unpickled.

``model.json`` contains one object: the format's name and version, the kind of model, the version of the
library that wrote it, the caller's ``meta``, each array's dtype, shape, file size and checksum, and last a
checksum of everything before. Checksums are CRC-32 over whole files: it is by far the fastest of the standard
library and detects any damage within four bytes; it protects against accidents, not against forgery.

Nothing in a folder is trusted. An array's file must begin with exactly the header that ``model.json``
implies and have exactly the size that follows, so no header is ever parsed.
"""

import errno
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from longleaf._validation import ModelError, ModelExistsError
from longleaf.io import _arrays, _manifest, _replace
from longleaf.io._manifest import MANIFEST, Manifest

_RELOADS = 100  # how often loading is repeated because the model was replaced meanwhile
_WAIT_SECONDS = 0.01

StrPath = str | os.PathLike[str]

DATA = "data"
"""The kind of a folder that contains rows to train on instead of a model."""


class _NoModelError(ModelError):
    """The path does not exist, perhaps only during a replacement."""


@dataclass(frozen=True)
class Folder:
    """A loaded folder: the kind of model, its metadata and its read-only arrays by name."""

    kind: str
    meta: dict[str, Any]
    arrays: dict[str, NDArray[Any]]
    place: str = ""
    """The place of a model inside another one, with a slash at the end."""

    @property
    def meta_name(self) -> str:
        """The name of the metadata in error messages."""
        return f"{MANIFEST}'s meta" + "".join(f".{name}.meta" for name in self.place.split("/")[:-1])

    def part(self, prefix: str) -> dict[str, NDArray[Any]]:
        """Return the arrays of one subfolder, by their names in it (``part("tree0")``)."""
        start = f"{prefix}/"
        return {name[len(start) :]: array for name, array in self.arrays.items() if name.startswith(start)}


def check_target(path: StrPath, force: bool = False, kind: str = "model") -> None:
    """Reject a path that :func:`save_folder` could not write, before a long training starts.

    Parameters
    ----------
    path : str or path
        Destination of the model.
    kind : str
        What will be written: data never replace a model, nor a model data.
    force : bool
        Whether an existing model may be replaced. Anything else is rejected all the same: a folder that is
        not a model, and a model folder that also contains other files.
    """
    target = Path(os.path.realpath(path))
    if not target.parent.is_dir():
        raise ModelError(f"The model's parent folder must exist; got {os.fspath(path)}.")
    if not os.path.lexists(target):
        return
    if not force:
        raise ModelExistsError(
            f"{os.fspath(path)} already exists; choose another path or replace it with force."
        )
    try:
        found = read_manifest(path)
    except ModelError as error:
        raise ModelExistsError(f"Only a longleaf model can be replaced: {error}") from None
    if (found.kind == DATA) != (kind == DATA):
        raise ModelExistsError(
            f"{os.fspath(path)} holds {'data' if found.kind == DATA else 'a model'}, "
            f"which is not replaced by {'data' if kind == DATA else 'a model'}; choose another path."
        )
    ours = {MANIFEST} | {f"{name}.npy" for name in found.arrays}
    for file in _files(target):
        if file.relative_to(target).as_posix() not in ours:
            raise ModelExistsError(
                f"{file} does not belong to the model in {os.fspath(path)}; move it elsewhere first."
            )


def save_folder(
    path: StrPath, kind: str, meta: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], force: bool = False
) -> None:
    """Write a model folder beside its destination and move it there in one step.

    Parameters
    ----------
    path : str or path
        The folder to create; its parent must exist. A link is followed and kept.
    kind : str
        The kind of model, for instance ``"plt"``.
    meta : mapping
        Plain JSON: string keys, finite numbers. Tuples come back as lists.
    arrays : mapping of str to ndarray
        Numbers or booleans of any shape and layout. A ``/`` in a name creates a subfolder. Arrays are read
        one after another, so those of a lazy mapping, or memory-mapped ones, need not fit in memory together.
    force : bool
        Replace an existing model (see :func:`check_target`). Processes that have loaded it keep it.
    """
    _check_metadata(kind, meta)

    def fill(staging: Path) -> Manifest:
        entries = {name: _arrays.write_array(staging, name, array) for name, array in arrays.items()}
        return Manifest(kind, dict(meta), entries)

    write_folder(path, kind, fill, force)


def write_folder(path: StrPath, kind: str, fill: Callable[[Path], Manifest], force: bool = False) -> None:
    """Write a folder as :func:`save_folder` does, with a function that writes the arrays.

    Parameters
    ----------
    path : str or path
    kind : str
        The kind of the folder.
    fill : callable
        Called with an empty folder; writes the arrays there and returns the manifest.
    force : bool
    """
    check_target(path, force, kind)
    target = Path(os.path.realpath(path))
    with _replace.staging_folder(target) as staging:
        _arrays.write_file(staging / MANIFEST, _manifest.render(fill(staging)))
        for folder, _, _ in os.walk(staging):
            _replace.sync_directory(Path(folder))
        check_target(path, force, kind)
        try:
            _replace.publish(staging, target, replace=force)
        except OSError as error:
            if error.errno in (errno.EEXIST, errno.ENOTEMPTY, errno.ENOTDIR):
                raise ModelExistsError(f"{os.fspath(path)} was created while it was being written.") from None
            raise
    _replace.remove_leftovers(target)


def load_folder(path: StrPath, verify: bool = False) -> Folder:
    """Open a model folder; its arrays are mapped, not read, so this takes milliseconds at any size.

    Parameters
    ----------
    path : str or path
        A folder written by :func:`save_folder`.
    verify : bool
        Also verify the checksums of all files.

    Returns
    -------
    Folder
        Arrays are read-only and stay valid when the folder is replaced or removed.
    """
    for _ in range(_RELOADS):
        try:
            directory = open_directory(path)
        except _NoModelError:
            if _replace.set_aside(Path(os.path.realpath(path))) is None and not os.path.exists(path):
                raise
            time.sleep(_WAIT_SECONDS)  # a replacement in two steps is in progress
            continue
        try:
            return _load_open_folder(directory, path, verify)
        except ModelError:
            if _replace.is_same_folder(Path(path), directory):
                raise
        finally:
            os.close(directory)
    old = _replace.set_aside(Path(os.path.realpath(path)))
    where = f"; an interrupted replacement left it in {old}" if old else ""
    raise ModelError(f"There is no model at {os.fspath(path)} that stays long enough to be read{where}.")


def folder_bytes(path: StrPath) -> int:
    """Return the sum of the sizes of all files in a model folder."""
    os.close(open_directory(path))
    return sum(file.stat().st_size for file in _files(Path(path)))


def pack_strings(strings: Sequence[str]) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Pack strings into arrays.

    Parameters
    ----------
    strings : sequence of str
        Any ``str``, including lone surrogates, which occur in real JSON.

    Returns
    -------
    data : ndarray of uint8
        All strings in UTF-8, concatenated.
    offsets : ndarray of int64 [len(strings) + 1]
        String ``i`` is ``data[offsets[i]:offsets[i + 1]]``.
    """
    encoded = [string.encode("utf-8", "surrogatepass") for string in strings]
    offsets = np.zeros(len(encoded) + 1, np.int64)
    np.cumsum([len(piece) for piece in encoded], out=offsets[1:])
    return np.frombuffer(b"".join(encoded), np.uint8), offsets


def unpack_strings(data: NDArray[np.uint8], offsets: NDArray[np.int64]) -> list[str]:
    """Return the strings of :func:`pack_strings`; reject arrays that it cannot have returned."""
    if data.ndim != 1 or data.dtype != np.uint8 or offsets.ndim != 1 or offsets.dtype != np.int64:
        raise ModelError(
            "Packed strings must be uint8 bytes and int64 offsets in one dimension each; "
            f"got {data.dtype} {data.shape} and {offsets.dtype} {offsets.shape}."
        )
    if not offsets.size or offsets[0] != 0 or offsets[-1] != data.size or np.any(offsets[1:] < offsets[:-1]):
        raise ModelError(f"Offsets of packed strings must rise from 0 to their {data.size} bytes.")
    raw, ends = data.tobytes(), offsets.tolist()
    try:
        return [raw[start:end].decode("utf-8", "surrogatepass") for start, end in pairwise(ends)]
    except UnicodeDecodeError as error:
        raise ModelError(f"Packed strings must be UTF-8; got {error.object!r:.80}.") from None


def _check_metadata(kind: str, meta: Mapping[str, Any]) -> None:
    """Reject, before any work, what could not be read back: 1 and "1" as keys, NaN, arrays."""
    _manifest.parse(_manifest.render(Manifest(kind, dict(meta), {})), "A new model")


def _load_open_folder(directory: int, path: StrPath, verify: bool) -> Folder:
    manifest = _read_manifest(directory, path)
    try:
        arrays = {
            name: _arrays.map_array(directory, name, entry, verify) for name, entry in manifest.arrays.items()
        }
    except ModelError as error:
        raise ModelError(f"The model in {os.fspath(path)} is damaged: {error}") from None
    return Folder(manifest.kind, manifest.meta, arrays)


def read_manifest(path: StrPath) -> Manifest:
    """Read the manifest of a folder, without its arrays."""
    directory = open_directory(path)
    try:
        return _read_manifest(directory, path)
    finally:
        os.close(directory)


def _read_manifest(directory: int, path: StrPath) -> Manifest:
    try:
        handle = _arrays.open_file(directory, MANIFEST)
    except ModelError as error:
        raise ModelError(f"{os.fspath(path)} is not a longleaf model: {error}") from None
    with open(handle, "rb") as file:
        return _manifest.parse(file.read(), os.fspath(path))


def open_directory(path: StrPath) -> int:
    """Open a model's folder; the descriptor stays valid even if the folder is replaced."""
    try:
        return os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except FileNotFoundError:
        raise _NoModelError(f"There is no model at {os.fspath(path)}.") from None
    except NotADirectoryError:
        raise ModelError(f"A longleaf model must be a folder; {os.fspath(path)} is not.") from None
    except OSError as error:
        raise ModelError(f"{os.fspath(path)} cannot be opened: {error.strerror}.") from None


def _files(folder: Path) -> list[Path]:
    return [Path(parent, name) for parent, _, names in os.walk(folder) for name in names]
