"""What moves the parameters of a network."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from longleaf.encoders.tuning.network import LabelNetwork
from longleaf.encoders.tuning.row_adam import RowAdam

Ints = npt.NDArray[np.int64]

OUTPUT_RATE = 10.0
"""The learning rate of the output layer over that of the encoder."""
WEIGHT_DECAY = 0.01


@dataclass(frozen=True, eq=False)
class Output:
    """The rows of the output layer that a batch is trained on; they gather its gradients.

    Attributes
    ----------
    labels : array of int64 [m]
        Ascending; None for all.
    places : Tensor
        The same on the device.
    weight : Tensor [m, width]
    bias : Tensor [m]
    """

    labels: Ints | None
    places: Tensor | None
    weight: Tensor
    bias: Tensor

    @classmethod
    def of(cls, network: LabelNetwork, labels: Ints | None) -> Output:
        """Take some rows of a network, or all."""
        if labels is None:
            return cls(None, None, network.weight, network.bias)
        places = torch.from_numpy(labels).to(network.device)
        weight, bias = network.weight.detach()[places], network.bias.detach()[places]
        return cls(labels, places, weight.requires_grad_(), bias.requires_grad_())


class Optimizers:
    """AdamW for the encoder and an output layer over all labels; Adam by rows for one over shortlists.

    Parameters
    ----------
    network : LabelNetwork
    rate : float
        The largest learning rate of the encoder.
    by_rows : bool
        Whether a step trains only some rows of the output layer.
    """

    def __init__(self, network: LabelNetwork, rate: float, by_rows: bool) -> None:
        self.rate, self.steps = rate, 0
        groups: list[dict[str, Any]] = [{"params": list(network.encoder.parameters()), "lr": self.rate}]
        if not by_rows:
            groups.append({"params": [network.weight, network.bias], "lr": OUTPUT_RATE * self.rate})
        self.largest = [group["lr"] for group in groups]
        self.adamw = torch.optim.AdamW(groups, weight_decay=WEIGHT_DECAY, fused=network.device.type == "cuda")
        output = {"weight": network.weight.detach(), "bias": network.bias.detach()} if by_rows else {}
        self.by_rows = {name: RowAdam(values) for name, values in output.items()}

    def step(self, share: float, output: Output) -> None:
        """Move the parameters at this share of the largest learning rates."""
        self.steps += 1
        for group, rate in zip(self.adamw.param_groups, self.largest, strict=True):
            group["lr"] = rate * share
        self.adamw.step()
        self.adamw.zero_grad(set_to_none=True)
        for name, adam in self.by_rows.items():
            assert output.places is not None
            gradient = getattr(output, name).grad
            adam.step(output.places, gradient, OUTPUT_RATE * self.rate * share, self.steps)

    def arrays(self) -> Iterator[tuple[str, Tensor]]:
        """Yield all moments, by name."""
        for place, state in self.adamw.state_dict()["state"].items():
            yield from ((f"adamw/{place}/{name}", tensor) for name, tensor in state.items())
        for name, adam in self.by_rows.items():
            yield f"rows/{name}/first", adam.first
            yield f"rows/{name}/second", adam.second

    def load(self, arrays: dict[str, npt.NDArray[Any]], steps: int) -> None:
        """Replace all moments."""
        self.steps = steps
        whole = self.adamw.state_dict()
        parameters = [one for group in self.adamw.param_groups for one in group["params"]]
        state: dict[int, dict[str, Tensor]] = {}
        for key, array in arrays.items():
            kind, place, name = [*key.split("/", 2), "", ""][:3]
            if kind == "adamw":
                tensor = torch.from_numpy(np.array(array))
                shape = () if name == "step" else parameters[int(place)].shape
                state.setdefault(int(place), {})[name] = tensor.reshape(shape)
            elif kind == "rows":
                fill(getattr(self.by_rows[place], name), array)
        self.adamw.load_state_dict(whole | {"state": state})


def fill(tensor: Tensor, array: npt.NDArray[Any]) -> Tensor:
    """Overwrite a tensor by a flat array."""
    with torch.no_grad():
        return tensor.copy_(torch.from_numpy(np.array(array)).reshape(tensor.shape))
