"""Splitting an iterable of strings into batches of UTF-8."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from longleaf.text.characters import CONTEXTUAL

BATCH_TEXTS = 4096
BATCH_CHARACTERS = 1 << 24


def batches(texts: Iterable[str], lowercase: bool) -> Iterator[list[str | bytes]]:
    """Read texts, check that they are strings, and prepare them for the native analyzer.

    Parameters
    ----------
    texts : iterable of str
        Read lazily; only one batch is in memory.
    lowercase : bool
        Whether the analyzer will lower-case.

    Yields
    ------
    list of str or bytes
        A few thousand texts, or some megabytes.
    """
    if isinstance(texts, str | bytes):
        raise TypeError(f"texts must be an iterable of strings; got a single {type(texts).__name__}.")
    batch: list[str | bytes] = []
    characters = 0
    for row, text in enumerate(texts):
        if not isinstance(text, str):
            raise TypeError(f"texts[{row}] must be a string; got {type(text).__name__}.")
        batch.append(_as_utf8(text, lowercase))
        characters += len(text)
        if len(batch) == BATCH_TEXTS or characters >= BATCH_CHARACTERS:
            yield batch
            batch, characters = [], 0
    if batch:
        yield batch


def _as_utf8(text: str, lowercase: bool) -> str | bytes:
    # An ASCII string is valid UTF-8 and needs no copy. Cases beyond `character_table` are handled here.
    if text.isascii():
        return text
    if lowercase and any(character in text for character in CONTEXTUAL):
        text = text.lower()
    return text.encode("utf-8", "surrogatepass")
