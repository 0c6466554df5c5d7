"""Texts and tags to train on, and those that are held out to judge."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from longleaf._validation import DataError, check_number
from longleaf.text.fields import Text, split_first
from longleaf.text.meaning import embedded_text
from longleaf.text.tags import TagCollector, known_indicator

MOST_HELD_OUT = 10_000
"""More texts would be judged more exactly, but after every epoch."""

Tags = Iterable[Iterable[str]]


@dataclass(frozen=True, eq=False)
class Examples:
    """Texts and their tags as numbers.

    Attributes
    ----------
    texts : list of str
        With at least one character other than white space.
    Y : csr_array [texts, tags]
        Each text has a tag.
    """

    texts: list[str]
    Y: Any

    def __len__(self) -> int:
        return len(self.texts)

    def take(self, rows: npt.NDArray[np.int64]) -> Examples:
        """Return some texts."""
        return Examples([self.texts[row] for row in rows], self.Y[rows])


@dataclass(frozen=True, eq=False)
class Split:
    """What is trained on, and what is held out; the labels of both are numbered alike.

    Attributes
    ----------
    train, held_out : Examples
        Tags that are in no training text come last, and only in ``held_out``.
    """

    train: Examples
    held_out: Examples


def read_examples(texts: Iterable[Text], tags: Tags, validation: object, seed: int) -> Split:
    """Read texts and tags, and hold some out; texts without words or tags are left out.

    Parameters
    ----------
    texts : iterable of str or records
    tags : iterable of lists of str
    validation : float or pair
        The share to hold out, 0 for none; or a pair of texts and tags.
    seed : int
    """
    collector = TagCollector()
    joined = _joined(texts)
    for row in _rows_of(tags):
        collector.add(row)
    names, Y = collector.sorted_indicator()
    _check_equal(joined, collector.n_rows, "texts and tags")
    found = _usable(Examples(joined, Y))
    if not len(found):
        raise DataError(f"texts must have words and a tag in at least one row; none of {len(joined)} has.")
    if isinstance(validation, tuple | list) and len(validation) == 2:
        others = _joined(validation[0])
        Y = known_indicator(validation[1], names, "add")
        _check_equal(others, Y.shape[0], "validation texts and tags")
        held_out = _usable(Examples(others, Y))
        if not len(held_out):
            raise DataError("validation must have words and a tag in at least one row; it has none.")
        return Split(found, held_out)
    return _held_out(found, validation, seed)


def _held_out(found: Examples, share: object, seed: int) -> Split:
    try:
        checked = check_number(share, "validation", low=0)
    except ValueError:
        checked = 1.0
    if checked >= 1:
        raise ValueError(
            f"validation must be a share from 0 to below 1, or a pair of texts and tags; got {share!r:.80}."
        )
    if not checked:
        return Split(found, found.take(np.zeros(0, np.int64)))
    size = int(min(checked * len(found), MOST_HELD_OUT))
    if not size:
        raise DataError(
            f"validation must leave texts to judge; a share of {checked:g} of {len(found)} texts is none: "
            "use a larger share, a pair of texts and tags, or 0."
        )
    order = np.random.RandomState(seed).permutation(len(found))
    held_out, train = (found.take(np.sort(rows)) for rows in (order[:size], order[size:]))
    trained = np.bincount(train.Y.indices, minlength=train.Y.shape[1]) > 0
    first = np.argsort(~trained, kind="stable")  # tags that are only held out come last
    Y = sp.csr_array(sp.csc_array(train.Y)[:, first[: trained.sum()]])
    return Split(
        Examples(train.texts, Y), Examples(held_out.texts, sp.csr_array(sp.csc_array(held_out.Y)[:, first]))
    )


def _joined(texts: Iterable[Text]) -> list[str]:
    """Return what an encoder reads of each text, as in a tagger."""
    fields, rows = split_first(texts)
    return [embedded_text(text, list(fields), row) for row, text in enumerate(rows)]


def _rows_of(tags: Tags) -> Tags:
    if isinstance(tags, str | bytes) or not isinstance(tags, Iterable):
        raise TypeError(f"tags must be an iterable of lists of strings; got {type(tags).__name__}.")
    return tags


def _check_equal(texts: list[str], n_tags: int, names: str) -> None:
    if len(texts) != n_tags:
        raise ValueError(f"{names} must be the same length; got {len(texts)} and {n_tags}.")


def _usable(found: Examples) -> Examples:
    tagged = np.diff(found.Y.indptr) > 0
    filled = np.array([bool(text.strip()) for text in found.texts], bool)
    return found.take(np.flatnonzero(tagged & filled))
