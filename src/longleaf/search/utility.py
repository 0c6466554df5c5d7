"""What each label is worth to somebody: any objective that is a line in the label's probability."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]
Bools = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int32]

LARGEST_UTILITY = 1e30
"""Of the numbers ``a`` and ``b``; sums of them must fit a 32-bit float."""


class Utility:
    """What each label is worth: ``a * probability + b``, if it is allowed.

    ``model.top_k(X, k, utility=utility)`` finds the k labels of each row that are worth the most, exactly and
    among all labels, also those of probability 0. A utility never changes, so that threads may use several
    on one model; `replace` makes another one. Its bounds are made when a model is first asked with it, and
    kept as long as it lives.

    Parameters
    ----------
    a : float or array [labels]
        What a correct label is worth, from -1e30 to 1e30; one number for all labels, or one for each.
    b : float or array [labels]
        What a returned label is worth anyway, such as minus its cost.
    mask : array of bool [labels], optional
        Which labels are allowed; all by default. The search never enters subtrees without one.
    groups : array of int [labels], optional
        The group of each label, from 0, or -1 for none.
    quota : int or array of int [groups], optional
        How many labels of each group a row may have at most; one number for all groups, or one for each.

    Examples
    --------
    >>> import longleaf as ll
    >>> X, Y = [[1.0, 0.0], [0.9, 0.1], [0.0, 1.0]], [[0], [0, 1], [1]]
    >>> model = ll.PLT(n_trees=1, random_state=1).fit(X, Y)
    >>> model.top_k([[0.0, 1.0]], k=1, utility=ll.Utility(b=[2.0, 0.0])).labels
    array([[0]], dtype=int32)
    """

    def __init__(
        self,
        a: npt.ArrayLike = 1.0,
        b: npt.ArrayLike = 0.0,
        mask: npt.ArrayLike | None = None,
        *,
        groups: npt.ArrayLike | None = None,
        quota: npt.ArrayLike | None = None,
    ) -> None:
        if (groups is None) != (quota is None):
            raise ValueError("groups and quota must be given together.")
        self._a, self._b = check_lines(a, "a"), check_lines(b, "b")
        self._mask = None if mask is None else _mask(mask, least_dimensions=1)
        self._groups = None if groups is None else _whole(groups, "groups", low=-1)
        self._quota = None if quota is None or self._groups is None else _quotas(quota, self._groups)
        self._change: tuple[Utility, Ints] | None = None
        sized = {"a": self._a, "b": self._b, "mask": self._mask, "groups": self._groups}
        sizes = {name: len(array) for name, array in sized.items() if array is not None and array.ndim}
        if len(set(sizes.values())) > 1:
            found = ", ".join(f"{name} has {size}" for name, size in sizes.items())
            raise ValueError(f"a utility must have the same number of labels throughout; {found}.")
        self._n_labels = next(iter(sizes.values()), None)

    @property
    def a(self) -> Floats:
        """What a correct label is worth: a read-only array, 0-D if it is one number for all labels."""
        return self._a

    @property
    def b(self) -> Floats:
        """What a returned label is worth anyway, in the same form."""
        return self._b

    @property
    def mask(self) -> Bools | None:
        """Which labels are allowed; None for all."""
        return self._mask

    def replace(
        self,
        labels: npt.ArrayLike,
        *,
        a: npt.ArrayLike | None = None,
        b: npt.ArrayLike | None = None,
        mask: npt.ArrayLike | None = None,
    ) -> Utility:
        """Return a utility with other numbers for some labels.

        A model that knows this one only computes the bounds above these labels.

        Parameters
        ----------
        labels : array of int
            The numbers of labels. The utility must know how many there are: at least one of its numbers
            must be an array.
        a, b : float or array [given labels], optional
            Their new numbers; those that are omitted stay.
        mask : bool or array of bool [given labels], optional
            Whether they are allowed.
        """
        if self._n_labels is None:
            raise ValueError("a or b must be an array, one number per label, to replace some of them.")
        chosen = _whole(np.atleast_1d(labels), "labels", low=0, high=self._n_labels - 1)
        changed = Utility.__new__(Utility)
        changed.__dict__.update(self.__dict__)
        for name, new in (("a", a), ("b", b)):
            if new is not None:
                values = np.array(np.broadcast_to(getattr(self, name), self._n_labels))
                values[chosen] = _same_length(check_lines(new, name), chosen, name)
                changed.__dict__[f"_{name}"] = _frozen(values)
        if mask is not None:
            allowed = np.ones(self._n_labels, bool) if self._mask is None else self._mask.copy()
            allowed[chosen] = _same_length(_mask(mask), chosen, "mask")
            changed._mask = _frozen(allowed)
        changed._change = self, chosen
        return changed

    @property
    def change(self) -> tuple[Utility, Ints] | None:
        """The utility that `replace` made this one of, and the labels that differ."""
        return self._change

    def without_change(self) -> None:
        """Forget what this utility was made of."""
        self._change = None

    def lines(self, n_labels: int, labels: Ints | None = None) -> tuple[Floats, Floats]:
        """Return a and b of all labels, or of some; b is -inf where a label is not allowed."""
        if self._n_labels not in (None, n_labels):
            raise ValueError(
                f"utility must have {n_labels} numbers, one per label of the model; got {self._n_labels}."
            )

        def of(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
            if values.ndim and labels is not None:
                return values[labels]
            return np.array(np.broadcast_to(values, n_labels if labels is None else len(labels)))

        b = of(self._b)
        if self._mask is not None:
            b = np.where(of(self._mask), b, np.float32(-np.inf))
        return of(self._a), b

    @property
    def quotas(self) -> tuple[Ints, Ints] | None:
        """The group of each label and the quota of each group."""
        if self._groups is None or self._quota is None:
            return None
        return self._groups, self._quota

    def __repr__(self) -> str:
        parts = [f"a={_short(self._a)}", f"b={_short(self._b)}"]
        if self._mask is not None:
            parts.append(f"mask={int(self._mask.sum())} of {len(self._mask)} labels")
        if self._quota is not None:
            parts.append(f"quota={_short(self._quota)}")
        return f"Utility({', '.join(parts)})"

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuilt, (self._a, self._b, self._mask, self._groups, self._quota)


def check_utility(utility: Any) -> Utility:
    """Check that this is a utility."""
    if not isinstance(utility, Utility):
        raise TypeError(f"utility must be a longleaf.Utility; got {type(utility).__name__}.")
    return utility


def _rebuilt(a: Any, b: Any, mask: Any, groups: Any, quota: Any) -> Utility:
    return Utility(a, b, mask, groups=groups, quota=quota)


def _short(values: npt.NDArray[Any]) -> str:
    return f"{values[()]:g}" if values.ndim == 0 else f"[{len(values)} numbers]"


def _frozen(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    array.flags.writeable = False
    return array


def check_lines(values: npt.ArrayLike, name: str, *, largest: float = LARGEST_UTILITY) -> Floats:
    """Check and return one number, or one per label, that nobody can change."""
    try:
        array = np.array(values, np.float64)
    except (TypeError, ValueError):
        array = None
    if array is None or values is None:
        raise ValueError(f"{name} must hold numbers; got {values!r:.60}.")
    if array.ndim > 1:
        raise ValueError(f"{name} must be a number or 1-D, one number per label; got {array.ndim}-D.")
    bad = np.flatnonzero(~(np.abs(np.atleast_1d(array)) <= largest))
    if len(bad):
        place = f" for label {bad[0]}" if array.ndim else ""
        raise ValueError(
            f"{name} must hold finite numbers from {-largest:g} to {largest:g}; "
            f"got {np.atleast_1d(array)[bad[0]]}{place}."
        )
    return _frozen(array.astype(np.float32))


def _mask(values: npt.ArrayLike, *, least_dimensions: int = 0) -> Bools:
    array = np.array(values)
    if not least_dimensions <= array.ndim <= 1 or array.dtype != bool:
        raise ValueError(
            f"mask must be a 1-D array of true and false, one per label; got {array.ndim}-D of {array.dtype}."
        )
    return _frozen(array)


def _whole(values: npt.ArrayLike, name: str, *, low: int, high: int = np.iinfo(np.int32).max) -> Ints:
    array = np.asarray(values)
    if array.ndim != 1 or (array.dtype.kind not in "iu" and array.size):
        raise ValueError(f"{name} must be a 1-D array of whole numbers; got {array.ndim}-D of {array.dtype}.")
    bad = array[(array < low) | (array > high)] if array.size else array
    if len(bad):
        raise ValueError(f"{name} must be from {low} to {high}; got {bad[0]}.")
    return _frozen(array.astype(np.int32))


def _quotas(quota: npt.ArrayLike, groups: Ints) -> Ints:
    """Return the quota of each group."""
    n_groups = int(groups.max(initial=-1)) + 1
    array = np.asarray(quota)
    if array.ndim == 0:
        array = np.full(n_groups, array)
    checked = _whole(array, "quota", low=0)
    if len(checked) < n_groups:
        raise ValueError(f"quota must have {n_groups} numbers, one per group; got {len(checked)}.")
    return checked


def _same_length(values: npt.NDArray[Any], labels: Ints, name: str) -> npt.NDArray[Any]:
    if values.ndim and len(values) != len(labels):
        raise ValueError(f"{name} must have {len(labels)} entries, one per given label; got {len(values)}.")
    return values
