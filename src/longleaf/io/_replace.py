"""Put a finished folder in the place of another in one step.

Given a target path, a writer fills a staging folder beside it (same parent, so the same file system) and
publishes it by renaming. At every moment the target's name means the old folder, the new one, or nothing
if there was none. On Linux a replacement is one ``renameat2(RENAME_EXCHANGE)``; elsewhere the old folder is
set aside under a ``.old`` name for the instant between two renames, and put back if the second one fails.

A writer holds a lock (``flock``) on its staging folder, which dies with it, so that a later writer can tell
the leftovers of the dead from the work of the living, also on a file system shared by several machines.
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
    """Make an empty locked folder beside ``target``; whatever bears its name at the end is removed.

    That is unfinished work after a failure, and the replaced folder after :func:`publish`.
    """
    staging, lock = _claim(target)
    try:
        yield staging
    finally:
        shutil.rmtree(staging, ignore_errors=True)
        os.close(lock)


def publish(staging: Path, target: Path, replace: bool) -> None:
    """Give ``staging`` the name ``target``, and its name to what is replaced.

    Parameters
    ----------
    staging : Path
        A complete folder, already on disk.
    target : Path
        Where the folder goes.
    replace : bool
        Whether something may be there already; if not, finding something is an ``OSError``.
    """
    if not replace or not os.path.lexists(target):
        if not _rename_with_flag(staging, target, _NO_REPLACE):
            os.rename(staging, target)
    elif not _rename_with_flag(staging, target, _EXCHANGE):
        _exchange_in_two_steps(staging, target)
    sync_directory(target.parent)


def remove_leftovers(target: Path) -> None:
    """Remove what dead writers left beside ``target``, which must exist."""
    for leftover in _siblings(target):
        with suppress(OSError):  # gone already, or locked: its writer lives and will tidy up itself
            lock = os.open(leftover, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(leftover, ignore_errors=True)
            finally:
                os.close(lock)


def set_aside(target: Path) -> Path | None:
    """Find the old folder that a two-step replacement of ``target`` has moved away, if there is one."""
    return next((path for path in _siblings(target) if path.name.endswith(_SET_ASIDE)), None)


def sync_directory(folder: Path) -> None:
    """Bring a directory's entries to the disk, on file systems that can."""
    directory = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(directory)
    except OSError as error:
        if error.errno not in _UNSUPPORTED:
            raise
    finally:
        os.close(directory)


def is_same_folder(path: Path, directory: int) -> bool:
    """Tell whether ``path`` still names the folder that is open as ``directory``."""
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
        # Another writer's tidying may take a folder between its making and its locking: then make another.
        with suppress(FileExistsError):
            _make(staging, target)
            lock = _lock(staging)
            if lock is not None:
                return staging, lock


def _make(staging: Path, target: Path) -> None:
    try:
        os.mkdir(staging)
    except OSError as error:
        error.filename = str(target)  # the name that the caller knows
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
        return lock  # no locks on this file system, so nobody tidies up there either
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
    with suppress(OSError):  # it is done; what cannot be removed now is a leftover like any other
        os.rename(old, staging)


def _rename_with_flag(source: Path, target: Path, flag: int) -> bool:
    """Call Linux's ``renameat2``; False where the system or the file system has no such thing."""
    renameat2 = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if renameat2 is None:
        return False
    if renameat2(_AT_CWD, os.fsencode(source), _AT_CWD, os.fsencode(target), ctypes.c_uint(flag)) == 0:
        return True
    code = ctypes.get_errno()
    if code in _UNSUPPORTED:
        return False
    raise OSError(code, os.strerror(code), str(source), None, str(target))
