"""Other architectures, computed by sentence-transformers where that is installed."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import numpy as np

from longleaf._validation import check_count
from longleaf.encoders.encoder import Encoder, Progress, Vectors, unit
from longleaf.encoders.extras import MissingExtraError
from longleaf.encoders.folder import digest

LIBRARY = "sentence_transformers"


class SentenceTransformerEncoder(Encoder):
    """A model of the library sentence-transformers, one text at a time.

    Parameters
    ----------
    name : str
    folder : Path
    max_tokens : int, optional
    why : str
        Why this library is needed, for the message if it is not installed.
    """

    def __init__(self, name: str, folder: Path, max_tokens: int | None, why: str) -> None:
        try:
            library: Any = importlib.import_module(LIBRARY)
        except ImportError:
            raise MissingExtraError(
                f"encoder {name} needs sentence-transformers, as {why}; it is not installed: "
                "pip install sentence-transformers."
            ) from None
        self._model = library.SentenceTransformer(str(folder), device="cpu")
        if max_tokens is not None:
            self._model.max_seq_length = check_count(max_tokens, "max_tokens")
        self.name = name
        self.max_tokens = self._model.max_seq_length
        self._folder = folder

    @property
    def dimensions(self) -> int:  # noqa: D102
        return int(self._model.get_sentence_embedding_dimension())

    @property
    def fingerprint(self) -> str:  # noqa: D102
        files = sorted(path for path in self._folder.rglob("*") if path.suffix in (".json", ".safetensors"))
        return digest(LIBRARY, str(self.max_tokens), *files)

    def _embed(self, texts: list[str], threads: int, progress: Progress) -> Vectors:
        vectors = np.empty((len(texts), self.dimensions), np.float32)
        for row, text in enumerate(texts):
            vectors[row] = unit(self._model.encode([text], show_progress_bar=False)[0])
            if progress is not None:
                progress((row + 1) / len(texts))
        return vectors
