"""Replacing a folder by a finished one in a single step.

Given a target path, a writer fills a staging folder beside it (same parent, so the same file system) and
publishes it by renaming. At every moment the target's name refers to the old folder, the new one, or nothing
if there was none. On Linux a replacement is one ``renameat2(RENAME_EXCHANGE)``; elsewhere the old folder is
moved to a ``.old`` name between two renames, and moved back if the second one fails.

A writer holds a lock (``flock``) on its staging folder, which is released when the process ends, so that a
later writer can distinguish leftovers from work in progress, even on a file system that several machines
share.
"""

import ctypes
import errno
import fcntl
import os
import re
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_NO_REPLACE, _EXCHANGE = 1, 2  # flags of renameat2
_AT_CWD = -100
_UNSUPPORTED = {errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP}
_SET_ASIDE = ".old"


@contextmanager
def staging_folder(target: Path) -> Iterator[Path]:
    """Create an empty locked folder beside ``target``; whatever has its name at the end is removed.

    That is unfinished work after a failure, or the replaced folder after :func:`publish`.
    """
    staging, lock = _claim(target)
    try:
        yield staging
    finally:
        shutil.rmtree(staging, ignore_errors=True)
        os.close(lock)


def publish(staging: Path, target: Path, replace: bool) -> None:
    """Rename ``staging`` to ``target``; a replaced folder gets the name of ``staging``.

    Parameters
    ----------
    staging : Path
        A complete folder, already on disk.
    target : Path
        Destination of the folder.
    replace : bool
        Whether ``target`` may already exist; otherwise, an existing target raises ``OSError``.
    """
    if not replace or not os.path.lexists(target):
        if not _rename_with_flag(staging, target, _NO_REPLACE):
            os.rename(staging, target)
    elif not _rename_with_flag(staging, target, _EXCHANGE):
        _exchange_in_two_steps(staging, target)
    sync_directory(target.parent)


def remove_leftovers(target: Path) -> None:
    """Remove what crashed writers left beside ``target``, which must exist."""
    for leftover in _siblings(target):
        with suppress(OSError):  # already gone, or locked by a running writer, which cleans up itself
            lock = os.open(leftover, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(leftover, ignore_errors=True)
            finally:
                os.close(lock)


def set_aside(target: Path) -> Path | None:
    """Return the old folder that a two-step replacement of ``target`` has moved away, if any."""
    return next((path for path in _siblings(target) if path.name.endswith(_SET_ASIDE)), None)


def sync_directory(folder: Path) -> None:
    """Sync a directory's entries to disk, on file systems that support it."""
    directory = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(directory)
    except OSError as error:
        if error.errno not in _UNSUPPORTED:
            raise
    finally:
        os.close(directory)


def is_same_folder(path: Path, directory: int) -> bool:
    """Return whether ``path`` still names the folder that is open as ``directory``."""
    try:
        return os.path.samestat(os.stat(path), os.fstat(directory))
    except FileNotFoundError:
        return False


def _siblings(target: Path) -> list[Path]:
    pattern = re.compile(re.escape(f".{target.name}.longleaf-") + rf"[0-9a-f]{{8}}({re.escape(_SET_ASIDE)})?")
    try:
        names = os.listdir(target.parent)
    except OSError:
        return []
    return [target.parent / name for name in sorted(names) if pattern.fullmatch(name)]


def _claim(target: Path) -> tuple[Path, int]:
    while True:
        staging = target.parent / f".{target.name}.longleaf-{secrets.token_hex(4)}"
        # Another writer may clean up a folder between its creation and its locking: then create another.
        with suppress(FileExistsError):
            _make(staging, target)
            lock = _lock(staging)
            if lock is not None:
                return staging, lock


def _make(staging: Path, target: Path) -> None:
    try:
        os.mkdir(staging)
    except OSError as error:
        error.filename = str(target)  # the name known to the caller
        raise


def _lock(staging: Path) -> int | None:
    try:
        lock = os.open(staging, os.O_RDONLY | os.O_DIRECTORY)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        return None
    except OSError:
        return lock  # no locks on this file system, so no writer cleans up there either
    if is_same_folder(staging, lock):
        return lock
    os.close(lock)
    return None


def _exchange_in_two_steps(staging: Path, target: Path) -> None:
    old = staging.with_name(staging.name + _SET_ASIDE)
    os.rename(target, old)
    try:
        os.rename(staging, target)
    except BaseException:
        os.rename(old, target)
        raise
    with suppress(OSError):  # the exchange is done; what cannot be removed now is a leftover
        os.rename(old, staging)


def _rename_with_flag(source: Path, target: Path, flag: int) -> bool:
    """Call Linux's ``renameat2``; return False if the system or file system does not support it."""
    renameat2 = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if renameat2 is None:
        return False
    if renameat2(_AT_CWD, os.fsencode(source), _AT_CWD, os.fsencode(target), ctypes.c_uint(flag)) == 0:
        return True
    code = ctypes.get_errno()
    if code in _UNSUPPORTED:
        return False
    raise OSError(code, os.strerror(code), str(source), None, str(target))
