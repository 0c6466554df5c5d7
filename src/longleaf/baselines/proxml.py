"""ProXML: robust one-vs-rest by the l1 norm.

The problem: labels with few rows, whose words in the test rows differ from those in the training rows. Given
are rows ``x_i`` of unit length and, for each label, ``y_i = 1`` where row i has it and -1 elsewhere. A
classifier that withstands the worst change of the features within a box is one with an l1 norm in its
objective:

    minimise over w   |w|_1 + C sum_i c_i max(0, 1 - y_i w·x_i)²,

where ``c_i`` is 1 for negative rows and the label's weight for positive ones. The resulting weights are
sparse. Source: Babbar and Schölkopf, "Data scarcity, robustness and extreme multi-label classification",
Machine Learning 108, 2019. They minimise it by proximal gradient steps; the implementation in
``native/baselines`` uses proximal Newton steps, to a tolerance at which both give the same minimum.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

from longleaf.br import flat_trees
from longleaf.estimator import LabelEstimator
from longleaf.training.data import DataSizes
from longleaf.training.job import TreeSource
from longleaf.training.positive_weight import PROPENSITY
from longleaf.training.solver import SolverSettings


class ProXML(LabelEstimator):
    """One l1-regularised squared-hinge classifier per label, positive rows weighted by ``1 / p_j``.

    Babbar and Schölkopf, "Data scarcity, robustness and extreme multi-label classification", Machine Learning
    108, 2019. Their published code trains with weights of 1 and ranks by gains for psp@k, which corresponds
    to ``ProXML(positive_weight=1.0)`` with ``tail=1`` at prediction.

    Parameters
    ----------
    C : float
        Cost of an error.
    normalize, bias, threshold, weight_bits, propensity, k, random_state
        As in `longleaf.PLT`; the weights are already sparse, so ``threshold`` is 0.
    tolerance, max_epochs
        The duality gap, as a share of the objective, at which a classifier is finished, and the maximum
        number of Newton steps.
    n_jobs : int or None
        Threads for training and search; the model is the same for any number.
    positive_weight : float or "propensity"
        Cost of an error on a positive row, as a multiple of one on a negative row; "propensity" is the
        label's inverse propensity with the constants ``propensity``.

    Examples
    --------
    >>> model = ProXML(random_state=1).fit([[1.0, 0.0], [0.9, 0.1], [0.0, 1.0]], [[0], [0], [1]])
    >>> model.top_k([[0.0, 1.0]], k=1).labels
    array([[1]], dtype=int32)
    """

    kind: ClassVar[str] = "proxml"
    trains_by_units: ClassVar[bool] = False
    loss: str = "squared-hinge"
    hinge_power: int = 2  # without gains, the ranking does not depend on it
    default_costs: ClassVar[Mapping[str, float]] = {"squared-hinge": 1.0}
    named_positive_weights: ClassVar[tuple[str, ...]] = (PROPENSITY,)

    def __init__(
        self,
        C: float | None = 1.0,
        normalize: bool = True,
        bias: float = 1.0,
        threshold: float = 0.0,
        tolerance: float = 0.01,
        max_epochs: int = 1000,
        positive_weight: float | str = PROPENSITY,
        weight_bits: int = 8,
        propensity: tuple[float, float] = (0.55, 1.5),
        k: int = 5,
        random_state: Any = None,
        n_jobs: int | None = -1,
    ) -> None:
        super().__init__(
            loss=self.loss,
            C=C,
            normalize=normalize,
            bias=bias,
            threshold=threshold,
            tolerance=tolerance,
            max_epochs=max_epochs,
            positive_weight=positive_weight,
            weight_bits=weight_bits,
            hinge_power=self.hinge_power,
            propensity=propensity,
            k=k,
            random_state=random_state,
            n_jobs=n_jobs,
        )

    def _tree_source(self) -> TreeSource:
        return TreeSource(grow=flat_trees)

    def _weigh(self, settings: SolverSettings, sizes: DataSizes) -> SolverSettings:
        if self.positive_weight != PROPENSITY:
            return settings
        return replace(settings, label_weight=self._inverse_propensities(sizes))

    def _solver_settings(self) -> SolverSettings:
        return replace(super()._solver_settings(), l1=True)
