"""The trees of a fitted model, ready to be searched."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from longleaf import _core
from longleaf.propensity import Constants
from longleaf.search.top_k import NONE, log_gain, resolve_gain
from longleaf.trees.label_tree import LabelTree

MOST_REMEMBERED_GAINS = 8

GainsAndBounds = tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]


class PreparedTrees:
    """The native view of trees and weights, and the bounds of the dials that were asked for lately.

    It is made when first needed and never saved or pickled: the arrays of the model are all there is to it.
    """

    def __init__(
        self,
        trees: list[LabelTree],
        weights: list[_core.WeightArrays],
        n_features: int,
        n_labels: int,
        link: int,
    ) -> None:
        self.forest = _core.Forest(
            [tree.first_child for tree in trees],
            [tree.label for tree in trees],
            list(weights),
            n_features,
            n_labels,
            link,
        )
        self._remembered: dict[tuple[float | None, float, float], GainsAndBounds] = {}

    def gains_and_bounds(
        self,
        label_counts: npt.NDArray[np.int64],
        n_rows: int,
        tail: float | None,
        gain: npt.ArrayLike | None,
        constants: Constants,
    ) -> GainsAndBounds:
        """Return log gains per label and bounds per node; what depends on the dial alone is made once."""
        key = (tail, *constants)
        if gain is None and key in self._remembered:
            return self._remembered[key]
        gains = resolve_gain(label_counts, n_rows, tail=tail, gain=gain, propensity=constants)
        if gains is None:
            return NONE, NONE
        logs = log_gain(gains)
        result = logs, self.forest.log_bounds(logs)
        if gain is None:
            while len(self._remembered) >= MOST_REMEMBERED_GAINS:
                self._remembered.pop(next(iter(self._remembered)))
            self._remembered[key] = result
        return result
