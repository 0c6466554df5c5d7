"""Extracting text and tags from the fields of a row, and choosing the default text fields."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from longleaf._validation import DataError

DEFAULT_TEXT = ("title", "abstract", "text")
"""The default text fields: those of these names that the first row (or the header) has."""


def default_text(names: list[str], source: str) -> list[str]:
    """Return the default text fields of a table; raise an error if it has none of them."""
    usual = [name for name in DEFAULT_TEXT if name in names]
    if not usual:
        raise DataError(
            f"{source} has none of {in_words(DEFAULT_TEXT)}; name a text field: {in_words(names)}."
        )
    return usual


def in_words(names: Iterable[Any]) -> str:
    """Return names as a list for messages."""
    return ", ".join(map(str, names)) or "none"


def found_instead(fields: dict[str, Any], wanted: list[str]) -> str:
    """Describe what a row has instead of the expected fields: empty or other ones."""
    if any(name in fields for name in wanted):
        return "it is empty" if len(wanted) == 1 else "they are empty"
    return f"it has {in_words(fields)}"


def wrong_type(value: Any) -> str | None:
    """Say what a field is if it holds neither text nor numbers nor a list of these; otherwise return None."""
    if isinstance(value, list):
        items = (_WRONG[type(item)] for item in value if type(item) in _WRONG)
        return next((f"a list with {item}" for item in items), None)
    return _WRONG.get(type(value))


_WRONG = {dict: "an object", list: "a list", tuple: "a list", bool: "true or false", bytes: "bytes"}


def as_text(value: Any) -> str | None:
    """Return a field as text, or None if it is empty."""
    if value is None or value == "" or (isinstance(value, float) and math.isnan(value)):
        return None
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return " ".join(item for item in map(as_text, value) if item) or None
    return str(value)


def as_tags(value: Any, separator: str | None) -> list[str]:
    """Return the tags of a field, stripped of whitespace, each once, in order."""
    if isinstance(value, str) and separator:
        value = value.split(separator)
    elif not isinstance(value, list):
        value = [value]
    tags = (as_text(tag) for tag in value)
    return list(dict.fromkeys(tag.strip() for tag in tags if tag and tag.strip()))
