"""The two regressions: what they make of the trees' probability, as a slope and an offset on its log-odds.

For a label without a match, with ``n`` rows in training,

    z = (a0 + a1 log(1 + n) + a2 [n = 0]) * e(logit(P)) + b0 + b1 log(1 + n) + b2 [n = 0] + c log h

so every label has a slope and an offset of its own, which do not depend on the row. ``e``, ``log h`` and what
becomes of ``z`` are those of `longleaf.calibration`. For a label with a match the numbers that describe the
match add to slope and offset, and so do, where names are known by what they mean, those that say how near the
label's names are.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from longleaf.fusion.evidence import FEATURES

Doubles = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

LEAST_SLOPE = 0.05
OF_TREE = 6
OF_MATCH = OF_TREE + len(FEATURES) + 3
OF_NEAR = 7
PRECISION, IN_FIRST = FEATURES.index("log_precision"), FEATURES.index("in_first")


@dataclass(frozen=True, eq=False)
class FusionWeights:
    """The weights of both regressions.

    Attributes
    ----------
    tree : float64 array [OF_TREE]
        For labels without a match: the columns of `tree_columns`.
    match : float64 array [OF_MATCH], or [OF_MATCH + OF_NEAR]
        For labels with one, or with a name that is near: the columns of `match_columns`.
    refined : float64 array [2]
        What ``log h`` counts for labels without and with a match; 0 if labels are not refined.
    absent : float64 array [2]
        What trees and refined classifiers say on average of a label with a match, ``e`` and ``log h``; it is
        assumed of labels that no tree has.
    evidence, result : float64 arrays [2, points]
        The curves, as `longleaf.search.ScoreMap` has them.
    most : float
        The largest ``log(1 + n)`` that they were fitted to; beyond, labels count as this frequent.
    """

    tree: Doubles
    match: Doubles
    refined: Doubles
    absent: Doubles
    evidence: Doubles
    result: Doubles
    most: float

    def of_labels(self, label_counts: Ints) -> tuple[Doubles, Doubles]:
        """Return slope and offset of each label where it has no match."""
        return self._line(self.tree, label_counts, LEAST_SLOPE)

    def of_matches(self, label_counts: Ints, features: Doubles) -> tuple[Doubles, Doubles]:
        """Return slope and offset of matches, given the counts of their labels."""
        slope, offset = self._line(self.match, label_counts, -np.inf)
        plain, title, unseen_precision, unseen_title = np.split(
            self.match[OF_TREE:OF_MATCH], [len(FEATURES), len(FEATURES) + 1, len(FEATURES) + 2]
        )
        near, features = features[:, len(FEATURES) :], features[:, : len(FEATURES)]
        unseen = label_counts == 0
        slope = slope + title * features[:, IN_FIRST]
        offset = offset + features @ plain
        offset = offset + unseen * (
            unseen_precision * features[:, PRECISION] + unseen_title * features[:, IN_FIRST]
        )
        if near.shape[1]:
            more = near_columns(np.ones(len(near)), label_counts, near)
            slope = slope + more[:, OF_ODDS] * self.match[OF_MATCH + OF_ODDS]
            more[:, OF_ODDS] = 0.0
            offset = offset + more @ self.match[OF_MATCH:]
        return np.maximum(slope, 0.0), offset

    def of_absent(self, slope: Doubles, offset: Doubles) -> Doubles:
        """Return the offset of matches whose labels no tree has, given their lines otherwise."""
        assumed: Doubles = offset + slope * self.absent[0] + self.refined[1] * self.absent[1]
        return assumed

    def _line(self, weights: Doubles, label_counts: Ints, least: float) -> tuple[Doubles, Doubles]:
        frequency, unseen = frequencies(label_counts, self.most)
        constant, odds, of_count, of_unseen, odds_unseen, odds_count = weights[:OF_TREE]
        slope = odds + odds_unseen * unseen + odds_count * frequency
        return np.maximum(slope, least), constant + of_count * frequency + of_unseen * unseen


def frequencies(label_counts: Ints, most: float = np.inf) -> tuple[Doubles, Doubles]:
    """Return the logarithm of each count, and whether it is 0."""
    return np.minimum(np.log1p(np.maximum(label_counts, 0)), most), (label_counts == 0).astype(np.float64)


def tree_columns(evidence: Doubles, label_counts: Ints) -> Doubles:
    """Return the columns of the regression for labels without a match, [pairs, OF_TREE]."""
    frequency, unseen = frequencies(label_counts)
    products = evidence * unseen, evidence * frequency
    return np.column_stack([np.ones(len(evidence)), evidence, frequency, unseen, *products])


def match_columns(evidence: Doubles, label_counts: Ints, features: Doubles) -> Doubles:
    """Return the columns for labels with a match, [pairs, OF_MATCH], or with `OF_NEAR` more."""
    near, features = features[:, len(FEATURES) :], features[:, : len(FEATURES)]
    title, unseen = features[:, IN_FIRST], (label_counts == 0).astype(np.float64)
    extra = np.column_stack([evidence * title, unseen * features[:, PRECISION], unseen * title])
    more = [near_columns(evidence, label_counts, near)] if near.shape[1] else []
    return np.hstack([tree_columns(evidence, label_counts), features, extra, *more])


OF_ODDS = 3
"""The place of the column that is a slope and no offset."""


def near_columns(evidence: Doubles, label_counts: Ints, near: Doubles) -> Doubles:
    """Return the columns for how near the names of a label are, [pairs, OF_NEAR]."""
    frequency, unseen = frequencies(label_counts)
    cosine, only = near.T
    return np.column_stack(
        [cosine, cosine * unseen, only, only * evidence, only * unseen, only * frequency, only * cosine]
    )
