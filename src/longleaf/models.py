"""Loading models of any kind."""

from __future__ import annotations

import os

from longleaf._validation import ModelError
from longleaf.baselines.proxml import ProXML
from longleaf.br import BR
from longleaf.encoders.loading import Source
from longleaf.estimator import LabelEstimator
from longleaf.io.storage import load_folder
from longleaf.plt import PLT
from longleaf.tagger import Tagger

KINDS: dict[str, type[LabelEstimator] | type[Tagger]] = {
    model.kind: model for model in (PLT, BR, ProXML, Tagger)
}


def load(
    path: str | os.PathLike[str], *, verify: bool = False, encoder: Source | None = None
) -> LabelEstimator | Tagger:
    """Load a saved model; its arrays are memory-mapped, and nothing is ever unpickled.

    Parameters
    ----------
    path : str or path
        The model's folder.
    verify : bool
        Whether to check every byte, and the contents of the weights and the vocabulary; sizes, format,
        settings and the structure of the trees are always checked.
    encoder : str, path, callable or Encoder, optional
        The encoder that the model was trained with, if it is a function or has moved; another one is
        refused. By default it is loaded when it is first used, from where it was or from beside the model.

    Raises
    ------
    ModelError
        If the folder is not a complete model that this version can read.
    """
    folder = load_folder(path, verify=verify)
    if folder.kind not in KINDS:
        raise ModelError(
            f"{os.fspath(path)} holds a model of kind {folder.kind!r:.80}; known are {', '.join(KINDS)}."
        )
    try:
        model = KINDS[folder.kind]._from_folder(folder)
        if verify:
            _verify(model)
    except ValueError as error:
        raise ModelError(f"{os.fspath(path)} is not a complete model: {error}") from error
    if isinstance(model, Tagger) and model.meaning_ is not None:
        model.meaning_ = (
            model.meaning_.near(path) if encoder is None else model.meaning_.with_encoder(encoder)
        )
    elif encoder is not None:
        raise ValueError(f"encoder must be omitted: {os.fspath(path)} was trained without one.")
    return model


def _verify(model: LabelEstimator | Tagger) -> None:
    """Check everything that is otherwise only checked when it is first used."""
    if isinstance(model, Tagger):
        vectorizer = model.vectorizer_
        if vectorizer.hashing is None and len(vectorizer.vocabulary_) != vectorizer.idf_.size:
            raise ModelError("the terms of its vectorizer must be distinct.")
        model = model.estimator_
    model._verify()
