"""Where encoders keep files that can be made again."""

from __future__ import annotations

import os
from pathlib import Path


def cache_folder() -> Path:
    """Return the cache folder: ``LONGLEAF_CACHE``, or longleaf's folder in the user's cache."""
    if chosen := os.environ.get("LONGLEAF_CACHE"):
        return Path(chosen)
    if shared := os.environ.get("XDG_CACHE_HOME"):
        return Path(shared) / "longleaf"
    return Path("~").expanduser() / ".cache" / "longleaf"


def models_folder() -> Path:
    """Return the folder of converted models."""
    return cache_folder() / "encoders" / "models"


def embeddings_folder() -> Path:
    """Return the folder of embeddings."""
    return cache_folder() / "encoders" / "embeddings"
