"""Settings of the loss and of the local trainer."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from sortie.core.config import Config


class LossConfig(Config):
    """The policy-gradient loss and what normalises it."""

    clip_low: float = Field(0.2, gt=0, lt=1)
    """The ratio to the sampler's policy is clipped below 1 - clip_low (PPO, arXiv 1707.06347, eq. 7)."""
    clip_high: float = Field(0.28, gt=0)
    """... and above 1 + clip_high (DAPO, arXiv 2503.14476, eq. 10: higher, against entropy collapse)."""
    advantage: Literal["group_mean", "group_norm"] = "group_mean"
    """Reward minus the group's mean (Dr. GRPO, arXiv 2503.20783), or also divided by its standard deviation (GRPO)."""
    normalise: Literal["token", "rollout"] = "token"
    """Every sampled token of the batch weighs the same, or every rollout does."""


class TrainerConfig(Config):
    """How the local trainer lays out its work."""

    pack_tokens: int = Field(2304, ge=64)
    """Most distinct tokens in one forward-backward pass, unless one row alone is longer. Bounds activation memory."""
    logit_chunk: int = Field(128, ge=1)
    """Positions whose logits exist at once."""
    remat: bool = False
    """Recompute activations in the backward pass: a third more work, a fraction of the memory."""
