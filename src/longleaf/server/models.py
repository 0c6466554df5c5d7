"""The models that are served: private copies, whose checksums were compared.

A worker maps its model's files. Whoever truncated one of them under it would kill it, and whoever overwrote
one would change its answers; so the files that are mapped are a copy which nobody else knows. A copy lives on
disk without a name once all workers have mapped it, and is gone with the last of them, however that ends.
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
"""How often a model may be replaced under a reader's feet before it gives up."""
REPLACED = "The model must stay for as long as it takes to read it; it was replaced meanwhile."


class Models(Protocol):
    """Where models to serve come from."""

    def check(self) -> str:
        """Check the model that is in the folder now, every byte of it; return its version."""

    def open(self, version: str) -> Engine:
        """Load a model that was checked."""

    def tidy(self) -> None:
        """Note that all processes which need a model have loaded it."""


class Snapshots:
    """Copies in a folder of their own, by version.

    Parameters
    ----------
    settings : Settings
    folder : Path
        For nobody else.
    """

    def __init__(self, settings: Settings, folder: Path) -> None:
        self.settings, self.folder = settings, folder

    def check(self) -> str:
        """Copy the model that is in the folder now, and compare the copy with the checksums."""
        copy = self.folder / "new"
        for _ in range(ATTEMPTS):
            shutil.rmtree(copy, ignore_errors=True)
            wanted = model_version(self.settings.model)
            try:
                copy_folder(self.settings.model, copy, shutil.disk_usage(self.folder).free)
                break
            except ModelError:
                if model_version(self.settings.model) == wanted:
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
            return Engine(copy, self.settings.names, self.settings.search_threads)
        except ModelError as error:  # it is the original that the operator knows
            raise ModelError(str(error).replace(copy, self.settings.model)) from None

    def tidy(self) -> None:
        """Remove all copies: those that are mapped stay on disk until they no longer are."""
        for copy in self.folder.iterdir():
            shutil.rmtree(copy, ignore_errors=True)


class InPlace:
    """The model's own files."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings

    def check(self) -> str:
        """Compare the files with the checksums."""
        path = self.settings.model
        for _ in range(ATTEMPTS):
            version = model_version(path)
            load_folder(path, verify=True)
            if model_version(path) == version:
                return version
        raise ModelError(REPLACED)

    def open(self, version: str) -> Engine:
        """Load the model, if it is still the one that was checked."""
        engine = Engine(self.settings.model, self.settings.names, self.settings.search_threads)
        if engine.version != version:
            raise ModelError(REPLACED)
        return engine

    def tidy(self) -> None:
        """Leave the files alone."""


@contextmanager
def models_of(settings: Settings) -> Iterator[Models]:
    """Say where models come from, and clear up at the end, also after services that were killed."""
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
