"""Binary relevance: one classifier per label, plain or as DiSMEC and PW-DiSMEC train it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from longleaf.estimator import LabelEstimator
from longleaf.training.data import DataSizes
from longleaf.training.job import TreeSource
from longleaf.training.positive_weight import BALANCED, INVERSE_PRIOR, PROPENSITY, balanced_share
from longleaf.training.solver import SolverSettings
from longleaf.trees.label_tree import LabelTree


class BR(LabelEstimator):
    """One classifier per label, and PS-BR when asked with gains: a tree in which all labels are siblings.

    Parameters
    ----------
    loss, C, normalize, bias, threshold, tolerance, max_epochs, weight_bits, propensity, k, \
random_state, n_jobs
        As in `longleaf.PLT`; ``C`` is by default 32 for "log" and 1 for "squared-hinge".
    positive_weight : float, "propensity", "propensity-balanced" or "inverse-prior"
        What an error on a positive row costs, as a multiple of one on a negative row. "propensity" is
        ``2 / p_j - 1`` for label j, with its propensity ``p_j`` by the constants ``propensity``;
        "propensity-balanced" is that times ``0.1 / (1 - 0.9**n_j)``, 1 for a label of one row and down to 0.1
        for frequent ones; "inverse-prior" is ``n / n_j``, with ``n_j`` of ``n`` rows. Such a model has the
        correction in its scores: asking it with ``tail`` would correct twice.
    """

    kind: ClassVar[str] = "br"
    default_costs: ClassVar[Mapping[str, float]] = {"log": 32.0, "squared-hinge": 1.0}
    named_positive_weights: ClassVar[tuple[str, ...]] = (PROPENSITY, BALANCED, INVERSE_PRIOR)

    @classmethod
    def dismec(cls, **changes: Any) -> Self:
        """Return DiSMEC: squared hinge, C=1, and weights below 0.01 dropped.

        Babbar and Schölkopf, "DiSMEC: Distributed sparse machines for extreme multi-label classification",
        WSDM 2017. For each label j, with ``y_i = 1`` where row i has it and -1 elsewhere,

            minimise over w   |w|² / 2 + C sum_i max(0, 1 - y_i w·x_i)².

        Examples
        --------
        >>> BR.dismec(C=2.0).get_params()["threshold"]
        0.01
        """
        settings: dict[str, Any] = {"loss": "squared-hinge", "C": 1.0, "threshold": 0.01}
        return cls(**(settings | changes))

    @classmethod
    def pw_dismec(cls, *, class_balanced: bool = False, **changes: Any) -> Self:
        """Return PW-DiSMEC: DiSMEC with each positive row of label j weighted by ``2 / p_j - 1``.

        Qaraei, Schultheis, Gupta and Babbar, "Convex surrogates for unbiased loss functions in extreme
        classification with missing labels", WWW 2021. If a label is observed with probability ``p``, the
        unbiased estimate of a loss ``l`` is ``l(+) / p + (1 - 1/p) l(-)`` on the observed rows; for the 0-1
        loss, where ``l(-) = 1 - l(+)``, that is ``(2/p - 1) l(+)`` and a constant. Its surrogate replaces the
        0-1 loss by the squared hinge, so that it stays convex and bounded below.

        ``class_balanced`` selects PW-DiSMEC-cb, the variant in the tables of the PS-PLT paper: the weight is
        multiplied by the class-balanced share ``(1 - β) / (1 - β^n)`` of Cui et al. (CVPR 2019) for a label
        of n rows, with β = 0.9 as in the authors' code. Positive rows of frequent labels then weigh less than
        negative ones, and those of rare labels stay as they are.

        Examples
        --------
        >>> BR.pw_dismec(class_balanced=True).positive_weight
        'propensity-balanced'
        """
        return cls.dismec(**({"positive_weight": BALANCED if class_balanced else PROPENSITY} | changes))

    def _tree_source(self) -> TreeSource:
        return TreeSource(grow=flat_trees)

    def _weigh(self, settings: SolverSettings, sizes: DataSizes) -> SolverSettings:
        if self.positive_weight not in (PROPENSITY, BALANCED):
            return settings
        weight = 2.0 * self._inverse_propensities(sizes) - 1.0
        if self.positive_weight == BALANCED:
            weight *= balanced_share(sizes.label_counts)
        return replace(settings, label_weight=weight)


def flat_trees(counts: npt.NDArray[np.int64], seeds: list[int]) -> list[LabelTree]:
    """Return trees in which all labels that occur are siblings."""
    return [LabelTree.flat(np.flatnonzero(counts))] * len(seeds)
