"""Validation of the parameters and the state of a text vectorizer."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Integral
from typing import Any

import numpy as np
import numpy.typing as npt

from longleaf._validation.numbers import check_flag, check_threads
from longleaf.io._schema import check_arrays, check_range
from longleaf.text.stems import check_languages


def check_parameters(parameters: dict[str, Any]) -> None:
    """Raise ValueError unless the parameters of a vectorizer are valid and compatible.

    Parameters
    ----------
    parameters : dict
        As returned by ``get_params``.
    """
    _check_choice("analyzer", parameters["analyzer"], ("word", "char", "char_wb"))
    _check_choice("norm", parameters["norm"], ("l2", "l1", None))
    _check_ngram_range("ngram_range", parameters["ngram_range"])
    _check_document_frequency("min_df", parameters["min_df"])
    _check_document_frequency("max_df", parameters["max_df"])
    for name in ("lowercase", "sublinear_tf", "use_idf", "smooth_idf"):
        check_flag(parameters[name], name)
    check_threads(parameters["n_jobs"])
    for name in ("max_features", "hashing"):
        value = parameters[name]
        if value is not None and not (_is_integer(value) and 1 <= value < 2**31):
            raise ValueError(f"{name} must be None or an integer from 1 to 2**31 - 1; got {value!r:.80}.")
    if parameters["char_ngram_range"] is not None:
        _check_ngram_range("char_ngram_range", parameters["char_ngram_range"], MOST_CHARACTERS)
        if parameters["analyzer"] != "word":
            raise ValueError(
                f"char_ngram_range must be None unless analyzer is 'word'; got {parameters['analyzer']!r}."
            )
    if parameters["stem"] is not None:
        check_languages(parameters["stem"])
        if parameters["analyzer"] != "word":
            raise ValueError(f"stem must be None unless analyzer is 'word'; got {parameters['analyzer']!r}.")
    if parameters["hashing"] is not None and parameters["max_features"] is not None:
        raise ValueError("max_features must be None with hashing, which sets the number of columns itself.")


ARRAYS = {"term_bytes": "uint8", "term_offsets": "int64", "idf": "float32"}
"""The arrays of a fitted vectorizer and their dtypes."""

MOST_CHARACTERS = 20
"""Longest character n-grams beside words; longer ones are hardly ever in two texts, and take much memory."""

MOST_IDF = 1e6
"""Far above the logarithm of any number of texts."""


def check_state(arrays: Mapping[str, npt.NDArray[Any]], hashing: int | None) -> None:
    """Raise ValueError unless a saved vocabulary is consistent, because native code relies on it.

    Parameters
    ----------
    arrays : mapping of str to array
        ``term_bytes``, ``term_offsets`` and ``idf``.
    hashing : int or None
        The number of hashed columns.
    """
    check_arrays(arrays, ARRAYS)
    n_bytes, offsets, idf = len(arrays["term_bytes"]), arrays["term_offsets"], arrays["idf"]
    n_terms = 0 if hashing is not None else idf.size
    if hashing is not None and idf.size != hashing:
        raise ValueError(f"idf must have {hashing} entries, as hashing says; got {idf.size}.")
    if offsets.shape != (n_terms + 1,):
        raise ValueError(f"term_offsets must have {n_terms + 1} entries; got {offsets.size}.")
    if offsets[0] != 0 or offsets[-1] != n_bytes or (offsets[1:] < offsets[:-1]).any():
        raise ValueError(f"term_offsets must rise from 0 to {n_bytes}, the size of term_bytes.")
    check_range(idf, 0, MOST_IDF, "idf")


def _is_integer(value: object) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool)


def _check_choice(name: str, value: object, choices: tuple[object, ...]) -> None:
    if value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, choices))}; got {value!r:.80}.")


def _check_ngram_range(name: str, value: Any, most: int | None = None) -> None:
    whole = isinstance(value, tuple | list) and len(value) == 2 and all(map(_is_integer, value))
    if not whole or not 1 <= value[0] <= value[1] <= (most or 2**31 - 1):
        limit = "" if most is None else f" <= {most}"
        raise ValueError(f"{name} must be two integers, 1 <= shortest <= longest{limit}; got {value!r:.80}.")


def _check_document_frequency(name: str, value: Any) -> None:
    count = _is_integer(value) and value >= 1
    share = isinstance(value, float | np.floating) and 0 <= value <= 1
    if not count and not share:
        found = f"{value!r:.80}"
        raise ValueError(f"{name} must be an integer of at least 1 or a float from 0 to 1; got {found}.")
