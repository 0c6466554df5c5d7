"""Lists of strings among the arrays of a model folder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy.typing as npt

from longleaf.io._schema import check_arrays
from longleaf.io.storage import pack_strings, unpack_strings

Arrays = dict[str, npt.NDArray[Any]]


def packed(name: str, strings: Sequence[str]) -> Arrays:
    """Return the two arrays that hold a list of strings under a name."""
    data, offsets = pack_strings(strings)
    return {f"{name}/bytes": data, f"{name}/offsets": offsets}


def unpacked(arrays: Mapping[str, npt.NDArray[Any]], name: str, folder: str = "") -> list[str]:
    """Return the strings under a name; `folder` is that of the arrays, for error messages."""
    data, offsets = f"{name}/bytes", f"{name}/offsets"
    check_arrays(arrays, {data: "uint8", offsets: "int64"}, folder)
    return unpack_strings(arrays[data], arrays[offsets])
