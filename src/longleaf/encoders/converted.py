"""Converted models, kept in the cache folder."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable
from pathlib import Path

from longleaf.encoders.places import models_folder
from longleaf.io.streams import open_replacing

logger = logging.getLogger("longleaf")

SUFFIX = ".model"
CHECKSUM_BYTES = hashlib.sha256().digest_size


def converted(key: str, convert: Callable[[], bytes]) -> bytes:
    """Return a converted model: the file of that name in the cache, or else a new one, which is kept.

    A damaged file is converted again. If the folder cannot be written, the model is only in memory.
    """
    path = models_folder() / f"{key}{SUFFIX}"
    kept = _read(path)
    if kept is not None:
        return kept
    model = convert()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with open_replacing(path) as file:
            file.write(hashlib.sha256(model).digest() + model)
    except OSError as error:
        logger.info("%s cannot be written, so the converted model is not kept: %s", path, error.strerror)
    return model


def _read(path: Path) -> bytes | None:
    """Return the content of a file whose checksum is right."""
    try:
        content = path.read_bytes()
    except OSError:
        return None
    checksum, model = content[:CHECKSUM_BYTES], content[CHECKSUM_BYTES:]
    return model if hashlib.sha256(model).digest() == checksum else None
