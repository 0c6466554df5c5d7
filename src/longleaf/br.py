"""Binary relevance: one classifier per label."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from longleaf._estimator import LabelEstimator
from longleaf.plt import PLT
from longleaf.tree import LabelTree

DEFAULT_C = {"log": 32.0, "squared-hinge": 1.0}


class BR(LabelEstimator):
    """One classifier per label, and PS-BR when asked with gains: a tree in which all labels are siblings.

    Parameters
    ----------
    loss, C, normalize, bias, threshold, tolerance, max_epochs, positive_weight, weight_bits, propensity, k, \
random_state, n_jobs
        As in `longleaf.PLT`; ``C`` left out is 32 for "log" and 1 for "squared-hinge".
    """

    kind: ClassVar[str] = "br"

    def __init__(
        self,
        loss: str = "log",
        C: float | None = None,
        normalize: bool = True,
        bias: float = 1.0,
        threshold: float = 0.1,
        tolerance: float = 0.01,
        max_epochs: int = 200,
        positive_weight: float = 1.0,
        weight_bits: int = 8,
        propensity: tuple[float, float] = (0.55, 1.5),
        k: int = 5,
        random_state: Any = None,
        n_jobs: int | None = -1,
    ) -> None:
        self.loss = loss
        self.C = C
        self.normalize = normalize
        self.bias = bias
        self.threshold = threshold
        self.tolerance = tolerance
        self.max_epochs = max_epochs
        self.positive_weight = positive_weight
        self.weight_bits = weight_bits
        self.propensity = propensity
        self.k = k
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(
        self,
        X: Any,
        Y: Any,
        sample_weight: npt.ArrayLike | None = None,
        *,
        progress: Callable[[float], None] | None = None,
    ) -> Self:
        """Train one classifier per label; see `longleaf.PLT.fit` for the arguments."""
        _, labels = self._begin_fit(X, Y)
        params = self.get_params(deep=False)
        params["C"] = DEFAULT_C.get(self.loss) if self.C is None else self.C
        flat = LabelTree.flat(np.flatnonzero(self.label_counts_))
        trained = PLT(n_trees=1, tree=flat, **params).fit(X, labels, sample_weight, progress=progress)
        self.trees_, self.weights_, self.training_ = trained.trees_, trained.weights_, trained.training_
        return self
