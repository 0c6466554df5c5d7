"""The two regressions: what they make of the trees' probability, as a slope and an offset on its log-odds.

For a label without a match, with ``n`` rows in training,

    log-odds = (a0 + a1 log(1 + n) + a2 [n = 0]) * logit(P) + b0 + b1 log(1 + n) + b2 [n = 0]

so every label has a slope and an offset of its own, which do not depend on the row: the search bounds what
they make of a node's probability. For a label with a match the numbers that describe the match add to both.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from longleaf.fusion.evidence import FEATURES

Doubles = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

LIMIT = float(np.log((1 - 1e-6) / 1e-6))
"""Log-odds of the trees are cut off here, as in the search."""
LEAST_SLOPE = 0.05
OF_TREE = 6
OF_MATCH = OF_TREE + len(FEATURES) + 3
PRECISION, IN_FIRST = FEATURES.index("log_precision"), FEATURES.index("in_first")


@dataclass(frozen=True, eq=False)
class FusionWeights:
    """The weights of both regressions.

    Attributes
    ----------
    tree : float64 array [OF_TREE]
        For labels without a match: the columns of `tree_columns`.
    match : float64 array [OF_MATCH]
        For labels with one: the columns of `match_columns`.
    most : float
        The largest ``log(1 + n)`` that they were fitted to; beyond, labels count as this frequent.
    """

    tree: Doubles
    match: Doubles
    most: float

    def of_labels(self, label_counts: Ints) -> tuple[Doubles, Doubles]:
        """Return slope and offset of each label where it has no match."""
        return self._line(self.tree, label_counts, LEAST_SLOPE)

    def of_matches(self, label_counts: Ints, features: Doubles) -> tuple[Doubles, Doubles]:
        """Return slope and offset of matches, given the counts of their labels."""
        slope, offset = self._line(self.match, label_counts, -np.inf)
        plain, title, unseen_precision, unseen_title = np.split(
            self.match[OF_TREE:], [len(FEATURES), len(FEATURES) + 1, len(FEATURES) + 2]
        )
        unseen = label_counts == 0
        slope = slope + title * features[:, IN_FIRST]
        offset = offset + features @ plain
        offset = offset + unseen * (
            unseen_precision * features[:, PRECISION] + unseen_title * features[:, IN_FIRST]
        )
        return np.maximum(slope, 0.0), offset

    def _line(self, weights: Doubles, label_counts: Ints, least: float) -> tuple[Doubles, Doubles]:
        frequency, unseen = frequencies(label_counts, self.most)
        constant, odds, of_count, of_unseen, odds_unseen, odds_count = weights[:OF_TREE]
        slope = odds + odds_unseen * unseen + odds_count * frequency
        return np.maximum(slope, least), constant + of_count * frequency + of_unseen * unseen


def frequencies(label_counts: Ints, most: float = np.inf) -> tuple[Doubles, Doubles]:
    """Return the logarithm of each count, and whether it is 0."""
    return np.minimum(np.log1p(np.maximum(label_counts, 0)), most), (label_counts == 0).astype(np.float64)


def log_odds(probability: npt.NDArray[np.float32]) -> Doubles:
    """Return the log-odds of probabilities, between -LIMIT and LIMIT."""
    p = np.clip(probability.astype(np.float64), 1e-6, 1 - 1e-6)
    odds: Doubles = np.clip(np.log(p) - np.log1p(-p), -LIMIT, LIMIT)
    return odds


def tree_columns(odds: Doubles, label_counts: Ints) -> Doubles:
    """Return the columns of the regression for labels without a match, [pairs, OF_TREE]."""
    frequency, unseen = frequencies(label_counts)
    return np.column_stack([np.ones(len(odds)), odds, frequency, unseen, odds * unseen, odds * frequency])


def match_columns(odds: Doubles, label_counts: Ints, features: Doubles) -> Doubles:
    """Return the columns of the regression for labels with a match, [pairs, OF_MATCH]."""
    title, unseen = features[:, IN_FIRST], (label_counts == 0).astype(np.float64)
    extra = np.column_stack([odds * title, unseen * features[:, PRECISION], unseen * title])
    return np.hstack([tree_columns(odds, label_counts), features, extra])
