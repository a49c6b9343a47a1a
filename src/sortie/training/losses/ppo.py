"""The clipped surrogate, with separate bounds below and above: what GRPO optimises on group advantages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from sortie.training.losses import LOSSES
from sortie.training.losses.ratio import ratio_figures


@LOSSES.register("ppo")
def ppo(
    logprobs_P: Tensor, inputs: Mapping[str, Tensor], config: Mapping[str, Any]
) -> tuple[Tensor, dict[str, Tensor]]:
    """-min(r A, clip(r, 1 - clip_low, 1 + clip_high) A) per token (PPO, arXiv 1707.06347, eq. 7)."""
    ratio_P, figures = ratio_figures(logprobs_P, inputs["logprobs"])
    advantages_P = inputs["advantages"]
    clipped_P = ratio_P.clamp(1 - config["clip_low"], 1 + config["clip_high"])
    figures["clipped"] = (clipped_P * advantages_P < ratio_P * advantages_P).float().detach()
    return -torch.minimum(ratio_P * advantages_P, clipped_P * advantages_P), figures
