"""Lists packed into flat arrays, as they are stored in a model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from longleaf.io.storage import pack_strings

Ints = npt.NDArray[np.int64]


def check_offsets(offsets: Ints, n_lists: int, n_values: int, name: str) -> None:
    """Reject offsets that do not divide values into lists."""
    if len(offsets) != n_lists + 1 or offsets[0] != 0 or offsets[-1] != n_values:
        raise ValueError(
            f"{name}.npy must be {n_lists + 1} numbers from 0 to {n_values}; got {len(offsets)} numbers"
            + (f" from {offsets[0]} to {offsets[-1]}." if len(offsets) else ".")
        )
    if np.any(offsets[1:] < offsets[:-1]):
        raise ValueError(f"{name}.npy must rise from 0 to {n_values}.")


def inserted(offsets: Ints, values: npt.NDArray[Any], more: Ints, new: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return values with those of another packed list of lists at the end of each list.

    The offsets of the result are the sum of both.
    """
    return np.insert(values, np.repeat(offsets[1:], np.diff(more)), new)


class Strings(NamedTuple):
    """Strings in UTF-8, of which only those that are asked for are decoded."""

    data: npt.NDArray[np.uint8]
    offsets: Ints

    @classmethod
    def pack(cls, strings: Sequence[str]) -> Self:
        """Pack some strings."""
        return cls(*pack_strings(strings))

    def string(self, number: int) -> str:
        """Decode one string."""
        begin, end = self.offsets[number], self.offsets[number + 1]
        return self.data[begin:end].tobytes().decode("utf-8", "surrogatepass")

    def followed_by(self, strings: Sequence[str]) -> Strings:
        """Return these strings and some more."""
        data, offsets = pack_strings(strings)
        return Strings(
            np.concatenate([self.data, data]),
            np.concatenate([self.offsets, self.offsets[-1] + offsets[1:]]),
        )

    def check(self, n_strings: int, name: str) -> None:
        """Reject what no strings are packed to."""
        check_offsets(self.offsets, n_strings, len(self.data), f"{name}/offsets")
        begins = self.offsets[:-1][self.offsets[:-1] < self.offsets[1:]]
        try:
            str(self.data.data, "utf-8", "surrogatepass")
        except UnicodeDecodeError:
            raise ValueError(f"{name}/bytes.npy must be UTF-8.") from None
        if np.any(self.data[begins] & 0xC0 == 0x80):
            raise ValueError(f"{name}/offsets.npy must not divide a character.")
