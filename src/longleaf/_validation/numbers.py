"""Checks of settings that are numbers, names or paths."""

from __future__ import annotations

import math
import os
from collections.abc import Collection
from numbers import Integral, Real
from pathlib import Path
from typing import Any

import numpy as np

MOST_LABELS = int(np.iinfo(np.int32).max)
"""Native code numbers rows, features and labels with 32 bits."""

MOST_ROWS = 2**53
"""Maximum total of training rows of a model: a float represents it exactly."""

MOST_THREADS = 1024
"""Each thread has its own memory; larger values are mistakes."""


def check_seed(value: Any, name: str = "random_state") -> int | None:
    """Check and return a seed, or None for unseeded draws."""
    return None if value is None else check_count(value, name, low=0, high=2**32 - 1)


def check_threads(n_jobs: Any, name: str = "n_jobs") -> int:
    """Return the number of threads for ``n_jobs``: -1 is all cores, -2 all but one, None one."""
    if n_jobs is None:
        return 1
    if isinstance(n_jobs, bool) or not isinstance(n_jobs, Integral) or n_jobs == 0:
        raise ValueError(f"{name} must be a whole number other than 0, or None; got {n_jobs!r:.80}.")
    if int(n_jobs) > MOST_THREADS:
        raise ValueError(f"{name} must be at most {MOST_THREADS}; got {n_jobs!r:.80}.")
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return int(n_jobs) if int(n_jobs) > 0 else max(1, cores + 1 + int(n_jobs))


def check_number(
    value: Any, name: str, *, low: float = -math.inf, high: float = math.inf, open_low: bool = False
) -> float:
    """Check and return a finite number within its limits."""
    number = _as_float(value)
    if not math.isfinite(number):
        raise ValueError(f"{name} must be a finite number; got {value!r:.80}.")
    if number < low or number > high or (open_low and number == low):
        at_least = f"above {low:g}" if open_low else f"at least {low:g}"
        limits = at_least if high == math.inf else f"{at_least} and at most {high:g}"
        raise ValueError(f"{name} must be {limits}; got {value!r:.80}.")
    return number


def check_flag(value: Any, name: str) -> bool:
    """Check and return a boolean; 1 and 0 are also accepted."""
    if not isinstance(value, bool | np.bool_) and (not isinstance(value, Integral) or value not in (0, 1)):
        raise ValueError(f"{name} must be true or false; got {value!r:.80}.")
    return bool(value)


def check_pair(value: Any, name: str, names: str) -> tuple[float, float]:
    """Check and return two finite numbers."""
    if not isinstance(value, tuple | list) or len(value) != 2:
        raise ValueError(f"{name} must be a pair ({names}); got {value!r:.80}.")
    return check_number(value[0], name), check_number(value[1], name)


def check_count(value: Any, name: str, *, low: int = 1, high: int = MOST_LABELS) -> int:
    """Check and return an integer from ``low`` to ``high``."""
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise ValueError(f"{name} must be a whole number; got {value!r:.80}.")
    number = int(value)
    if number < low or number > high:
        limits = (
            f"at least {low}"
            if number < low and high >= MOST_LABELS
            else f"at least {low} and at most {high}"
        )
        raise ValueError(f"{name} must be {limits}; got {value!s:.80}.")
    return number


def check_choice(value: Any, name: str, choices: Collection[str]) -> str:
    """Check and return one of the choices."""
    if not isinstance(value, str) or value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(choices)}; got {value!r:.80}.")
    return value


def check_path(value: Any, name: str) -> Path:
    """Check and return a path."""
    if not isinstance(value, str | os.PathLike):
        raise ValueError(f"{name} must be a path; got {value!r}.")
    return Path(value)


def _as_float(value: Any) -> float:
    """Return a value as a float; NaN if it is not a number, infinity if it overflows."""
    try:
        return float(value) if isinstance(value, Real) and not isinstance(value, bool) else math.nan
    except OverflowError:
        return math.inf
