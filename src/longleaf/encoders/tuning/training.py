"""The training of a network: steps, schedule, validation after each epoch, and what is kept to resume from.

Given: token numbers and labels of texts, and a pretrained encoder. Result: an encoder whose vectors predict
these labels. The encoder and a linear layer over labels are trained together with binary cross-entropy, by
AdamW at a learning rate that rises and then falls (Smith, A disciplined approach to neural network
hyper-parameters, 2018). With many labels, a batch is trained on the labels of its rows and on a shortlist per
row, which another model ranks highly, as in AttentionXML (You et al., NeurIPS 2019) and XR-Transformer (Zhang
et al., NeurIPS 2021).

All that is random in a step depends on the seed and the step alone, so a training can continue at any step.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt
import torch
from scipy.sparse import csr_array
from torch import Tensor, nn

from longleaf.encoders.tuning.clock import Clock
from longleaf.encoders.tuning.fine_tuned import Epoch
from longleaf.encoders.tuning.loss import CrossEntropy
from longleaf.encoders.tuning.network import LabelNetwork, log_odds
from longleaf.encoders.tuning.optimizers import Optimizers, Output, fill
from longleaf.encoders.tuning.surroundings import deterministic, hearing_interrupts
from longleaf.encoders.tuning.token_rows import TokenRows, pieces, shuffled

Ints = npt.NDArray[np.int64]
Arrays: TypeAlias = dict[str, npt.NDArray[Any]]
Judge: TypeAlias = Callable[[LabelNetwork], dict[str, float]]

LONGEST_GRADIENT = 1.0
"""Longer gradients of the encoder are shortened."""
WARM_UP, FIRST_SHARE = 0.1, 0.04
TOKENS_ON_GPU, TOKENS_ON_CPU = 1 << 16, 1 << 11
"""How many tokens go through the network at once. On a CPU fewer, so that Ctrl-C is heard in time."""


@dataclass(frozen=True)
class Settings:
    """How a network is trained.

    Attributes
    ----------
    epochs : int
        Most passes over the training texts.
    batch_size : int
    learning_rate : float
        The largest one of the encoder.
    patience : int
        Training ends when so many epochs in a row were no better than the best one.
    seed : int
    """

    epochs: int = 12
    batch_size: int = 128
    learning_rate: float = 2e-4
    patience: int = 3
    seed: int = 1


@dataclass(frozen=True, eq=False)
class LabelledTokens:
    """Texts and their labels.

    Attributes
    ----------
    tokens : TokenRows
    Y : csr_array [texts, labels]
        Without duplicates.
    shortlist : array of int32 [texts, m], optional
        The labels that are hard to tell from those of a text, and -1 where there are fewer. Without it, a
        batch is trained on all labels.
    """

    tokens: TokenRows
    Y: csr_array
    shortlist: npt.NDArray[np.int32] | None = None

    def labels(self, rows: Ints) -> Ints | None:
        """Return the labels that a batch is trained on, ascending; None for all."""
        if self.shortlist is None:
            return None
        listed = self.shortlist[rows].ravel()
        return np.union1d(self.Y[rows].indices, listed[listed >= 0]).astype(np.int64)


class Keeper(Protocol):
    """Where the state of a training is kept."""

    def load(self) -> tuple[dict[str, Any], Arrays] | None:
        """Return the facts and arrays that were kept last, if any."""

    def is_due(self) -> bool:
        """Return whether it is time to keep the state, in the middle of an epoch."""

    def keep(self, facts: dict[str, Any], arrays: Arrays) -> None:
        """Keep facts (plain JSON) and arrays in place of the last ones."""


@dataclass(frozen=True)
class Callbacks:
    """What a training calls.

    Attributes
    ----------
    judge : callable, optional
        Returns measures of the network on validation texts, after each epoch.
    keeper : Keeper, optional
    report : callable, optional
        Called with each `Epoch`, those of a resumed training included.
    progress : callable, optional
        Called with the share of the steps that are done.
    estimate : callable, optional
        Called once, with the seconds that all epochs will take in all, measured from the first steps.
    """

    judge: Judge | None = None
    keeper: Keeper | None = None
    report: Callable[[Epoch], None] | None = None
    progress: Callable[[float], None] | None = None
    estimate: Callable[[float], None] | None = None


def one_cycle(progress: float) -> float:
    """Return the share of the largest learning rate: up over the first tenth, then down by a cosine."""
    if progress < WARM_UP:
        return FIRST_SHARE + (1 - FIRST_SHARE) * progress / WARM_UP
    return 0.5 * (1 + math.cos(math.pi * min(1.0, (progress - WARM_UP) / (1 - WARM_UP))))


@dataclass
class _State:
    """How far a training is: ``step`` steps of the epoch after those in ``epochs``."""

    epochs: list[Epoch] = field(default_factory=list)
    step: int = 0
    loss: float = 0.0
    seconds: float = 0.0
    best: int = 0
    kept: dict[str, Tensor] = field(default_factory=dict)

    def facts(self) -> dict[str, Any]:
        return {
            "epochs": [asdict(epoch) for epoch in self.epochs],
            "step": self.step,
            "loss": self.loss,
            "seconds": self.seconds,
            "best": self.best,
        }


class Training:
    """The training of a network in place; with a judge, it ends with the encoder of the best epoch.

    Parameters
    ----------
    network : LabelNetwork
        On the device where it is trained.
    data : LabelledTokens
    settings : Settings
    calls : Callbacks
    """

    def __init__(
        self, network: LabelNetwork, data: LabelledTokens, settings: Settings, calls: Callbacks
    ) -> None:
        self.network, self.data, self.settings, self.calls = network, data, settings, calls
        self.most_tokens = most_tokens(network.device)
        by_rows = data.shortlist is not None
        network.weight.requires_grad_(not by_rows)
        network.bias.requires_grad_(not by_rows)
        self._optimizers = Optimizers(network, settings.learning_rate, by_rows)
        self._lengths = data.tokens.lengths()
        self._per_epoch = -(-len(data.tokens) // settings.batch_size)
        self._state = _State()
        self._clock = Clock(int(self._lengths.sum()) * settings.epochs)

    @property
    def best(self) -> int:
        """The number of the best epoch; without a judge, that of the last."""
        return self._state.best or len(self._state.epochs)

    def run(self) -> list[Epoch]:
        """Train, and return what came of each epoch."""
        with deterministic(self.network.device), hearing_interrupts(self.network):
            self._resume()
            while len(self._state.epochs) < self.settings.epochs and not self._is_out_of_patience():
                self._pass()
                self._judge()
        if self._state.kept:
            self.network.encoder.load_state_dict(self._state.kept)
        return self._state.epochs

    def _is_out_of_patience(self) -> bool:
        state = self._state
        return bool(state.best) and len(state.epochs) - state.best >= self.settings.patience

    def _pass(self) -> None:
        """Train on all texts once, from the step of the state on."""
        number, state = len(self._state.epochs), self._state
        random = np.random.default_rng([self.settings.seed, number])
        batches = shuffled(self._lengths, self.settings.batch_size, random)
        self.network.train()
        loss = torch.tensor(state.loss, dtype=torch.float64, device=self.network.device)
        begun = time.perf_counter() - state.seconds
        for step in range(state.step, len(batches)):
            done = number * self._per_epoch + step
            torch.manual_seed((self.settings.seed << 32) + done)
            loss += self._step(batches[step], one_cycle(done / (self._per_epoch * self.settings.epochs)))
            if self.calls.progress is not None:
                self.calls.progress((done + 1) / (self._per_epoch * self.settings.epochs))
            if self.calls.keeper is not None and step + 1 < len(batches) and self.calls.keeper.is_due():
                state.step, state.loss = step + 1, float(loss)
                state.seconds = time.perf_counter() - begun
                self._keep()
        state.step, state.loss, state.seconds = 0, float(loss), time.perf_counter() - begun

    def _step(self, rows: Ints, share: float) -> Tensor:
        """Train on a batch, in pieces whose gradients add up; return the loss of a row."""
        output = Output.of(self.network, self.data.labels(rows))
        loss = torch.zeros((), dtype=torch.float64, device=self.network.device)
        for piece in pieces(rows, self._lengths, self.most_tokens):
            one = self._loss(piece, output) / len(rows)
            one.backward()
            loss += one.detach()
            if self._clock.has_measured(int(self._lengths[piece].sum())) and self.calls.estimate is not None:
                self.calls.estimate(self._clock.total)
        nn.utils.clip_grad_norm_(self.network.encoder.parameters(), LONGEST_GRADIENT)
        self._optimizers.step(share, output)
        return loss

    def _loss(self, rows: Ints, output: Output) -> Tensor:
        """Return the binary cross-entropy summed over the labels of a batch and some of its rows."""
        some = self.data.Y[rows]
        columns = some.indices.astype(np.int64)
        if output.labels is not None:
            columns = np.searchsorted(output.labels, columns)
        row = np.repeat(np.arange(len(rows)), np.diff(some.indptr))
        positives = torch.from_numpy(row * len(output.weight) + columns).to(self.network.device)
        features = self.network.dropout(self.network.pooled(self.data.tokens, rows))
        odds = log_odds(features, output.weight, output.bias)
        loss: Tensor = CrossEntropy.apply(odds, positives)
        return loss

    def _judge(self) -> None:
        """End an epoch: judge the network, and keep the encoder if it is the best so far."""
        state = self._state
        measures = {} if self.calls.judge is None else self.calls.judge(self.network)
        epoch = Epoch(len(state.epochs) + 1, state.seconds, state.loss / self._per_epoch, measures)
        state.epochs.append(epoch)
        state.loss = state.seconds = 0.0
        if measures and (not state.best or epoch.score > state.epochs[state.best - 1].score):
            state.best = epoch.number
            encoder = self.network.encoder.state_dict()
            state.kept = {name: tensor.detach().cpu().clone() for name, tensor in encoder.items()}
        if self.calls.keeper is not None:
            self._keep()
        if self.calls.report is not None:
            self.calls.report(epoch)

    def _keep(self) -> None:
        assert self.calls.keeper is not None
        tensors = {f"network/{name}": one for name, one in self.network.state_dict().items()}
        tensors |= dict(self._optimizers.arrays())
        tensors |= {f"kept/{name}": one for name, one in self._state.kept.items()}
        arrays = {name: one.detach().cpu().numpy().reshape(-1) for name, one in tensors.items()}
        self.calls.keeper.keep(self._state.facts() | {"steps": self._optimizers.steps}, arrays)

    def _resume(self) -> None:
        found = None if self.calls.keeper is None else self.calls.keeper.load()
        if found is None:
            return
        facts, arrays = found
        steps = facts.pop("steps")
        epochs = [Epoch(**epoch) for epoch in facts.pop("epochs")]
        self._state = _State(epochs=epochs, **facts)
        self._optimizers.load(arrays, steps)
        for name, tensor in self.network.state_dict().items():
            fill(tensor, arrays[f"network/{name}"])
        if self._state.best:
            for name, tensor in self.network.encoder.state_dict().items():
                self._state.kept[name] = fill(torch.empty_like(tensor, device="cpu"), arrays[f"kept/{name}"])
        if self.calls.report is not None:
            for epoch in epochs:
                self.calls.report(epoch)


def most_tokens(device: torch.device) -> int:
    """Return how many tokens go through a network at once."""
    return TOKENS_ON_GPU if device.type == "cuda" else TOKENS_ON_CPU
