"""The labels of rows that a map is fitted on, with what the trees and their refined classifiers say."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True, eq=False)
class Candidates:
    """Pairs of a row and a label, row by row, in order of label.

    Attributes
    ----------
    rows, labels : int64 arrays [pairs]
    probability : float32 array [pairs]
        The mean over the trees; where labels are refined, one that does not nominate the label counts 0.
    log_h : float32 array [pairs]
        ``-max(0, 1 - s)^2`` for the margin ``s`` of the refined classifier; 0 where there is none.
    refined : bool
        Whether the labels are refined.
    """

    rows: npt.NDArray[np.int64]
    labels: npt.NDArray[np.int64]
    probability: npt.NDArray[np.float32]
    log_h: npt.NDArray[np.float32]
    refined: bool
