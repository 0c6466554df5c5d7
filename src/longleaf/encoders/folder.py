"""The folder of a model as Hugging Face and sentence-transformers save it."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from longleaf._validation import ModelError

CONFIG, WEIGHTS, TOKENIZER = "config.json", "model.safetensors", "tokenizer.json"
ONNX = ("onnx/model.onnx", "model.onnx")
MEAN, CLS = "mean", "cls"
POOLINGS = (MEAN, CLS)
USUAL_MAX_TOKENS = 512
"""Where nothing in the folder says how long a text may be."""
HASHED_AT_ONCE = 1 << 20


@dataclass(frozen=True)
class ModelFolder:
    """What the small files of a folder say.

    Attributes
    ----------
    path : Path
    config : dict
        The content of config.json; empty without that file.
    pooling : str
        How the vectors of tokens become one: "mean" or "cls"; anything else is named as found.
    max_tokens : int or None
        Where the model's own files cut texts; None if they do not say.
    prompt : str
        Put in front of each text.
    lowercase : bool
    unknown : tuple of str
        Modules of sentence-transformers that are not a transformer, a pooling or a normalisation.
    """

    path: Path
    config: dict[str, Any]
    pooling: str
    max_tokens: int | None
    prompt: str
    lowercase: bool
    unknown: tuple[str, ...]

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read the small files."""
        modules = _modules(path)
        sentences = _json(path / "sentence_bert_config.json")
        limits = [_truncation(path), sentences.get("max_seq_length")]
        known = [one for one in limits if isinstance(one, int) and one > 0]
        return cls(
            path=path,
            config=_json(path / CONFIG),
            pooling=_pooling(path, modules),
            max_tokens=min(known) if known else None,
            prompt=_prompt(path),
            lowercase=bool(sentences.get("do_lower_case")),
            unknown=tuple(kind for kind in modules if kind not in ("Transformer", "Pooling", "Normalize")),
        )

    @property
    def model_type(self) -> str:
        """The architecture, as config.json says."""
        return str(self.config.get("model_type", "unknown"))

    @property
    def onnx(self) -> Path | None:
        """The ONNX file, if there is one."""
        return next((self.path / name for name in ONNX if (self.path / name).is_file()), None)

    @property
    def is_plain(self) -> bool:
        """Whether its embeddings are pooled vectors of tokens, and in a way that is known here."""
        return not self.unknown and self.pooling in POOLINGS


def digest(*parts: Path | str) -> str:
    """Return the SHA-256 in hexadecimal of some files and strings; lengths make it unambiguous."""
    sha = hashlib.sha256()
    for part in parts:
        if isinstance(part, str):
            data = part.encode()
            sha.update(len(data).to_bytes(8, "little") + data)
            continue
        sha.update(part.stat().st_size.to_bytes(8, "little"))
        with open(part, "rb") as file:
            while piece := file.read(HASHED_AT_ONCE):
                sha.update(piece)
    return sha.hexdigest()


def _modules(path: Path) -> dict[str, str]:
    """Return the folders of the modules of sentence-transformers, by kind; none without modules.json."""
    listed = _json(path / "modules.json", list) or []
    return {str(one.get("type", "")).rpartition(".")[2]: str(one.get("path", "")) for one in listed}


def _pooling(path: Path, modules: dict[str, str]) -> str:
    found = _json(path / modules.get("Pooling", "1_Pooling") / CONFIG)
    named = found.get("pooling_mode")
    if isinstance(named, str):
        return named
    modes = [name for name, used in found.items() if name.startswith("pooling_mode_") and used is True]
    short = {"pooling_mode_mean_tokens": MEAN, "pooling_mode_cls_token": CLS}
    return "+".join(short.get(mode, mode.removeprefix("pooling_mode_")) for mode in modes) or MEAN


def _truncation(path: Path) -> Any:
    return (_json(path / TOKENIZER).get("truncation") or {}).get("max_length")


def _prompt(path: Path) -> str:
    found = _json(path / "config_sentence_transformers.json")
    return str((found.get("prompts") or {}).get(found.get("default_prompt_name")) or "")


def _json(path: Path, kind: type = dict) -> Any:
    """Return the content of a JSON file; an empty one if it does not exist."""
    try:
        found = json.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        return kind()
    except (ValueError, NotADirectoryError) as error:
        raise ModelError(f"{path} cannot be read as JSON: {error}.") from None
    if not isinstance(found, kind):
        raise ModelError(f"{path} must hold a JSON {kind.__name__}; got a {type(found).__name__}.")
    return found
