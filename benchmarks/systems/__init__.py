"""One adapter for each system: how a user of it trains, saves, loads and predicts."""

from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

Options = dict[str, Any]


class System(ABC):
    """What the worker asks of a system.

    Parameters
    ----------
    params : dict
        The training setting, in the system's own words.
    threads : int
        Threads for training.
    """

    distribution: str = ""

    def __init__(self, params: Options, threads: int) -> None:
        self.params = params
        self.threads = threads

    def prepare(self, folder: Path, X: sp.csr_matrix, Y: sp.csr_matrix) -> None:
        """Bring the training data into the form that the system trains from. Not timed."""
        self.X, self.Y = X, Y

    @abstractmethod
    def train(self, model: Path) -> None:
        """Train on what ``prepare`` was given."""

    @abstractmethod
    def save(self, model: Path) -> None:
        """Write the trained model to the path ``model``."""

    @abstractmethod
    def load(self, model: Path) -> None:
        """Load a saved model, ready to predict."""

    @abstractmethod
    def predict(self, X: sp.csr_matrix, k: int, threads: int, options: Options) -> Any:
        """Return the system's own answer for the top ``k`` labels of each row. Timed."""

    @abstractmethod
    def labels(self, answer: Any, k: int) -> npt.NDArray[np.int32]:
        """Turn an answer into labels, best first, of shape (n_rows, k), padded by -1. Not timed."""

    def evaluations(self, answer: Any) -> float | None:
        """Return the mean number of node evaluations a row, where the system tells it."""
        return None


def pad(ranked: list[list[int]], k: int) -> npt.NDArray[np.int32]:
    """Return lists of ranked labels as an array of shape (n_rows, k), padded by -1."""
    top = np.full((len(ranked), k), -1, np.int32)
    for row, labels in enumerate(ranked):
        top[row, : len(labels)] = labels[:k]
    return top
