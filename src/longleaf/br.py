"""Binary relevance: one classifier per label, plain or as DiSMEC and PW-DiSMEC train it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from longleaf._estimator import LabelEstimator
from longleaf._validation import Rows
from longleaf.propensity import check_constants, inverse_propensity_from_counts
from longleaf.tree import LabelTree

PROPENSITY = "propensity"


class BR(LabelEstimator):
    """One classifier per label, and PS-BR when asked with gains: a tree in which all labels are siblings.

    Parameters
    ----------
    loss, C, normalize, bias, threshold, tolerance, max_epochs, weight_bits, propensity, k, \
random_state, n_jobs
        As in `longleaf.PLT`; ``C`` left out is 32 for "log" and 1 for "squared-hinge".
    positive_weight : float or "propensity"
        What an error on a positive row costs, as a multiple of one on a negative row. "propensity" is
        ``2 / p_j - 1`` for label j, with its propensity ``p_j`` by the constants ``propensity``. Such a model
        has the correction in its scores: asking it with ``tail`` would correct twice.
    """

    kind: ClassVar[str] = "br"
    default_costs: ClassVar[Mapping[str, float]] = {"log": 32.0, "squared-hinge": 1.0}

    @classmethod
    def dismec(cls, **changes: Any) -> Self:
        """Give DiSMEC: squared hinge, C=1, and weights below 0.01 dropped.

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
    def pw_dismec(cls, **changes: Any) -> Self:
        """Give PW-DiSMEC: DiSMEC with each positive row of label j weighted by ``2 / p_j - 1``.

        Qaraei, Schultheis, Gupta and Babbar, "Convex surrogates for unbiased loss functions in extreme
        classification with missing labels", WWW 2021. Where a label is noted with probability ``p`` only,
        the unbiased estimate of a loss ``l`` is ``l(+) / p + (1 - 1/p) l(-)`` on the noted rows; for the 0-1
        loss, where ``l(-) = 1 - l(+)``, that is ``(2/p - 1) l(+)`` and a constant. Its surrogate puts the
        squared hinge in place of the 0-1 loss, so that it stays convex and bounded below.
        """
        return cls.dismec(**({"positive_weight": PROPENSITY} | changes))

    def _build_trees(
        self, rows: Rows, labels: sp.csr_array, seeds: list[int], threads: int
    ) -> list[LabelTree]:
        return [LabelTree.flat(np.flatnonzero(self.label_counts_))] * len(seeds)

    def _check_positive_weight(self) -> float:
        if not isinstance(self.positive_weight, str):
            return super()._check_positive_weight()
        if self.positive_weight != PROPENSITY:
            raise ValueError(
                f'positive_weight must be a number above 0 or "{PROPENSITY}"; got {self.positive_weight!r}.'
            )
        return 1.0

    def _label_weight(self) -> npt.NDArray[np.float64] | None:
        if self.positive_weight != PROPENSITY:
            return None
        a, b = check_constants(self.propensity)
        return 2.0 * inverse_propensity_from_counts(self.label_counts_, self.n_rows_, a=a, b=b) - 1.0
