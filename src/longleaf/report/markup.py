"""HTML elements as strings; everything that is not `Html` is escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

NOTHING_TO_FIND = "–"
"""Shown instead of the recall of labels that no evaluated row has: a 0 would look like a failure."""


class Html(str):
    """A string that is already HTML."""

    __slots__ = ()


def counted(number: int, noun: str) -> str:
    """Return a number with its noun: ``1 row``, ``1,000 rows``."""
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


def text(value: object) -> str:
    """Return a value as escaped HTML; control characters, which HTML forbids, become visible."""
    if isinstance(value, Html):
        return value
    shown = "".join(c if c.isprintable() or c in "\n\t" else "\ufffd" for c in str(value))
    return escape(shown)


def tag(name: str, content: object = "", **attributes: object) -> Html:
    """Return an element; ``class_`` stands for ``class``."""
    named = "".join(f' {key.rstrip("_")}="{text(value)}"' for key, value in attributes.items())
    return Html(f"<{name}{named}>{text(content)}</{name}>")


def join(items: Iterable[object], between: str = "\n") -> Html:
    """Concatenate items."""
    return Html(between.join(text(item) for item in items))


def table(name: str, headings: Sequence[object], rows: Iterable[Sequence[object]], *, words: int = 1) -> Html:
    """Return a table; the first ``words`` columns contain words, the others numbers."""
    kinds = ["w" if place < words else "n" for place in range(len(headings))]
    head = join((tag("th", one, class_=kind) for one, kind in zip(headings, kinds, strict=True)), "")
    body = [
        tag("tr", join((tag("td", one, class_=kind) for one, kind in zip(row, kinds, strict=True)), ""))
        for row in rows
    ]
    inner = tag(
        "table", Html(f"<thead><tr>{head}</tr></thead><tbody>{join(body)}</tbody>"), id=f"table-{name}"
    )
    return tag("div", inner, class_="scroll")


def folded(summary: object, content: object, *, is_open: bool = False) -> Html:
    """Return a ``details`` element, which opens on a click."""
    inside = Html(tag("summary", summary) + text(content))
    return tag("details", inside, open="") if is_open else tag("details", inside)
