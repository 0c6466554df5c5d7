"""Reading any model back."""

from __future__ import annotations

import os

from longleaf._validation import ModelError
from longleaf.baselines.proxml import ProXML
from longleaf.br import BR
from longleaf.estimator import LabelEstimator
from longleaf.io.storage import load_folder
from longleaf.plt import PLT
from longleaf.tagger import Tagger

KINDS: dict[str, type[LabelEstimator] | type[Tagger]] = {
    model.kind: model for model in (PLT, BR, ProXML, Tagger)
}


def load(path: str | os.PathLike[str], *, verify: bool = False) -> LabelEstimator | Tagger:
    """Open a saved model; its arrays are memory-mapped, and nothing is ever unpickled.

    Parameters
    ----------
    path : str or path
        The model's folder.
    verify : bool
        Whether to check every byte; sizes, format and the trees' structure are always checked.

    Raises
    ------
    ModelError
        If the folder is not a whole model that this version can read.
    """
    folder = load_folder(path, verify=verify)
    if folder.kind not in KINDS:
        raise ModelError(
            f"{os.fspath(path)} holds a model of kind {folder.kind!r}; known are {', '.join(KINDS)}."
        )
    try:
        return KINDS[folder.kind]._from_folder(folder)
    except (KeyError, TypeError, ValueError) as error:
        raise ModelError(f"{os.fspath(path)} is not a whole model: {error}") from error
