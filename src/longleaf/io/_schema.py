"""The schema of a model folder: a check for every field of its JSON, and the type of every array.

A check takes a value and its name, and raises ValueError with one sentence if the value is invalid.
`longleaf._numbers` has checks of numbers and choices; this module combines them. Unknown fields are ignored,
because a later version may have written them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from longleaf._validation import ModelError

Check = Callable[[Any, str], Any]
Arrays = Mapping[str, npt.NDArray[Any]]


@dataclass(frozen=True)
class Object:
    """An object with a check for each field; fields of ``optional`` may be missing."""

    required: Mapping[str, Check] = field(default_factory=dict)
    optional: Mapping[str, Check] = field(default_factory=dict)
    closed: bool = False  # whether other fields are forbidden

    def __call__(self, value: Any, name: str) -> dict[str, Any]:
        """Return the object."""
        if not isinstance(value, dict):
            raise ValueError(f"{name} must be an object; got {value!r:.80}.")
        missing = [key for key in self.required if key not in value]
        if missing:
            raise ValueError(f"{name} must have the field {missing[0]}; got none.")
        checks = {**self.required, **self.optional}
        for key, item in value.items():
            if key in checks:
                checks[key](item, f"{name}.{key}")
            elif self.closed:
                raise ValueError(f"{name} must have no fields but {', '.join(checks)}; got {key!r:.80}.")
        return value


@dataclass(frozen=True)
class ListOf:
    """A list whose items all have the same check."""

    check: Check

    def __call__(self, value: Any, name: str) -> list[Any]:
        """Return the list."""
        if not isinstance(value, list):
            raise ValueError(f"{name} must be a list; got {value!r:.80}.")
        for number, item in enumerate(value):
            self.check(item, f"{name}[{number}]")
        return value


@dataclass(frozen=True)
class Optional:
    """A value that may be null."""

    check: Check

    def __call__(self, value: Any, name: str) -> Any:
        """Return the value."""
        return None if value is None else self.check(value, name)


def anything(value: Any, name: str) -> Any:
    """Return the value unchecked."""
    return value


def check_string(value: object, name: str) -> str:
    """Check and return a string."""
    if not isinstance(value, str):
        raise ValueError(f"{name} must be a string; got {value!r:.80}.")
    return value


def check_some_string(value: object, name: str) -> str:
    """Check and return a non-empty string."""
    if not (string := check_string(value, name)):
        raise ValueError(f"{name} must not be empty.")
    return string


def check_saved(meta: dict[str, Any], schema: Object) -> dict[str, Any]:
    """Return the metadata of a model to be saved; reject what could not be read back."""
    try:
        return schema(meta, "meta")
    except ValueError as error:
        raise ModelError(f"A model must be valid to be saved: {error}") from None


def check_arrays(arrays: Arrays, dtypes: Mapping[str, str], folder: str = "") -> None:
    """Reject arrays that are missing, of another type or not one-dimensional.

    Parameters
    ----------
    arrays : mapping of str to array
        Arrays by their names in the folder; others are ignored.
    dtypes : mapping of str to str
        NumPy's name of each array's dtype.
    folder : str
        Their folder, for error messages.
    """
    for name, dtype in dtypes.items():
        if name not in arrays:
            raise ValueError(f"{folder}{name}.npy must exist; got no such array.")
        array = arrays[name]
        if array.dtype != np.dtype(dtype) or array.ndim != 1:
            raise ValueError(
                f"{folder}{name}.npy must be a list of {dtype}; got {array.dtype} of shape {array.shape}."
            )


def check_range(array: npt.NDArray[Any], low: float, high: float, name: str) -> None:
    """Reject numbers out of range, and NaN."""
    if array.size and not (array.min() >= low and array.max() <= high):
        bad = array[~((array >= low) & (array <= high))][0]
        raise ValueError(f"{name} must hold numbers from {low:g} to {high:g}; got {bad}.")
