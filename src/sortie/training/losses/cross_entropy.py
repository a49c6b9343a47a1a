"""Negative log-likelihood of the target tokens."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import Tensor

from sortie.training.losses import LOSSES


@LOSSES.register("cross_entropy")
def cross_entropy(
    logprobs_P: Tensor, inputs: Mapping[str, Tensor], config: Mapping[str, Any]
) -> tuple[Tensor, dict[str, Tensor]]:
    """-log p(target)."""
    return -logprobs_P, {}
