"""Binary relevance: one classifier per label."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import numpy as np
import scipy.sparse as sp

from longleaf._estimator import LabelEstimator
from longleaf._validation import Rows
from longleaf.tree import LabelTree


class BR(LabelEstimator):
    """One classifier per label, and PS-BR when asked with gains: a tree in which all labels are siblings.

    Parameters
    ----------
    loss, C, normalize, bias, threshold, tolerance, max_epochs, positive_weight, weight_bits, propensity, k, \
random_state, n_jobs
        As in `longleaf.PLT`; ``C`` left out is 32 for "log" and 1 for "squared-hinge".
    """

    kind: ClassVar[str] = "br"
    default_costs: ClassVar[Mapping[str, float]] = {"log": 32.0, "squared-hinge": 1.0}

    def _build_trees(
        self, rows: Rows, labels: sp.csr_array, seeds: list[int], threads: int
    ) -> list[LabelTree]:
        return [LabelTree.flat(np.flatnonzero(self.label_counts_))] * len(seeds)
