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


MOST_THREADS = 1024
"""More are a slip: each has a workplace of its own, and the system runs out of them."""


def check_seed(value: Any, name: str = "random_state") -> int | None:
    """Give a whole number that random draws may start from, or None for draws left to chance."""
    return None if value is None else check_count(value, name, low=0, high=2**32 - 1)


def check_threads(n_jobs: int | None) -> int:
    """Turn scikit-learn's ``n_jobs`` into a number of threads: -1 is all cores, -2 all but one, None one."""
    if n_jobs is None:
        return 1
    if isinstance(n_jobs, bool) or not isinstance(n_jobs, Integral) or n_jobs == 0:
        raise ValueError(f"n_jobs must be a whole number other than 0, or None; got {n_jobs!r}.")
    if n_jobs > MOST_THREADS:
        raise ValueError(f"n_jobs must be at most {MOST_THREADS}; got {n_jobs}.")
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return int(n_jobs) if n_jobs > 0 else max(1, cores + 1 + int(n_jobs))


def check_number(
    value: Any, name: str, *, low: float = -math.inf, high: float = math.inf, open_low: bool = False
) -> float:
    """Give a finite number within its limits."""
    if isinstance(value, bool) or not isinstance(value, Real) or not math.isfinite(value):
        raise ValueError(f"{name} must be a finite number; got {value!r}.")
    number = float(value)
    if number < low or number > high or (open_low and number == low):
        at_least = f"above {low:g}" if open_low else f"at least {low:g}"
        limits = at_least if high == math.inf else f"{at_least} and at most {high:g}"
        raise ValueError(f"{name} must be {limits}; got {value!r}.")
    return number


def check_pair(value: Any, name: str, parts: str) -> tuple[float, float]:
    """Give two finite numbers."""
    if not isinstance(value, tuple | list) or len(value) != 2:
        raise ValueError(f"{name} must be a pair ({parts}); got {value!r}.")
    return check_number(value[0], name), check_number(value[1], name)


def check_count(value: Any, name: str, *, low: int = 1, high: int = MOST_LABELS) -> int:
    """Give a whole number that is at least ``low`` and at most ``high``."""
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise ValueError(f"{name} must be a whole number; got {value!r}.")
    number = int(value)
    if number < low or number > high:
        limits = f"at least {low}" if high == MOST_LABELS > number else f"at least {low} and at most {high}"
        raise ValueError(f"{name} must be {limits}; got {value}.")
    return number


def check_choice(value: Any, name: str, choices: Collection[str]) -> str:
    """Give one of the named choices."""
    if not isinstance(value, str) or value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(choices)}; got {value!r}.")
    return value


def check_path(value: Any, name: str) -> Path:
    """Give a path as one."""
    if not isinstance(value, str | os.PathLike):
        raise ValueError(f"{name} must be a path; got {value!r}.")
    return Path(value)
