"""Sensitivity of psp@k, and of the order of two models, to the constants of the propensity model."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from longleaf._validation import LabelsLike, check_per_label
from longleaf.metrics._hits import check_k, check_problem, find_hits, first
from longleaf.metrics._ranking import best_gains, scored_hits
from longleaf.propensity import check_constants, inverse_propensity_from_counts

Floats = npt.NDArray[np.float64]

GRID_A = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.55, 0.6, 0.7, 0.8, 0.9, 1.0)
GRID_B = (0.1, 0.2, 0.4, 0.8, 1.5, 2.6, 5.0, 10.0)


@dataclass(frozen=True, eq=False)
class Sensitivity:
    """psp@k of two rankings over a grid of constants, in percent.

    Attributes
    ----------
    a, b : float64 array
        The grid: values of A and of B.
    psp_a, psp_b : float64 array [values of A, values of B]
        The metric of the first and of the second ranking.
    """

    a: Floats
    b: Floats
    psp_a: Floats
    psp_b: Floats

    @property
    def difference(self) -> Floats:
        """The lead of the second ranking [values of A, values of B]."""
        return self.psp_b - self.psp_a

    @property
    def order_changes(self) -> bool:
        """Whether each of the two leads somewhere on the grid, so that the order depends on the constants."""
        return bool((self.difference > 0).any() and (self.difference < 0).any())

    def draw(self, axes: Any) -> Any:
        """Draw the difference over the grid on matplotlib axes, with a line where the order changes.

        Returns the mappable for ``figure.colorbar``.
        """
        limit = float(np.abs(self.difference).max()) or 1.0
        picture = axes.pcolormesh(
            self.b, self.a, self.difference, cmap="PuOr", vmin=-limit, vmax=limit, shading="nearest"
        )
        if self.order_changes:
            axes.contour(self.b, self.a, self.difference, levels=[0.0], colors="black")
        axes.set_xscale("log")
        axes.set_xlabel("B")
        axes.set_ylabel("A")
        return picture


def psp_sensitivity(
    Y_true: LabelsLike,
    top_a: Any,
    top_b: Any,
    counts: npt.ArrayLike,
    n_rows: int,
    *,
    a: Iterable[float] = GRID_A,
    b: Iterable[float] = GRID_B,
    k: Iterable[int] = (1, 3, 5),
) -> dict[str, Sensitivity]:
    """Evaluate two rankings by psp@k for many constants A and B of the propensity model.

    Parameters
    ----------
    Y_true : sparse or dense matrix [rows, labels], or list of label lists
        Observed labels of the test rows.
    top_a, top_b : TopK, or int array [rows, width]
        The two rankings. They are fixed; only the constants of the metric vary.
    counts, n_rows : array [labels], int
        Training rows with each label, and in total, as in ``label_counts_`` and ``n_rows_``.
    a, b : floats
        The values of A and of B, at least two each, ascending.
    k : ints
        Numbers of predictions to evaluate.

    Returns
    -------
    dict of str to Sensitivity
        ``psp@k``, normalised, for every k.

    Examples
    --------
    >>> frequent, rare = [[0], [0], [0]], [[1], [1], [1]]
    >>> found = psp_sensitivity([[0], [0], [1]], frequent, rare, counts=[90, 1], n_rows=100, k=[1])
    >>> found["psp@1"].order_changes
    True
    """
    grid_a, grid_b = _check_grid(a, "a"), _check_grid(b, "b")
    for one in grid_a:
        for other in grid_b:
            check_constants((float(one), float(other)), "the grid")
    rows_with = check_per_label(counts, None, "counts")
    places = check_k(k)
    width = max(places)
    (truth, of_a), (_, of_b) = (
        check_problem(Y_true, top, len(rows_with), name=name)
        for name, top in (("top_a", top_a), ("top_b", top_b))
    )
    check_per_label(rows_with, truth.shape[1], "counts")
    rankings = [first(of_a, width), first(of_b, width)]
    hits = [find_hits(truth, labels) for labels in rankings]
    psp = np.zeros((2, len(grid_a), len(grid_b), width))
    for i, j in np.ndindex(len(grid_a), len(grid_b)):
        gains = inverse_propensity_from_counts(rows_with, n_rows, float(grid_a[i]), float(grid_b[j]))
        best = best_gains(truth, gains, width).sum(axis=0).cumsum()
        for which in range(2):
            gained = scored_hits(hits[which], rankings[which], gains).sum(axis=0).cumsum()
            psp[which, i, j] = 100.0 * gained / np.where(best > 0, best, 1.0)  # 0 if nothing can be found
    return {f"psp@{at}": Sensitivity(grid_a, grid_b, *psp[..., at - 1]) for at in places}


def _check_grid(values: Iterable[float], name: str) -> Floats:
    try:
        grid = np.asarray(list(values), np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be at least two ascending numbers; got {values!r}.") from None
    if grid.ndim != 1 or len(grid) < 2 or not (np.diff(grid) > 0).all():
        raise ValueError(f"{name} must be at least two ascending numbers; got {grid.tolist()}.")
    return grid
