"""The input of a report: one or two models, and rows with true labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from longleaf._validation import check_labels
from longleaf.estimator import LabelEstimator
from longleaf.metrics._frequency import frequency_bins
from longleaf.propensity import Constants, inverse_propensity_from_counts
from longleaf.tagger import Tagger
from longleaf.text.fields import Text

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Side:
    """A model and the rows as it reads them.

    Attributes
    ----------
    name : str
        Its name in the report, such as the path of its folder.
    model : PLT or BR
    X : matrix [rows, features]
    number : int64 array [labels of the model]
        The common number of each of its labels.
    tagger : Tagger, optional
        For a model of texts.
    texts : list of str or mapping
        The texts or records of the rows, for a tagger.
    """

    name: str
    model: LabelEstimator
    X: Any
    number: Ints
    tagger: Tagger | None = None
    texts: Sequence[Text] = ()


@dataclass(frozen=True, eq=False)
class Problem:
    """Rows and true labels, in a numbering common to all sides: labels of the first model come first.

    Attributes
    ----------
    data : str
        The name of the rows in the report.
    sides : tuple of one or two Side
    truth : csr_array [rows, labels]
    names : list of str
        The name of every label.
    ids : list of str or None
        The id of every row that has one.
    propensity : Constants
        A and B, for prediction and evaluation.
    places : ints
        Ranks at which suggestions are evaluated, ascending.
    """

    data: str
    sides: tuple[Side, ...]
    truth: sp.csr_array
    names: Sequence[str]
    ids: Sequence[str | None]
    propensity: Constants
    places: tuple[int, ...] = (1, 3, 5)

    def __post_init__(self) -> None:
        """Sort the true labels, because hits are looked up in them."""
        object.__setattr__(self, "truth", check_labels(self.truth, name="truth"))

    @property
    def k(self) -> int:
        """The largest rank that is evaluated."""
        return self.places[-1]

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return int(self.truth.shape[0])

    @cached_property
    def counts(self) -> Ints:
        """Training rows of each label, as seen by the first model; 0 for labels unknown to it."""
        counts = np.zeros(self.truth.shape[1], np.int64)
        counts[self.sides[0].number] = self.sides[0].model.label_counts_
        return counts

    @cached_property
    def bins(self) -> Ints:
        """0 for head, 1 for torso, 2 for tail, 3 for unseen labels."""
        return frequency_bins(self.counts.astype(np.float64))

    @cached_property
    def inverse_propensity(self) -> Floats:
        """The inverse propensity of each label for the evaluation, the same for both sides."""
        return self.inverse_propensity_with(self.propensity)

    def inverse_propensity_with(self, constants: tuple[float, float]) -> Floats:
        """Return the inverse propensities for other constants."""
        return inverse_propensity_from_counts(self.counts, self.sides[0].model.n_rows_, *constants)
