"""Embeddings that stand in a field of a table."""

from __future__ import annotations

import json
import math
from typing import Any

Fault = tuple[str, str] | None
"""What must be there, and what is there instead."""
LONGEST_QUOTE = 40


def parsed_embedding(value: Any, width: int) -> tuple[list[float] | None, Fault]:
    """Return the numbers in a field, and what is wrong if they cannot be used.

    Parameters
    ----------
    value : object
        A list of numbers, or such a list as text: ``"[0.1, 0.2]"`` or ``"0.1 0.2"``.
    width : int
        How many numbers there must be; 0 if that is not known yet.

    Examples
    --------
    >>> parsed_embedding("0.5 -1", 2)
    ([0.5, -1.0], None)
    >>> parsed_embedding([0.5], 2)
    (None, ('2 numbers, as other rows', '1'))
    """
    if value is None or (isinstance(value, str) and not value.strip()):
        return None, ("an embedding", "none")
    try:
        found = listed(value)
        numbers = [float(one) for one in found] if isinstance(found, list | tuple) else []
    except (TypeError, ValueError, OverflowError, RecursionError):
        numbers = []
    if not numbers or not all(map(math.isfinite, numbers)):
        return None, ("a list of finite numbers", _quoted(value))
    if width and len(numbers) != width:
        return None, (f"{width} numbers, as other rows", str(len(numbers)))
    return numbers, None


def listed(value: Any) -> Any:
    """Return the numbers of a list that is written as text; anything else unchanged."""
    if not isinstance(value, str):
        return value
    text = value.strip()
    return json.loads(text) if text.startswith("[") else text.replace(",", " ").split()


def _quoted(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= LONGEST_QUOTE else text[:LONGEST_QUOTE] + "…"
