"""Judging a network by its own output layer, on texts that it is not trained on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from longleaf.encoders.tuning.network import LabelNetwork, best_labels
from longleaf.encoders.tuning.token_rows import TokenRows
from longleaf.metrics import evaluate

PLACES = (1, 3, 5)
NAMES = tuple(f"{name}@{k}" for name in ("p", "psp") for k in PLACES)


@dataclass(frozen=True, eq=False)
class Judge:
    """Validation texts and their labels.

    Attributes
    ----------
    tokens : TokenRows
    Y : csr_array [texts, labels]
        Labels that are not trained come last.
    inverse_propensity : array [labels]
    most_tokens : int
        How many tokens are read at once.
    shortlist : array of int32 [texts, m], optional
        The labels to rank for each text; all by default. A network that is trained on shortlists knows
        nothing about other labels.
    """

    tokens: TokenRows
    Y: Any
    inverse_propensity: npt.NDArray[np.float64]
    most_tokens: int
    shortlist: npt.NDArray[np.int32] | None = None

    def __call__(self, network: LabelNetwork) -> dict[str, float]:
        """Return p@k and psp@k in percent."""
        found = best_labels(network, self.tokens, max(PLACES), self.most_tokens, self.shortlist)
        measures = evaluate(self.Y, found, inverse_propensity=self.inverse_propensity, k=PLACES)
        return {name: float(measures[name]) for name in NAMES}
