"""Where a network is trained, and what it needs there."""

from __future__ import annotations

from typing import Any

import torch

from longleaf._validation import DataError
from longleaf.encoders.tuning.network import LabelNetwork
from longleaf.encoders.tuning.training import LabelledTokens, Settings, most_tokens

FLOAT_BYTES = 4
COPIES = 4
"""Of a parameter: its value, its gradient, and two moments."""
WIDTHS_PER_LAYER, INNER_PER_LAYER = 16, 4
"""Floats that a layer keeps per token for the backward pass, in widths and in inner widths."""


def pick_device(name: str | None) -> torch.device:
    """Return the device of that name; by default a GPU, if there is one."""
    if name is None:
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    kind, _, number = name.partition(":") if isinstance(name, str) else ("", "", "")
    if kind not in ("cpu", "cuda") or (number and not number.isdecimal()):
        raise ValueError(f"device must be cpu or cuda; got {name!r:.80}.")
    if kind == "cuda" and int(number or 0) >= torch.cuda.device_count():
        found = torch.cuda.device_count()
        raise DataError(f"device must be a GPU that PyTorch can use; got {name!r}, and it finds {found}.")
    return torch.device(name)


def device_name(device: torch.device) -> str:
    """Return what people call a device."""
    return torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu"


def needed_bytes(
    network: LabelNetwork, data: LabelledTokens, settings: Settings, device: torch.device
) -> int:
    """Return about how much memory training takes on a device, beside the texts."""
    n_labels, width = network.weight.shape
    tokens = min(most_tokens(device), settings.batch_size * int(data.tokens.lengths().max(initial=1)))
    rows = max(1, tokens // max(1, int(data.tokens.lengths().mean())))
    at_once = n_labels
    if data.shortlist is not None:
        at_once = min(
            n_labels, settings.batch_size * (data.shortlist.shape[1] + -(-data.Y.nnz // len(data.tokens)))
        )
    output = n_labels * (width + 1) * (COPIES if data.shortlist is None else COPIES - 1)
    encoder = sum(one.numel() for one in network.encoder.parameters()) * COPIES
    log_odds = 3 * min(rows, settings.batch_size) * at_once
    return FLOAT_BYTES * int(output + encoder + log_odds + tokens * _floats_per_token(network.encoder.config))


def _floats_per_token(config: Any) -> int:
    per_layer = WIDTHS_PER_LAYER * int(config.hidden_size) + INNER_PER_LAYER * int(config.intermediate_size)
    return int(config.num_hidden_layers) * per_layer
