"""Splitting an iterable of texts or records into batches of UTF-8."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from longleaf.text.characters import CONTEXTUAL
from longleaf.text.fields import Text, field_texts

BATCH_TEXTS = 4096
BATCH_CHARACTERS = 1 << 24


def batches(
    texts: Iterable[Text], lowercase: bool, fields: Sequence[str] = ()
) -> Iterator[list[str | bytes]]:
    """Read texts, check what they are, and prepare them for the native analyzer.

    Parameters
    ----------
    texts : iterable of str or mapping
        Read lazily; only one batch is in memory.
    lowercase : bool
        Whether the analyzer will lower-case.
    fields : sequence of str
        The fields of a record; a text without fields is one.

    Yields
    ------
    list of str or bytes
        A few thousand texts, or some megabytes; the fields of a record come one after another.
    """
    if isinstance(texts, str | bytes):
        raise TypeError(f"texts must be an iterable of strings; got a single {type(texts).__name__}.")
    return encoded((field_texts(text, fields, row) for row, text in enumerate(texts)), lowercase)


def encoded(records: Iterable[Sequence[str]], lowercase: bool) -> Iterator[list[str | bytes]]:
    """Prepare the fields of records for native code, batch by batch; a record stays in one batch."""
    batch: list[str | bytes] = []
    n_records = characters = 0
    for record in records:
        for field in record:
            batch.append(_as_utf8(field, lowercase))
            characters += len(field)
        n_records += 1
        if n_records == BATCH_TEXTS or characters >= BATCH_CHARACTERS:
            yield batch
            batch, n_records, characters = [], 0, 0
    if batch:
        yield batch


def _as_utf8(text: str, lowercase: bool) -> str | bytes:
    # An ASCII string is valid UTF-8 and needs no copy. Cases beyond `character_table` are handled here.
    if text.isascii():
        return text
    if lowercase and any(character in text for character in CONTEXTUAL):
        text = text.lower()
    return text.encode("utf-8", "surrogatepass")
