"""The checks of the parameters of estimators, for `fit` and for model files."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from longleaf._validation import (
    check_choice,
    check_count,
    check_flag,
    check_number,
    check_seed,
    check_threads,
)
from longleaf.io._schema import Check, Optional
from longleaf.propensity import check_constants
from longleaf.training.solver import (
    COST_SCALES,
    LOSSES,
    MOST_COST,
    MOST_HINGE_POWER,
    MOST_THRESHOLD,
    check_bias,
    check_cost,
)
from longleaf.trees.clustering import TREES

MOST_EPOCHS = 10**6
MOST_TREES = 1000
MOST_K = 10**6
"""Far above any useful default, because the results of a row are kept in memory."""


def check_weight_bits(value: Any, name: str = "weight_bits") -> int:
    """Check and return the number of bits of a weight."""
    if isinstance(value, bool) or value not in (8, 32):
        raise ValueError(f"{name} must be 8 or 32; got {value!r:.80}.")
    return int(value)


CHECKS: Mapping[str, Check] = {
    "n_trees": partial(check_count, high=MOST_TREES),
    "normalize": check_flag,
    "loss": partial(check_choice, choices=LOSSES),
    "C": Optional(check_cost),
    "bias": check_bias,
    "threshold": partial(check_number, low=0, high=MOST_THRESHOLD),
    "tolerance": partial(check_number, low=0, high=1, open_low=True),
    "max_epochs": partial(check_count, high=MOST_EPOCHS),
    "C_scale": Optional(partial(check_choice, choices=COST_SCALES)),
    "weight_bits": check_weight_bits,
    "hinge_power": partial(check_count, high=MOST_HINGE_POWER),
    "propensity": check_constants,
    "k": partial(check_count, high=MOST_K),
    "n_jobs": check_threads,
}
"""The checks of `fit` and `partial_fit` for the parameters that all estimators have."""


def check_trees(value: Any, name: str) -> str | None:
    """Return the kind of trees, or None for custom trees, stored as null or a list of nulls."""
    own = value is None or (isinstance(value, list) and all(item is None for item in value))
    return None if own else check_choice(value, name, TREES)


STORED: Mapping[str, Check] = {
    **CHECKS,
    "C": Optional(partial(check_number, low=0, high=MOST_COST, open_low=True)),
    "bias": partial(check_number, low=-MOST_THRESHOLD, high=MOST_THRESHOLD),
    "tolerance": partial(check_number, low=0, open_low=True),
    "random_state": check_seed,
    "refine": check_flag,
    "arity": partial(check_count, low=2),
    "max_leaf": check_count,
    "tree": check_trees,
}
"""The checks of parameters in model files; a NumPy random state is stored as null.

Limits are wider here where earlier versions had none."""
