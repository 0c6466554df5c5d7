"""The texts that a fine-tuned encoder was not trained on, remembered by hashes.

A network has seen the labels of its training texts, so their embeddings say more than those of other texts
will. What must hold for other texts, such as a calibration, is fitted on the texts that were held out.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b
from pathlib import Path

import numpy as np
import numpy.typing as npt

from longleaf._validation import ModelError

HELD_OUT = "held_out.npy"
"""In the folder of an encoder."""

Hashes = npt.NDArray[np.uint64]


def hashes(texts: Iterable[str]) -> Hashes:
    """Return 64 bits of a hash of each text."""
    digests = [blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest() for text in texts]
    return np.frombuffer(b"".join(digests), "<u8").astype(np.uint64)


def write_held_out(folder: Path, texts: Iterable[str]) -> None:
    """Remember texts in a folder."""
    np.save(folder / HELD_OUT, np.unique(hashes(texts)))


def read_held_out(folder: Path) -> Hashes | None:
    """Return the hashes in a folder; None if there are none."""
    path = folder / HELD_OUT
    if not path.is_file():
        return None
    try:
        found = np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError):
        found = None
    if found is None or found.dtype != np.uint64 or found.ndim != 1:
        raise ModelError(f"{path} is damaged: it must hold a list of uint64.")
    return np.sort(found)
