"""The trees of a fitted model, ready to be searched."""

from __future__ import annotations

from typing import TypedDict
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from longleaf import _core
from longleaf.propensity import Constants
from longleaf.search.score_map import MapArguments, ScoreMap
from longleaf.search.top_k import NONE, log_gain, resolve_gain
from longleaf.search.utility import Utility
from longleaf.trees.label_tree import LabelTree
from longleaf.weights.chunks import WeightedTree

MOST_REMEMBERED_GAINS = 8

Floats = npt.NDArray[np.float32]


class _Bounds(TypedDict, total=False):
    map_bounds: Floats
    utility: _core.Utility


class BoundArguments(MapArguments, _Bounds):
    """Gains or a utility, a score map if there is one, and their bounds, as native code calls them."""

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
        self._n_labels = n_labels
        self._utilities: WeakKeyDictionary[Utility, tuple[ScoreMap | None, _core.Utility]] = (
            WeakKeyDictionary()
        )
        self._remembered: dict[tuple[float | None, float, float, ScoreMap | None, bool], BoundArguments] = {}

    def bounds(
        self,
        label_counts: npt.NDArray[np.int64],
        n_rows: int,
        tail: float | None,
        gain: npt.ArrayLike | None,
        constants: Constants,
        score_map: ScoreMap | None = None,
        certified: bool = False,
    ) -> BoundArguments:
        """Return log gains per label, maps and bounds, as native code calls them.

        What depends on the dial and the map alone is made once. ``certified``: whether a search that may
        end early needs bounds to say what it may have missed, also where no bounds lead it.
        """
        certified = certified or not self._refined  # no bounds lead the search for nominees
        key = (tail, *constants, score_map, certified)
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
            own: _Bounds = {"map_bounds": self._score_bounds(logs, score_map)} if certified else {}
            result = {"log_gain": logs, "log_bounds": NONE, **score_map.arguments, **own}
        if gain is None:
            while len(self._remembered) >= MOST_REMEMBERED_GAINS:
                self._remembered.pop(next(iter(self._remembered)))
            self._remembered[key] = result
        return result

    def utility(self, utility: Utility, score_map: ScoreMap | None) -> BoundArguments:
        """Return a utility, a map and the bounds; they are made once, or of those it differs little from."""
        maps: MapArguments = {} if score_map is None else score_map.arguments
        found = self._utilities.get(utility)
        if found is None or found[0] is not score_map:
            found = self._utilities[utility] = score_map, self._prepared_utility(utility, score_map)
            utility.without_change()  # so that those it was made of need not stay
        own: _Bounds = {"utility": found[1]}
        return {"log_gain": NONE, "log_bounds": NONE, **maps, **own}

    def _prepared_utility(self, utility: Utility, score_map: ScoreMap | None) -> _core.Utility:
        slope, offset = (None, None) if score_map is None else (score_map.slope, score_map.offset)
        if utility.change is not None:
            before, labels = utility.change
            known = self._utilities.get(before)
            if known is not None and known[0] is score_map:
                a, b = utility.lines(self._n_labels, labels)
                return known[1].with_lines(self.forest, labels, a, b, slope=slope, offset=offset)
        a, b = utility.lines(self._n_labels)
        group, quota = utility.quotas or (None, None)
        evidence, result = (
            (None, None) if score_map is None else (score_map.evidence.ravel(), score_map.result.ravel())
        )
        return _core.Utility(
            self.forest,
            a,
            b,
            group=group,
            quota=quota,
            slope=slope,
            offset=offset,
            evidence=evidence,
            result=result,
        )

    def _score_bounds(self, log_gains: Floats, score_map: ScoreMap) -> Floats:
        curves = score_map.evidence.ravel(), score_map.result.ravel()
        return self.forest.score_bounds(log_gains, score_map.slope, score_map.offset, *curves)
