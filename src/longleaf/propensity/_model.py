"""Propensities: the probability that a true label was observed.

Annotators miss labels, and the rarer a label, the more often. Jain et al. (Extreme Multi-label Loss
Functions, KDD 2016) model the propensity of label j, observed in ``N_j`` of ``N`` training rows, as

    p_j = 1 / (1 + C exp(-A log(N_j + B))),   C = (log N - 1) (B + 1)^A,

with A and B set per data set. This module computes its inverse, ``q_j = 1 / p_j``, which is the gain of label
j.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import log
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from longleaf._validation import (
    MOST_ROWS,
    LabelsLike,
    check_count,
    check_labels,
    check_number,
    check_pair,
    check_per_label,
)


class Constants(NamedTuple):
    """A and B of the propensity model."""

    a: float
    b: float


CONSTANTS: Mapping[str, Constants] = MappingProxyType(
    {
        "EURLex-4K": Constants(0.55, 1.5),
        "AmazonCat-13K": Constants(0.55, 1.5),
        "Wiki10-31K": Constants(0.55, 1.5),
        "WikiLSHTC-325K": Constants(0.5, 0.4),
        "WikipediaLarge-500K": Constants(0.5, 0.4),
        "Amazon-670K": Constants(0.6, 2.6),
    }
)
"""A and B of the data sets of the PS-PLT paper."""

UNKNOWN_COUNT = -1
"""Stands for an unknown label count of a model; there is no propensity then."""

MOST_A, MOST_B = 100.0, 1e9
"""Far above every published constant; larger values are mistakes."""


def constants(name: str) -> Constants:
    """Look up the paper's A and B for a data set; case, hyphens and spaces in its name do not matter.

    Examples
    --------
    >>> constants("amazon 670k")
    Constants(a=0.6, b=2.6)
    """
    for known, pair in CONSTANTS.items():
        if isinstance(name, str) and _plain(known) == _plain(name):
            return pair
    raise ValueError(f"name must be one of {', '.join(CONSTANTS)}; got {name!r}.")


def check_constants(pair: object, name: str = "propensity") -> Constants:
    """Check and return A and B: from 0 to 100, and above 0 to 1e9."""
    a, b = check_pair(pair, name, "A, B")
    check_number(a, f"A of {name}", low=0, high=MOST_A)
    check_number(b, f"B of {name}", low=0, high=MOST_B, open_low=True)
    return Constants(a, b)


def inverse_propensity(Y: LabelsLike, a: float = 0.55, b: float = 1.5) -> npt.NDArray[np.float64]:
    """Return the inverse propensity of every label, from the labels of the training rows.

    Parameters
    ----------
    Y : scipy.sparse matrix, dense array [rows, labels], or list of label lists
        Labels of the training rows. Only whether entries are above zero matters.
    a, b : float
        Constants of the model; see `constants` for those of well-known data sets.

    Returns
    -------
    float64 [labels]
        At least 1; largest for labels without a row.

    Examples
    --------
    >>> inverse_propensity([[0], [0], [0, 1], [0]], a=0.5, b=1.0).round(3)
    array([1.244, 1.386])
    """
    indicator = check_labels(Y)
    n_rows, n_labels = indicator.shape
    counts = np.bincount(indicator.indices, minlength=n_labels)
    return inverse_propensity_from_counts(counts, n_rows, a, b)


def inverse_propensity_from_counts(
    counts: npt.ArrayLike, n_rows: int, a: float = 0.55, b: float = 1.5
) -> npt.NDArray[np.float64]:
    """Return the inverse propensity of every label, from its number of training rows.

    Parameters
    ----------
    counts : array [labels]
        Number of training rows with each label.
    n_rows : int
        Number of training rows, at least 1. Below e, ``C`` would be negative and is set to 0.
    a, b : float
        Constants of the model: ``a`` from 0 to 100, ``b`` above 0 and at most 1e9.

    Returns
    -------
    float64 [labels]
        At least 1.
    """
    if n_rows == 0 and np.any(np.asarray(counts) == UNKNOWN_COUNT):
        raise ValueError(
            "Label counts must be known for propensities, and so for tail above 0; this model was imported "
            "without them, so import it again with label_counts (on the command line --data or --counts)."
        )
    check_count(n_rows, "n_rows", high=MOST_ROWS)
    check_number(a, "a", low=0, high=MOST_A)
    check_number(b, "b", low=0, high=MOST_B, open_low=True)
    rows_with = check_per_label(counts, None, "counts")
    if len(rows_with) and rows_with.max() > n_rows:
        raise ValueError(f"counts must be at most the {n_rows} rows; got {rows_with.max():g}.")
    # (B + 1)^A (N_j + B)^-A as one power: neither factor can overflow on its own.
    with np.errstate(over="ignore"):
        decline = ((b + 1.0) / (rows_with + b)) ** a
    if not np.isfinite(decline).all():
        raise ValueError(f"a and b must give finite propensities; got a={a}, b={b}.")
    return 1.0 + max(log(n_rows) - 1.0, 0.0) * decline


def _plain(name: str) -> str:
    return "".join(letter for letter in name.lower() if letter.isalnum())
