"""Muon, an optimiser for the matrices inside a network."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor


class Muon(torch.optim.Optimizer):
    """Momentum whose steps are made orthogonal by five Newton-Schulz iterations (Jordan 2024, "Muon: An optimizer for
    hidden layers in neural networks"), scaled to the size of AdamW's (Liu et al. 2025, arXiv 2502.16982, eq. 4).

    torch's own computes them in bfloat16, which a CPU without instructions for it emulates: on an AMD EPYC with AVX2 a
    whole step of `tiny` took 2.7 times as long with it.
    """

    def __init__(self, matrices: Sequence[Tensor]) -> None:
        super().__init__(matrices, {"lr": 0.0, "momentum": 0.95})

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        (group,) = self.param_groups
        for weight in group["params"]:
            average = self.state[weight].setdefault("average", torch.zeros_like(weight))
            average.mul_(group["momentum"]).add_(weight.grad)
            towards = orthogonal(weight.grad.add(average, alpha=group["momentum"]))
            weight.sub_(towards, alpha=group["lr"] * 0.2 * math.sqrt(max(weight.shape)))


def orthogonal(matrix: Tensor) -> Tensor:
    """About the nearest matrix with orthonormal rows or columns."""
    x = matrix.T if matrix.shape[0] > matrix.shape[1] else matrix
    x = x / (x.norm() + 1e-7)
    for _ in range(5):
        square = x @ x.T
        x = 3.4445 * x + (-4.7750 * square + 2.0315 * square @ square) @ x
    return x.T if matrix.shape[0] > matrix.shape[1] else x
