"""Texts as numbers of tokens, with the tokenizer of a model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from longleaf._validation import ModelError
from longleaf.encoders.extras import needed

LONGEST_TOKEN = 64
"""Only this many characters per token are read: the rest of a long text would be cut anyway."""


class Tokens:
    """A tokenizer that cuts texts and never pads them.

    Parameters
    ----------
    path : Path
        A ``tokenizer.json``.
    max_tokens : int
        Longer texts are cut, special tokens included.
    prompt : str
        Put in front of each text.
    lowercase : bool
        Whether texts are lower-cased first.
    """

    def __init__(self, path: Path, max_tokens: int, prompt: str, lowercase: bool) -> None:
        self._tokenizer = _read(path)
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(max_tokens)
        self._characters = max_tokens * LONGEST_TOKEN
        self._prompt, self._lowercase = prompt, lowercase

    def ids(self, text: str) -> npt.NDArray[np.int64]:
        """Return the numbers of a text's tokens."""
        prepared = self._prompt + text[: self._characters]
        if self._lowercase:
            prepared = prepared.lower()
        whole = prepared.encode("utf-8", "replace").decode("utf-8")  # no halves of surrogate pairs
        return np.array(self._tokenizer.encode(whole).ids, np.int64)


def _read(path: Path) -> Any:
    """Return the tokenizer of a file; the library's own messages name no file."""
    tokenizer = needed("tokenizers", "An encoder").Tokenizer
    try:
        return tokenizer.from_str(path.read_text("utf-8"))
    except FileNotFoundError:
        raise ModelError(f"{path} must exist, as the tokenizer of the encoder; it does not.") from None
    except Exception as error:  # the library raises plain Exceptions
        raise ModelError(f"{path} cannot be read as a tokenizer: {' '.join(str(error).split())}.") from None
