"""What must hold around a training: the same bits each time, and Ctrl-C that is heard."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from longleaf.encoders.tuning.network import LabelNetwork


@contextmanager
def deterministic(device: torch.device) -> Iterator[None]:
    """Use only algorithms that return the same bits each time, and leave the caller's random state alone."""
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # cuBLAS asks for it
    before = (
        torch.are_deterministic_algorithms_enabled(),
        torch.is_deterministic_algorithms_warn_only_enabled(),
    )
    fills = torch.utils.deterministic.fill_uninitialized_memory
    torch.use_deterministic_algorithms(True)
    torch.utils.deterministic.fill_uninitialized_memory = False
    try:
        with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
            yield
    finally:
        torch.use_deterministic_algorithms(before[0], warn_only=before[1])
        torch.utils.deterministic.fill_uninitialized_memory = fills


@contextmanager
def hearing_interrupts(network: LabelNetwork) -> Iterator[None]:
    """Let Ctrl-C end a backward pass on a CPU: it is raised where Python runs, so each layer runs some."""

    def after(module: Any, inputs: Any, output: Any) -> None:
        if isinstance(output, Tensor) and output.requires_grad:
            output.register_hook(_nothing)

    linear = [module for module in network.encoder.modules() if isinstance(module, nn.Linear)]
    hooks = [] if network.device.type == "cuda" else [one.register_forward_hook(after) for one in linear]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()


def _nothing(gradient: Tensor) -> None:
    """Do nothing, in Python."""
