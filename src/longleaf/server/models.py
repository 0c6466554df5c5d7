"""The models that are served: private copies with verified checksums.

A worker maps the files of its model. Truncating a mapped file would crash the worker, and overwriting it
would change its answers, so workers map a private copy. Once all workers have mapped it, its files are
unlinked; the disk space is freed when the last worker exits, however it ends.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from longleaf._validation import ModelError
from longleaf.io import _replace
from longleaf.io._snapshot import copy_folder
from longleaf.io.storage import load_folder
from longleaf.server.engine import Engine, model_version
from longleaf.server.settings import Settings

NAME = "longleaf-serve"
ATTEMPTS = 100
"""How often a read is repeated because the model was replaced meanwhile."""
REPLACED = "The model must not be replaced while it is being read."


class Models(Protocol):
    """The source of the models to serve."""

    def check(self) -> str:
        """Verify every byte of the current model in the folder; return its version."""

    def open(self, version: str) -> Engine:
        """Load a verified model."""

    def tidy(self) -> None:
        """Clean up after all processes that need a model have loaded it."""


class Snapshots:
    """Copies in a private folder, by version.

    Parameters
    ----------
    settings : Settings
    folder : Path
        Private to this service.
    """

    def __init__(self, settings: Settings, folder: Path) -> None:
        self.settings, self.folder = settings, folder

    def check(self) -> str:
        """Copy the current model and verify the checksums of the copy."""
        copy = self.folder / "new"
        for _ in range(ATTEMPTS):
            shutil.rmtree(copy, ignore_errors=True)
            before = model_version(self.settings.model)
            try:
                copy_folder(self.settings.model, copy, shutil.disk_usage(self.folder).free)
                break
            except ModelError:
                if model_version(self.settings.model) == before:
                    raise
        else:
            raise ModelError(REPLACED)
        version = model_version(str(copy))
        if not (self.folder / version).exists():
            copy.rename(self.folder / version)
        return version

    def open(self, version: str) -> Engine:
        """Load a copy."""
        copy = str(self.folder / version)
        try:
            return _engine(copy, self.settings)
        except ModelError as error:  # name the original, which the operator knows
            raise ModelError(str(error).replace(copy, self.settings.model)) from None

    def tidy(self) -> None:
        """Remove all copies; mapped ones stay on disk until they are unmapped."""
        for copy in self.folder.iterdir():
            shutil.rmtree(copy, ignore_errors=True)


class InPlace:
    """The model's own files, served without a copy."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings

    def check(self) -> str:
        """Verify the checksums of the files."""
        path = self.settings.model
        for _ in range(ATTEMPTS):
            version = model_version(path)
            load_folder(path, verify=True)
            if model_version(path) == version:
                return version
        raise ModelError(REPLACED)

    def open(self, version: str) -> Engine:
        """Load the model if it is still the verified one."""
        engine = _engine(self.settings.model, self.settings)
        if engine.version != version:
            raise ModelError(REPLACED)
        return engine

    def tidy(self) -> None:
        """Do nothing: the files are the user's."""


def _engine(path: str, settings: Settings) -> Engine:
    return Engine(
        path, settings.names, settings.search_threads, settings.names_languages, original=settings.model
    )


@contextmanager
def models_of(settings: Settings) -> Iterator[Models]:
    """Yield the source of models; clean up at the end, and remove leftovers of killed services."""
    if settings.in_place:
        yield InPlace(settings)
        return
    root = Path(tempfile.gettempdir() if settings.snapshots is None else settings.snapshots)
    if not root.is_dir():
        raise ValueError(f"snapshots must be a folder; got {root}.")
    with _replace.staging_folder(root / NAME) as folder:
        folder.chmod(0o700)
        _replace.remove_leftovers(root / NAME)
        yield Snapshots(settings, folder)
