"""What the fields of a row hold: text and tags; and which fields are the text where none are named."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from longleaf._validation import DataError

DEFAULT_TEXT = ("title", "abstract", "text")
"""The text fields where none are named: those of these that the first row (or the header) has."""


def default_text(names: list[str], source: str) -> list[str]:
    """Choose the text fields among the names of a table; refuse one that has none of the usual ones."""
    usual = [name for name in DEFAULT_TEXT if name in names]
    if not usual:
        raise DataError(
            f"{source} has none of {in_words(DEFAULT_TEXT)}; name a text field: {in_words(names)}."
        )
    return usual


def in_words(names: Iterable[Any]) -> str:
    """Return names as a message lists them."""
    return ", ".join(map(str, names)) or "none"


def found_instead(fields: dict[str, Any], wanted: list[str]) -> str:
    """Say what a row has in place of what is wanted: empty fields, or others."""
    if any(name in fields for name in wanted):
        return "it is empty" if len(wanted) == 1 else "they are empty"
    return f"it has {in_words(fields)}"


def as_text(value: Any) -> str | None:
    """Return a field as text; None where there is nothing."""
    if value is None or value == "" or (isinstance(value, float) and math.isnan(value)):
        return None
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return " ".join(part for part in map(as_text, value) if part) or None
    return str(value)


def as_tags(value: Any, separator: str | None) -> list[str]:
    """Return the tags of a field, trimmed, each once, in their order."""
    if isinstance(value, str) and separator:
        value = value.split(separator)
    elif not isinstance(value, list):
        value = [value]
    tags = (as_text(tag) for tag in value)
    return list(dict.fromkeys(tag.strip() for tag in tags if tag and tag.strip()))
