"""What came of fine-tuning, as a whole and pass by pass."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Epoch:
    """One pass.

    Attributes
    ----------
    number : int
        From 1.
    seconds : float
        Of training, without validation.
    loss : float
        The mean binary cross-entropy of a text, summed over labels.
    measures : dict of str to float
        Of the network's own output layer on the validation texts, in percent: ``p@k`` and ``psp@k`` for k of
        1, 3 and 5; empty if nothing is held out.
    """

    number: int
    seconds: float
    loss: float
    measures: dict[str, float]

    @property
    def score(self) -> float:
        """What tells the best epoch: the mean of p@k and psp@k at 1, 3 and 5.

        One alone misleads: psp@5 may stand still for epochs, while the learning rate is still high and p@k
        rises; and with a tag or two per text, the true ones are soon among any 5.
        """
        return sum(self.measures.values()) / len(self.measures)


@dataclass(frozen=True)
class FineTuned:
    """An encoder that was fine-tuned.

    Attributes
    ----------
    path : Path
        Its folder, for `longleaf.encoders.load`.
    history : tuple of Epoch
    best : int
        The number of the epoch whose encoder was kept.
    device : str
        Where it was trained: "cpu", or the name of a GPU.
    seconds : float
        All epochs together, those before a training was resumed included, without validation.
    """

    path: Path
    history: tuple[Epoch, ...]
    best: int
    device: str
    seconds: float
