"""Python's Unicode data as a table for the native text analyzer."""

from __future__ import annotations

import re
from functools import cache

import numpy as np
import numpy.typing as npt

WORD = 1 << 21
SPACE = 1 << 22
CODE_POINTS = 0x110000

# The lower case of these cannot be found from a single character: a capital sigma depends on its neighbours,
# and a dotted capital I becomes two characters. Texts that contain one are lower-cased by Python.
CONTEXTUAL = "\u03a3\u0130"


@cache
def character_table(lowercase: bool) -> npt.NDArray[np.uint32]:
    r"""Return for every code point its replacement and the kind of that character.

    Parameters
    ----------
    lowercase : bool
        Whether characters are replaced by their lower case, as by ``str.lower``.

    Returns
    -------
    numpy.ndarray of shape (1114112,), uint32
        The new code point in the low 21 bits, plus `WORD` if that matches ``\w`` and `SPACE` if it
        matches ``\s``.
    """
    identity = np.arange(CODE_POINTS, dtype="<u4")
    everything = identity.tobytes().decode("utf-32-le", "surrogatepass")
    kinds = np.zeros(CODE_POINTS, dtype=np.uint32)
    for pattern, kind in ((r"\w+", WORD), (r"\s+", SPACE)):
        for match in re.finditer(pattern, everything):
            kinds[match.start() : match.end()] |= kind
    mapped = _lower(everything) if lowercase else identity
    table: npt.NDArray[np.uint32] = (mapped | kinds[mapped]).astype(np.uint32)
    return table


def _lower(everything: str) -> npt.NDArray[np.uint32]:
    # Characters whose lower case is longer would shift the others, so they are replaced here.
    single = everything
    for character in CONTEXTUAL:
        single = single.replace(character, " ")
    lowered = np.frombuffer(single.lower().encode("utf-32-le", "surrogatepass"), dtype="<u4").copy()
    for character in CONTEXTUAL:
        lowered[ord(character)] = ord(character)
    return lowered
