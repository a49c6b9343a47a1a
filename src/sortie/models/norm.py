"""The residual sum and its norm in one call, for the few rows of a decoding step, compiled by Numba.

A decoded token is hundreds of small operations that cost torch more to start than to compute: adding and norming 8 rows
of 576 takes it 14 us of which 3 are work, twice in every layer. Numba rather than C++ or torch.compile: it brings its
own compiler, so that nothing must be installed beside the wheel, and keeps what it compiled on disk. Rotary embedding
made the same way gained nothing.

Tensors enter by address, since Numba knows no bfloat16: a row is widened to float32, worked on, and narrowed. Results
are rounded where torch's separate operations round, so that sampler and trainer stay one model.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

MOST_ROWS = 64
"""With more rows the work outweighs the start, and torch's threads win."""
_DTYPES = torch.bfloat16, torch.float32


def add_norm(x_TD: Tensor, delta_TD: Tensor | None, weight_D: Tensor, eps: float) -> tuple[Tensor, Tensor]:
    """x + delta (x itself without one), and its root-mean-square norm times the weight (Zhang & Sennrich 2019)."""
    if torch.is_grad_enabled() or len(x_TD) > MOST_ROWS or not _known(x_TD, weight_D):
        sum_TD = x_TD if delta_TD is None else x_TD + delta_TD
        return sum_TD, F.rms_norm(sum_TD, weight_D.shape, weight_D, eps)
    x_TD = x_TD.contiguous()
    normed_TD = torch.empty_like(x_TD)
    if delta_TD is None:
        sum_TD, delta = x_TD, 0
    else:
        delta_TD = delta_TD.contiguous()
        sum_TD, delta = torch.empty_like(x_TD), delta_TD.data_ptr()
    addresses = x_TD.data_ptr(), delta, weight_D.data_ptr(), sum_TD.data_ptr(), normed_TD.data_ptr()
    _kernel()(*addresses, *x_TD.shape, eps, x_TD.dtype is torch.bfloat16)
    return sum_TD, normed_TD


def _known(x_TD: Tensor, weight_D: Tensor) -> bool:
    here = x_TD.device.type == weight_D.device.type == "cpu"
    return here and x_TD.dtype in _DTYPES and weight_D.dtype is x_TD.dtype and weight_D.is_contiguous()


@cache
def _kernel() -> Callable[..., None]:
    """The compiled function; from disk but for the first time, which takes two seconds."""
    from sortie.models.norm_kernel import kernel

    made: Callable[..., Any] = kernel()
    return made
