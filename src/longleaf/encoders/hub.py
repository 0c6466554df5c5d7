"""Models on the Hugging Face hub."""

from __future__ import annotations

from pathlib import Path

from longleaf._validation import ModelError
from longleaf.encoders.extras import needed
from longleaf.encoders.folder import ONNX, WEIGHTS, ModelFolder
from longleaf.encoders.weights import MODEL_TYPES

SMALL = ["*.json", "*/config.json"]


def download(name: str) -> Path:
    """Return the local folder of a model; what it lacks is downloaded.

    The weights are downloaded for an architecture that can be converted, or else the ONNX file, or else
    everything.
    """
    folder = ModelFolder.read(_snapshot(name, SMALL))
    if folder.is_plain and folder.model_type in MODEL_TYPES:
        path = _snapshot(name, [*SMALL, WEIGHTS])
        if (path / WEIGHTS).is_file():
            return path
    if folder.is_plain:
        path = _snapshot(name, [*SMALL, *(f"{one}*" for one in ONNX)])
        if ModelFolder.read(path).onnx is not None:
            return path
    return _snapshot(name, None)


def _snapshot(name: str, patterns: list[str] | None) -> Path:
    library = needed("huggingface_hub", f"encoder {name}")
    try:
        return Path(library.snapshot_download(name, allow_patterns=patterns))
    except Exception as error:  # of the library, of its HTTP client, or of the operating system
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise ModelError(
            f"encoder {name} is no folder here, and it cannot be downloaded from the Hugging Face hub "
            f"({reason.rstrip('.')[:160]})."
        ) from None
