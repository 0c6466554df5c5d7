"""The libraries of the extra ``encoder``, imported only where they are used."""

from __future__ import annotations

import importlib
from typing import Any

from longleaf._validation import DataError


class MissingExtraError(DataError, ImportError):
    """Something that must be installed first; the message is one sentence that says how."""


def needed(module: str, what: str) -> Any:
    """Import a library of the extra, or say that ``what`` needs it."""
    try:
        return importlib.import_module(module)
    except ImportError:
        raise MissingExtraError(
            f"{what} needs the extra encoder, which is not installed: pip install 'longleaf[encoder]'."
        ) from None
