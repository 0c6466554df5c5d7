"""Binary cross-entropy over many labels."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn


class CrossEntropy(torch.autograd.Function):  # type: ignore[misc]
    """Binary cross-entropy summed over all entries, with its gradient.

    The gradient is computed at once, `sigmoid(odds)` less 1 at the positives, since that of indexing would
    add them up in any order on a GPU.
    """

    @staticmethod
    def forward(context: Any, odds: Tensor, positives: Tensor) -> Tensor:
        """Return the sum; ``positives`` [m] are distinct places in the flattened log-odds."""
        gradient = odds.sigmoid()
        gradient.view(-1)[positives] -= 1
        context.save_for_backward(gradient)
        # -log sigmoid(-z) = softplus(z) for each label that is wrong; a right one has softplus(z) - z
        return nn.functional.softplus(odds).sum() - odds.reshape(-1)[positives].sum()

    @staticmethod
    def backward(context: Any, *outer: Tensor) -> tuple[Tensor, None]:
        """Return the gradient."""
        (gradient,) = context.saved_tensors
        return gradient * outer[0], None
