"""Importing models of other systems: the same trees and weights, searched by longleaf."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt

from longleaf import __version__
from longleaf._validation import ModelError, check_choice, check_count, check_per_label
from longleaf.importing._assemble import Source, assemble
from longleaf.importing.napkinxc import is_napkinxc, read_napkinxc
from longleaf.importing.omikuji import is_omikuji, read_omikuji
from longleaf.importing.pecos import is_pecos, read_pecos
from longleaf.plt import PLT
from longleaf.propensity._model import UNKNOWN_COUNT

Detect = Callable[[Path], bool]
Read = Callable[[Path], Source]

KINDS: dict[str, tuple[Detect, Read]] = {
    "omikuji": (is_omikuji, read_omikuji),
    "pecos": (is_pecos, read_pecos),
    "napkinxc": (is_napkinxc, read_napkinxc),
}


def import_model(
    path: str | os.PathLike[str],
    *,
    kind: str | None = None,
    label_counts: npt.ArrayLike | None = None,
    n_rows: int | None = None,
    n_features: int | None = None,
    weight_bits: int = 32,
) -> PLT:
    """Import a model of omikuji, PECOS XR-Linear or napkinXC's PLT, without retraining.

    Parameters
    ----------
    path : str or path
        The folder that the other system saved.
    kind : {"omikuji", "pecos", "napkinxc"}, optional
        The other system; by default, detected from the folder's files.
    label_counts : array [labels], optional
        Training count of each label, which the folders do not contain. Without it there are no
        propensities, and hence no ``tail``; ``gain`` works without.
    n_rows : int, optional
        Number of training rows; must be given together with ``label_counts``.
    n_features : int, optional
        Number of columns of rows, if the folder records fewer: napkinXC does not store columns at the end
        without weights.
    weight_bits : {8, 32}
        32 keeps the weights unchanged; 8 as in `longleaf.PLT`.

    Returns
    -------
    PLT
        Can be searched, explained and saved.

    Raises
    ------
    ModelError
        If the folder is not a complete model of one of the systems that longleaf can reproduce.
    """
    if weight_bits not in (8, 32):
        raise ValueError(f"weight_bits must be 8 or 32; got {weight_bits!r}.")
    folder = Path(path)
    source = KINDS[_find_kind(folder, kind)][1](folder)
    n_labels = source.n_labels
    counts, rows = _check_counts(label_counts, n_rows, n_labels)
    if n_features is not None:
        check_count(n_features, "n_features", low=source.n_features)
    width = source.n_features if n_features is None else n_features
    assembled = [assemble(tree, width, weight_bits) for tree in source.trees]
    model = PLT(**source.params, refine=False, weight_bits=weight_bits)
    model.trees_ = model.tree = [tree for tree, _ in assembled]
    model.weights_ = [weights for _, weights in assembled]
    if counts is None:
        counts = np.zeros(n_labels, np.int64)
        for tree in model.trees_:
            counts[tree.labels] = UNKNOWN_COUNT
    model.label_counts_ = counts
    model.n_rows_, model.n_features_in_, model.n_labels_ = rows, width, len(counts)
    model.origin_ = {"longleaf": __version__, "imported_from": source.kind, "path": os.fspath(path)}
    model.origin_ |= source.facts | {"settings": model._plain_params()}
    model._prepare()
    logging.getLogger("longleaf").info("%s: %d trees imported", path, len(assembled))
    return model


def _find_kind(folder: Path, kind: str | None) -> str:
    if not folder.is_dir():
        raise ModelError(f"{folder} must be the folder of a model; got no folder.")
    if kind is not None:
        return check_choice(kind, "kind", KINDS)
    found = [name for name, (detect, _) in KINDS.items() if detect(folder)]
    if len(found) != 1:
        what = " and ".join(found) or "none of them"
        raise ModelError(f"{folder} must have the files of a model of {', '.join(KINDS)}; got {what}.")
    return found[0]


def _check_counts(
    label_counts: npt.ArrayLike | None, n_rows: int | None, n_labels: int
) -> tuple[npt.NDArray[np.int64] | None, int]:
    """Return the counts as integers, and the number of rows; no counts and 0 rows if unknown."""
    if (label_counts is None) != (n_rows is None):
        raise ValueError("label_counts and n_rows must be given together.")
    if label_counts is None or n_rows is None:
        return None, 0
    rows = check_count(n_rows, "n_rows")
    counts = check_per_label(np.asarray(label_counts), None, "label_counts")
    if len(counts) < n_labels:
        raise ValueError(
            f"label_counts must have at least {n_labels} numbers, one per label; got {len(counts)}."
        )
    if np.any(counts != np.floor(counts)) or counts.max(initial=0) > rows:
        raise ValueError(f"label_counts must be whole numbers of at most the {rows} rows (n_rows).")
    return counts.astype(np.int64), rows
