"""Adam for a matrix of which a step changes only a few rows.

Given: a matrix with a row per label, and gradients of the rows of a batch's labels. Result: these rows are
moved as by Adam, and no other row or its moments is touched, as in PyTorch's SparseAdam. Nothing as large as
the matrix is allocated in a step. Source: Kingma and Ba, Adam, ICLR 2015.
"""

from __future__ import annotations

import torch
from torch import Tensor

BETAS = (0.9, 0.999)
EPSILON = 1e-8


class RowAdam:
    """The moments of a matrix or vector [labels, ...].

    Parameters
    ----------
    values : Tensor
        What is trained, changed in place.
    """

    def __init__(self, values: Tensor) -> None:
        self.values = values
        self.first, self.second = torch.zeros_like(values), torch.zeros_like(values)

    def step(self, rows: Tensor, gradient: Tensor, rate: float, number: int) -> None:
        """Move some rows.

        Parameters
        ----------
        rows : Tensor of int64 [m]
            Distinct.
        gradient : Tensor [m, ...]
        rate : float
        number : int
            Of the step, from 1.
        """
        first = self.first[rows].lerp_(gradient, 1 - BETAS[0])
        second = self.second[rows].lerp_(gradient.square(), 1 - BETAS[1])
        self.first[rows], self.second[rows] = first, second
        scale = (second / (1 - BETAS[1] ** number)).sqrt_().add_(EPSILON)
        moved = first.div_(scale).mul_(rate / (1 - BETAS[0] ** number))
        self.values[rows] = self.values[rows] - moved
