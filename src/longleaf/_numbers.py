"""Settings that are a number, a name or a path: what they must be, and what to say if they are not."""

from __future__ import annotations

import math
import os
from collections.abc import Collection
from numbers import Integral, Real
from pathlib import Path
from typing import Any

import numpy as np

MOST_LABELS = int(np.iinfo(np.int32).max)
"""Native code numbers rows, features and labels by 32 bits."""

MOST_ROWS = 2**53
"""That a model may have learned from in its life: a float holds the number."""

MOST_THREADS = 1024
"""Each has memory of its own; more can only be a slip."""


def check_seed(value: Any, name: str = "random_state") -> int | None:
    """Return a whole number that random draws may start from, or None for draws left to chance."""
    return None if value is None else check_count(value, name, low=0, high=2**32 - 1)


def check_threads(n_jobs: Any, name: str = "n_jobs") -> int:
    """Turn scikit-learn's ``n_jobs`` into a number of threads: -1 is all cores, -2 all but one, None one."""
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
    """Return a finite number within its limits."""
    number = _as_float(value)
    if not math.isfinite(number):
        raise ValueError(f"{name} must be a finite number; got {value!r:.80}.")
    if number < low or number > high or (open_low and number == low):
        at_least = f"above {low:g}" if open_low else f"at least {low:g}"
        limits = at_least if high == math.inf else f"{at_least} and at most {high:g}"
        raise ValueError(f"{name} must be {limits}; got {value!r:.80}.")
    return number


def check_flag(value: Any, name: str) -> bool:
    """Return true or false; 1 and 0 say the same."""
    if not isinstance(value, bool | np.bool_) and (not isinstance(value, Integral) or value not in (0, 1)):
        raise ValueError(f"{name} must be true or false; got {value!r:.80}.")
    return bool(value)


def check_pair(value: Any, name: str, parts: str) -> tuple[float, float]:
    """Return two finite numbers."""
    if not isinstance(value, tuple | list) or len(value) != 2:
        raise ValueError(f"{name} must be a pair ({parts}); got {value!r:.80}.")
    return check_number(value[0], name), check_number(value[1], name)


def check_count(value: Any, name: str, *, low: int = 1, high: int = MOST_LABELS) -> int:
    """Return a whole number that is at least ``low`` and at most ``high``."""
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
    """Return one of the named choices."""
    if not isinstance(value, str) or value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(choices)}; got {value!r:.80}.")
    return value


def check_path(value: Any, name: str) -> Path:
    """Return a path as one."""
    if not isinstance(value, str | os.PathLike):
        raise ValueError(f"{name} must be a path; got {value!r}.")
    return Path(value)


def _as_float(value: Any) -> float:
    """Return a number as a float; NaN for what is none, infinity for what is beyond a float."""
    try:
        return float(value) if isinstance(value, Real) and not isinstance(value, bool) else math.nan
    except OverflowError:
        return math.inf
