"""The code in a page of Markdown."""

import re
from typing import NamedTuple


class Block(NamedTuple):
    """A piece of code, and its language; indented text has none."""

    language: str
    code: str


def blocks(text: str) -> list[Block]:
    """Give the fenced and the indented blocks of a page, in order."""
    found = re.finditer(
        r"^```(\w*)\n(.*?)^```|(?:(?<=\n\n)(?: {4}[^\n]*\n)+)", text, re.DOTALL | re.MULTILINE
    )
    return [Block(one[1], one[2]) if one[2] else Block("", one[0]) for one in found]
