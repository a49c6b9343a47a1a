"""One linear layer of the decoder, computed the way that is fastest where it runs.

Three spellings of x W^T, measured by `python -m benchmarks.products`. Training takes torch's own. Decoding on a CPU
with AVX-512 takes oneDNN's over weights laid out in advance: torch's own lays them out anew in every call, which costs
more than the product of a few rows. Decoding on an older CPU takes W x^T, since what is laid out per call is then the
small factor.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

PART_ROWS = 3072
"""Outputs computed at once as W x^T: each part's factor then stays in the processor's cache."""


def can_pack(device: torch.device) -> bool:
    """Whether products over weights laid out in advance gain here."""
    return (
        device.type == "cpu"
        and torch.backends.mkldnn.is_available()
        and torch.backends.cpu.get_cpu_capability().startswith("AVX512")
        and hasattr(torch.ops.mkldnn, "_linear_pointwise")
    )


class Linear:
    """x W^T + b. The weight is frozen and shared by reference; `pack` adds a second copy, laid out for oneDNN."""

    def __init__(self, weight: Tensor, bias: Tensor | None = None) -> None:
        self.weight = weight
        self.bias = bias
        self._packed: Tensor | None = None

    def pack(self) -> None:
        """Lay the weight out for decoding, where that gains. Takes as much memory again."""
        if self._packed is None and can_pack(self.weight.device):
            with torch.no_grad():
                self._packed = torch.ops.mkldnn._reorder_linear_weight(self.weight)

    def __call__(self, x_TD: Tensor) -> Tensor:
        """[T, outputs]."""
        if torch.is_grad_enabled() or x_TD.device.type != "cpu":
            return F.linear(x_TD, self.weight, self.bias)
        if self._packed is None:
            return product(x_TD, self.weight, self.bias)
        # A single fp32 row is the one case in which torch's own reads weights as they lie.
        if len(x_TD) == 1 and x_TD.dtype is torch.float32:
            return F.linear(x_TD, self.weight, self.bias)
        y: Tensor = torch.ops.mkldnn._linear_pointwise.default(x_TD, self._packed, self.bias, "none", [], "")
        return y


def product(x_TD: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """x W^T + b as W x^T, [T, outputs], laid out by output."""
    y_VT = x_TD.new_empty(len(weight), len(x_TD))
    for start in range(0, len(weight), PART_ROWS):
        end = start + PART_ROWS
        torch.mm(weight[start:end], x_TD.T, out=y_VT[start:end])
    return y_VT.T if bias is None else y_VT.T.add_(bias)
