"""The libraries of the extra ``finetune``, imported only where they are used."""

from __future__ import annotations

import importlib

from longleaf.encoders.extras import MissingExtraError

MODULES = ("torch", "transformers", "tokenizers", "safetensors")


def check_extra(what: str) -> None:
    """Say that ``what`` needs the extra, unless its libraries can be imported."""
    for module in MODULES:
        try:
            importlib.import_module(module)
        except ImportError:
            raise MissingExtraError(
                f"{what} needs the extra finetune, which is not installed: pip install 'longleaf[finetune]'."
            ) from None
