"""Fields as the cells of a table that a spreadsheet program will open."""

from __future__ import annotations

import json
import math
import re
from typing import Any

LIST_SEPARATOR = "; "
FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
"""How a cell starts that a spreadsheet program may take for a formula."""
NUMBER = re.compile(r"[+-]?(\d+([.,]\d+)*|[.,]\d+)([eE][+-]?\d+)?\s*%?")


def cell(value: Any) -> str:
    """Return a field as a cell.

    Lists are joined by semicolons, or written as JSON where that would be ambiguous; so are objects. Text
    that a spreadsheet program might run as a formula is preceded by an apostrophe.

    Examples
    --------
    >>> cell("oil"), cell(["oil", "fats"]), cell(["oil; fats"]), cell(None), cell(2.5)
    ('oil', 'oil; fats', '["oil; fats"]', '', '2.5')
    >>> cell("=1+1"), cell("-1.5"), cell("-"), cell("- an item")
    ("'=1+1", '-1.5', '-', "'- an item")
    """
    if isinstance(value, str):
        return neutral(value)
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list) and all(map(_is_simple, value)):
        return neutral(LIST_SEPARATOR.join(str(item) for item in value))
    if isinstance(value, list | dict):
        return json.dumps(value, ensure_ascii=False, default=str)
    return str(value)


def neutral(text: str) -> str:
    """Return text that no spreadsheet program takes for a formula; numbers and single signs are none."""
    if not text.startswith(FORMULA) or len(text) == 1 or NUMBER.fullmatch(text):
        return text
    return "'" + text


def _is_simple(item: Any) -> bool:
    """Return whether an item of a list can be recognised in a joined string."""
    if isinstance(item, str):
        return ";" not in item and item.strip() == item != ""
    return isinstance(item, int | float) and not isinstance(item, bool)
