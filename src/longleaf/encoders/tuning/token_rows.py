"""Texts as token numbers, and the batches in which a network reads them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

Ints = npt.NDArray[np.int64]

BATCHES_TOGETHER = 50
"""Texts are sorted by length only within so many batches, so that what is in a batch stays random."""
TILE = 8
"""Widths are multiples of this: whole tiles of a GPU's matrix units."""


@dataclass(frozen=True, eq=False)
class TokenRows:
    """The token numbers of texts, one after the other.

    Attributes
    ----------
    ids : array of int [tokens]
    offsets : array of int64 [texts + 1]
        Where each text's tokens begin, and the end of the last.
    """

    ids: npt.NDArray[Any]
    offsets: Ints

    @classmethod
    def of(cls, rows: Sequence[npt.NDArray[Any]]) -> Self:
        """Join the token numbers of texts."""
        offsets = np.zeros(len(rows) + 1, np.int64)
        np.cumsum([len(row) for row in rows], out=offsets[1:])
        return cls(np.concatenate(rows).astype(np.int32) if rows else np.zeros(0, np.int32), offsets)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def lengths(self) -> Ints:
        """Return the number of tokens of each text."""
        return np.diff(self.offsets)

    def take(self, rows: Ints) -> TokenRows:
        """Return some texts."""
        return TokenRows.of([self.ids[self.offsets[row] : self.offsets[row + 1]] for row in rows])

    def batch(self, rows: Ints, padding: int, device: torch.device) -> tuple[Tensor, Tensor]:
        """Return the tokens of some texts, padded to the longest, and a mask of what is no padding."""
        lengths = self.lengths()[rows]
        width = -(-int(lengths.max(initial=1)) // TILE) * TILE
        mask = np.arange(width) < lengths[:, None]
        ids = np.full((len(rows), width), padding, np.int64)
        ids[mask] = np.concatenate([self.ids[self.offsets[row] : self.offsets[row + 1]] for row in rows])
        return torch.from_numpy(ids).to(device), torch.from_numpy(mask).to(device)


def in_order_of_length(lengths: Ints, batch_size: int) -> Iterator[Ints]:
    """Yield the numbers of texts in batches of similar length, the shortest first."""
    order = np.argsort(lengths, kind="stable")
    yield from (order[begin : begin + batch_size] for begin in range(0, len(order), batch_size))


def shuffled(lengths: Ints, batch_size: int, random: np.random.Generator) -> list[Ints]:
    """Return random batches of texts of similar length, so that little is padded.

    Texts are shuffled, then sorted by length within `BATCHES_TOGETHER` batches, which are then shuffled.
    """
    order = random.permutation(len(lengths))
    span, batches = BATCHES_TOGETHER * batch_size, list[Ints]()
    for begin in range(0, len(order), span):
        some = order[begin : begin + span]
        some = some[np.argsort(lengths[some], kind="stable")]
        batches += [some[first : first + batch_size] for first in range(0, len(some), batch_size)]
    return [batches[place] for place in random.permutation(len(batches))]


def pieces(rows: Ints, lengths: Ints, most_tokens: int) -> list[Ints]:
    """Cut a batch into pieces of at most so many tokens, padding included; a longer text is one piece."""
    longest = int(lengths[rows].max(initial=1))
    at_once = max(1, most_tokens // (-(-longest // TILE) * TILE))
    return [rows[begin : begin + at_once] for begin in range(0, len(rows), at_once)]
