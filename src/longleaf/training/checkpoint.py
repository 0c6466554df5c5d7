"""The folder of a training that can be killed: what it belongs to, who uses it, and what it has finished."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from longleaf import __version__
from longleaf.io import _arrays
from longleaf.io._bundle import UNFINISHED
from longleaf.io._replace import sync_directory
from longleaf.training.data import TrainingData
from longleaf.training.store import WeightStore
from longleaf.trees.label_tree import LabelTree

MANIFEST = "checkpoint.json"
# 1 cut the top of binary trees otherwise, 2 clustered labels for longer, 3 by other seeds,
# 4 visited the rows of wide families one by one, 5 trained equal trees once each
FORMAT_VERSION = 7

WITHOUT_EFFECT = frozenset({"n_jobs", "k", "random_state"})
"""Parameters that a resumed training may have otherwise; the seeds stand for the last one."""

StrPath = str | os.PathLike[str]
Description = dict[str, Any]


class CheckpointError(ValueError):
    """A checkpoint that cannot be used; the message is one sentence for the user."""


def check_checkpoint(path: StrPath) -> None:
    """Refuse, before any work, what is neither a checkpoint nor an empty or possible folder."""
    folder = Path(path)
    if not folder.exists():
        if not folder.absolute().parent.is_dir():
            raise CheckpointError(f"The checkpoint's parent folder must exist; got {folder}.")
        return
    if not folder.is_dir():
        raise CheckpointError(f"A checkpoint is a folder; {folder} is not.")
    names = [name for name in os.listdir(folder) if not name.endswith(UNFINISHED)]
    if names and MANIFEST not in names:
        raise CheckpointError(
            f"{folder} must be a checkpoint, an empty folder or a new one; it holds {names[0]}."
        )


def describe_training(
    kind: str, params: Mapping[str, Any], seeds: list[int], data: TrainingData
) -> Description:
    """Say what a training's result depends on: data, settings, seeds and the library's version.

    Parameters
    ----------
    kind : str
        The estimator.
    params : mapping
        Its parameters; plain JSON but for trees of the user's own.
    seeds : list of int
        One per tree.
    data : TrainingData
        What it is trained on.
    """
    settings = {name: _plain(value) for name, value in params.items() if name not in WITHOUT_EFFECT}
    rows, labels = data.rows, data.labels
    weight = () if data.row_weight is None else (data.row_weight,)
    return {
        "longleaf": __version__,
        "model": kind,
        "settings": settings,
        "seeds": seeds,
        "features": _digest((rows.n_rows, rows.n_features), *rows.csr),
        "labels": _digest(labels.shape, labels.indptr.astype(np.int64), labels.indices.astype(np.int32)),
        "sample_weight": _digest((), *weight),
    }


@contextmanager
def open_checkpoint(
    path: StrPath, description: Description, *, any_seeds: bool
) -> Iterator[tuple[WeightStore, list[int]]]:
    """Begin a checkpoint, or continue one of the same training; it is locked meanwhile.

    Parameters
    ----------
    path : str or path
        The folder; it is made if it is not there.
    description : dict
        As `describe_training` returns it.
    any_seeds : bool
        Whether the seeds were left to chance: then those of the checkpoint are as good.

    Yields
    ------
    WeightStore, list of int
        What is finished, and the seeds to train with.
    """
    check_checkpoint(path)
    folder = Path(path)
    folder.mkdir(exist_ok=True)
    lock = _lock(folder)
    try:
        described = json.loads(json.dumps(description))  # JSON knows no tuples
        kept = _read_manifest(folder)
        if kept is None:
            _write_manifest(folder, described)
            kept = described
        if any_seeds and len(kept["seeds"]) == len(described["seeds"]):
            described["seeds"] = kept["seeds"]
        _refuse_another(folder, kept, described)
        yield WeightStore(folder), kept["seeds"]
    finally:
        os.close(lock)


def kept_trees(
    store: WeightStore, seeds: list[int], build: Callable[[list[int]], Iterable[LabelTree]]
) -> list[LabelTree]:
    """Return one tree per seed: those that are kept, and then what ``build`` makes of the other seeds."""
    trees: list[LabelTree] = []
    while len(trees) < len(seeds) and (tree := store.load_tree(len(trees))) is not None:
        trees.append(tree)
    if len(trees) < len(seeds):
        for tree in build(seeds[len(trees) :]):
            store.save_tree(len(trees), tree)
            trees.append(tree)
    return trees


def _lock(folder: Path) -> int:
    """Lock the folder itself; the lock ends with the process, however that ends."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        with suppress(_NoLocksError):
            _flock(handle)
    except BlockingIOError:
        os.close(handle)
        raise CheckpointError(
            f"The checkpoint in {folder} is in use by another training; wait for it or use another folder."
        ) from None
    return handle


class _NoLocksError(Exception):
    """The file system has no locks."""


def _flock(handle: int) -> None:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise
    except OSError as error:
        raise _NoLocksError from error


def _read_manifest(folder: Path) -> Description | None:
    try:
        body = json.loads((folder / MANIFEST).read_bytes())
        version, training = body["format_version"], body["training"]
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError):
        raise CheckpointError(f"{folder / MANIFEST} is damaged; remove {folder} to start over.") from None
    if version != FORMAT_VERSION:
        raise CheckpointError(
            f"The checkpoint in {folder} must have format {FORMAT_VERSION}; got {version}: "
            "use another folder, or remove it to start over."
        )
    return dict(training)


def _write_manifest(folder: Path, description: Description) -> None:
    unfinished = folder / (MANIFEST + UNFINISHED)
    unfinished.unlink(missing_ok=True)
    body = {"format": "longleaf checkpoint", "format_version": FORMAT_VERSION, "training": description}
    _arrays.write_file(unfinished, (json.dumps(body, indent=1) + "\n").encode())
    os.rename(unfinished, folder / MANIFEST)
    sync_directory(folder)


def _refuse_another(folder: Path, kept: Description, wanted: Description) -> None:
    """Say the first thing in which the checkpoint's training is not the one that is wanted."""
    difference = _difference(kept, wanted)
    if difference is not None:
        raise CheckpointError(
            f"The checkpoint in {folder} is of {difference}: use another folder, or remove it to start over."
        )


def _difference(kept: Description, wanted: Description) -> str | None:
    if kept["longleaf"] != wanted["longleaf"]:
        return f"longleaf {kept['longleaf']}, this is {wanted['longleaf']}"
    if kept["model"] != wanted["model"]:
        return f"a {kept['model']} model, this is a {wanted['model']} model"
    for name in sorted(kept["settings"] | wanted["settings"]):
        before, now = (side["settings"].get(name) for side in (kept, wanted))
        if before != now:
            return f"a training with {name}={before!r}, this one has {name}={now!r}"
    for name in ("features", "labels", "sample_weight"):
        if kept[name] != wanted[name]:
            return f"other data: its {name} differ{'s' * (name == 'sample_weight')}"
    return "a training with another random_state" if kept["seeds"] != wanted["seeds"] else None


def _plain(value: Any) -> Any:
    """Return a parameter as JSON has it; a tree of the user's own as a digest."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        return f"array {_digest(value.shape, value)[:16]}"
    if isinstance(value, LabelTree):
        return f"own {_digest((), value.first_child, value.label)[:16]}"
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value


def _digest(shape: tuple[int, ...], *arrays: npt.NDArray[Any]) -> str:
    sha = hashlib.sha256(str((tuple(map(int, shape)), len(arrays))).encode())
    for array in arrays:
        sha.update(np.ascontiguousarray(array, array.dtype.newbyteorder("<")).data)
    return sha.hexdigest()
