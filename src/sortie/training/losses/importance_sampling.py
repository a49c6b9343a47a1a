"""Policy gradient with the importance ratio to the sampler's policy, unclipped."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import Tensor

from sortie.training.losses import LOSSES
from sortie.training.losses.ratio import ratio_figures


@LOSSES.register("importance_sampling")
def importance_sampling(
    logprobs_P: Tensor, inputs: Mapping[str, Tensor], config: Mapping[str, Any]
) -> tuple[Tensor, dict[str, Tensor]]:
    """-(p / q) A, with q the sampler's probability (Kakade & Langford 2002, eq. 4.1, per token)."""
    ratio_P, figures = ratio_figures(logprobs_P, inputs["logprobs"])
    return -ratio_P * inputs["advantages"], figures
