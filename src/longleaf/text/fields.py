"""Records with fields: which fields a model reads, what each weighs, and how a record becomes their texts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import TypeAlias

from longleaf._validation import check_number
from longleaf.io.tables import LANGUAGE as LANGUAGE

Text: TypeAlias = str | Mapping[str, str | Sequence[str] | None]
"""A plain text, or a record, which maps fields to text (or to a list of strings, or None)."""
FieldWeights: TypeAlias = Mapping[str, float]

LARGEST_WEIGHT = 1e6
NO_TEXT = ("id", "tags", LANGUAGE)
"""Fields of a record that are not read as text unless they are asked for."""


def check_fields(fields: Mapping[str, float] | Iterable[str] | None) -> dict[str, float] | None:
    """Return the weight of every field, in order; None where none are given.

    Parameters
    ----------
    fields : mapping of str to float, or iterable of str
        Names alone weigh 1 each.
    """
    if fields is None:
        return None
    if isinstance(fields, str | bytes) or not isinstance(fields, Iterable):
        raise TypeError(f"fields must map names to weights, or list names; got {fields!r:.80}.")
    weights = dict(fields) if isinstance(fields, Mapping) else dict.fromkeys(fields, 1.0)
    for name, weight in weights.items():
        if not isinstance(name, str):
            raise TypeError(f"fields must have strings as names; got {name!r:.80}.")
        weights[name] = check_number(weight, f"the weight of field {name!r}", low=0, high=LARGEST_WEIGHT)
    if weights and not any(weights.values()):
        raise ValueError("fields must have a weight above 0; got only zeros.")
    return weights


def fields_of(text: object) -> dict[str, float]:
    """Return the fields of text that a first record has, with equal weights; none of a plain text."""
    return dict.fromkeys(_text_fields(text), 1.0) if isinstance(text, Mapping) else {}


def _text_fields(record: Mapping[str, object]) -> list[str]:
    return [name for name in record if name not in NO_TEXT]


def split_first(texts: Iterable[Text]) -> tuple[dict[str, float], Iterable[Text]]:
    """Return the fields of the first of some texts, and all texts again."""
    if isinstance(texts, str | bytes | Mapping) or not isinstance(texts, Iterable):
        raise TypeError(f"texts must be an iterable of strings; got a single {type(texts).__name__}.")
    rest = iter(texts)
    first = list(_take_one(rest))
    return (fields_of(first[0]) if first else {}), chain(first, rest)


def _take_one(texts: Iterator[Text]) -> Iterator[Text]:
    for text in texts:
        yield text
        return


def field_texts(text: Text, names: Sequence[str], row: int) -> list[str]:
    """Return the text of each field of a record; an empty field is an empty string.

    A plain text is the last field, the body. Without names there is one field: a record's fields are joined.

    Parameters
    ----------
    text : str or mapping
    names : sequence of str
        The fields to read; others are ignored.
    row : int
        Its number in error messages.
    """
    if isinstance(text, str):
        return [*[""] * (len(names) - 1), text]
    if not isinstance(text, Mapping):
        raise TypeError(f"texts[{row}] must be a string or a record of fields; got {type(text).__name__}.")
    if not names:
        return [" ".join(filter(None, (_as_text(text[name], name, row) for name in _text_fields(text))))]
    if not any(name in text for name in names):
        found = ", ".join(map(str, text)) or "none"
        raise ValueError(f"texts[{row}] must have one of the fields {', '.join(names)}; got {found}.")
    return [_as_text(text.get(name), name, row) for name in names]


def check_text(text: object) -> None:
    """Refuse what is neither a text nor a record."""
    if not isinstance(text, str | Mapping):
        raise TypeError(f"text must be a string or a record of fields; got {type(text).__name__}.")


def joined_text(text: Text) -> str:
    """Return a record's fields as one text, as they are shown."""
    return field_texts(text, (), 0)[0]


def _as_text(value: object, name: object, row: int) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, float) and value != value:  # as a table says that there is nothing
        return ""
    if isinstance(value, list | tuple) and all(isinstance(one, str) for one in value):
        return " ".join(value)
    raise TypeError(
        f"texts[{row}][{name!r}] must be a string or a list of strings; got {type(value).__name__}."
    )
