"""The trees of a fitted model, ready to be searched."""

from __future__ import annotations

from typing import TypedDict

import numpy as np
import numpy.typing as npt

from longleaf import _core
from longleaf.propensity import Constants
from longleaf.search.score_map import MapArguments, ScoreMap
from longleaf.search.top_k import NONE, log_gain, resolve_gain
from longleaf.trees.label_tree import LabelTree
from longleaf.weights.chunks import WeightedTree

MOST_REMEMBERED_GAINS = 8

Floats = npt.NDArray[np.float32]


class _Bounds(TypedDict, total=False):
    map_bounds: Floats


class BoundArguments(MapArguments, _Bounds):
    """Gains, a score map if there is one, and their bounds, as native code calls them."""

    log_gain: Floats
    log_bounds: Floats


class PreparedTrees:
    """The native view of trees and weights, and the bounds of the dials and maps that were asked for lately.

    It is made when first needed and never saved or pickled: the arrays of the model are all there is to it.
    """

    def __init__(
        self,
        trees: list[LabelTree],
        weights: list[_core.WeightArrays],
        n_features: int,
        n_labels: int,
        link: int,
        refined: WeightedTree | None = None,
    ) -> None:
        own = trees
        if refined is not None:  # native code knows them as the last tree
            trees, weights = [*trees, refined.tree], [*weights, refined.weights]
        self.forest = _core.Forest(
            [tree.first_child for tree in trees],
            [tree.label for tree in trees],
            list(weights),
            n_features,
            n_labels,
            link,
            refined=refined is not None,
        )
        self.has_leaves = np.zeros(n_labels, bool)
        for tree in own:
            self.has_leaves[tree.labels] = True
        self._refined = refined is not None
        self._remembered: dict[tuple[float | None, float, float, ScoreMap | None], BoundArguments] = {}

    def bounds(
        self,
        label_counts: npt.NDArray[np.int64],
        n_rows: int,
        tail: float | None,
        gain: npt.ArrayLike | None,
        constants: Constants,
        score_map: ScoreMap | None = None,
    ) -> BoundArguments:
        """Return log gains per label, maps and bounds, as native code calls them.

        What depends on the dial and the map alone is made once.
        """
        key = (tail, *constants, score_map)
        if gain is None and key in self._remembered:
            return self._remembered[key]
        gains = resolve_gain(label_counts, n_rows, tail=tail, gain=gain, propensity=constants)
        if gains is None and score_map is None:
            return {"log_gain": NONE, "log_bounds": NONE}
        logs = NONE if gains is None else log_gain(gains)
        result: BoundArguments
        if score_map is None:
            result = {"log_gain": logs, "log_bounds": self.forest.log_bounds(logs)}
        else:
            # no bounds lead the search for nominees
            bounds: _Bounds = {} if self._refined else {"map_bounds": self._score_bounds(logs, score_map)}
            result = {"log_gain": logs, "log_bounds": NONE, **score_map.arguments, **bounds}
        if gain is None:
            while len(self._remembered) >= MOST_REMEMBERED_GAINS:
                self._remembered.pop(next(iter(self._remembered)))
            self._remembered[key] = result
        return result

    def _score_bounds(self, log_gains: Floats, score_map: ScoreMap) -> Floats:
        curves = score_map.evidence.ravel(), score_map.result.ravel()
        return self.forest.score_bounds(log_gains, score_map.slope, score_map.offset, *curves)
