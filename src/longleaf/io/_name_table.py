"""Tables of names: a tag and its name, or columns that the first line names."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from longleaf._validation import DataError
from longleaf.io.pairs import HEADERS, counted, rows_of
from longleaf.io.tag_names import Name, plain_language

TAG, NAME, LANGUAGE, KIND = HEADERS, ("name", "label"), ("lang", "language"), ("type", "kind")
KINDS = {
    "": True,
    "pref": True,
    "preferred": True,
    "preflabel": True,
    "alt": False,
    "alternative": False,
    "altlabel": False,
    "hidden": False,
    "hiddenlabel": False,
}
"""What a column of kinds may say, and whether that is a preferred name."""


@dataclass(frozen=True)
class Columns:
    """Where a row has its fields, and the line that says so, if there is one."""

    width: int = 2
    tag: int = 0
    name: int = 1
    language: int | None = None
    kind: int | None = None
    header: int | None = None

    @classmethod
    def named(cls, values: list[str], line: int, where: str) -> Columns | None:
        """Return the columns that a first row names, or None if it is no header."""
        words = [value.strip().lower() for value in values]
        tag = _find(TAG, words)
        name = _find(NAME, [word if column != tag else "" for column, word in enumerate(words)])
        others = (_find(LANGUAGE, words), _find(KIND, words))
        if tag is not None and name is None and tag == 0 and len(words) == 2 and others == (None, None):
            name = 1  # whatever it is called
        if tag is None or name is None:
            if len(words) > 1 and all(word in TAG + NAME + LANGUAGE + KIND for word in words):
                missing = "tag" if tag is None else "name"
                raise DataError(f"{where} must name a column {missing}; got {', '.join(words)}.")
            return None
        twice = next((word for word in words if word and words.count(word) > 1), None)
        if twice is not None:
            raise DataError(f"{where} must name each column once; got {twice!r:.80} twice.")
        return cls(len(words), tag, name, *others, line)

    def check(self, values: list[str], where: str) -> None:
        """Reject a row with more or fewer fields."""
        if len(values) == self.width:
            return
        if self.header is not None:
            raise DataError(
                f"{where} must have {self.width} fields, as line {self.header} has; got {counted(values)}."
            )
        raise DataError(f"{where} must be a tag and its name; got {counted(values)}.")


def names_of_table(lines: list[str], name: str) -> Iterator[tuple[str, Name]]:
    """Yield the tags and names of a table; reject, with its line, what is none."""
    columns: Columns | None = None
    for number, values in rows_of(lines, name):
        if columns is None:
            columns = Columns.named(values, number, f"{name}, line {number}")
            if columns is not None:
                continue
            columns = Columns()
            if len(values) > columns.width:
                raise DataError(
                    f"{name}, line {number} must be a tag and its name, or name the columns, such as tag, "
                    f"lang and name; got {counted(values)}."
                )
        columns.check(values, f"{name}, line {number}")
        tag, text = values[columns.tag].strip(), values[columns.name].strip()
        if not (tag and text):
            missing = "tag" if not tag else "name"
            raise DataError(f"{name}, line {number} must have a tag and a name; got an empty {missing}.")
        language = "" if columns.language is None else plain_language(values[columns.language])
        kind = "" if columns.kind is None else values[columns.kind].strip().lower()
        if kind not in KINDS:
            raise DataError(f"{name}, line {number} must say pref or alt; got {kind!r:.80}.")
        yield tag, Name(text, language, KINDS[kind])


def _find(words: tuple[str, ...], among: list[str]) -> int | None:
    return next((among.index(word) for word in words if word in among), None)
