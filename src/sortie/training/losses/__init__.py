"""Losses as pure functions of per-token logprobs, one file each, found by name.

A loss gets only the positions whose weight is not 0, flat over the batch: P of them. It returns one value per position;
the trainer sums weight x value.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from torch import Tensor

from sortie.core.registry import Registry


class Loss(Protocol):
    """`logprobs_P` of the policy in training, the datum's other arrays at the same positions, the loss's settings."""

    def __call__(
        self, logprobs_P: Tensor, inputs: Mapping[str, Tensor], config: Mapping[str, Any]
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """Loss per position, and per-position figures to report as weighted means."""
        ...


LOSSES: Registry[Loss] = Registry("loss")

from sortie.training.losses import cross_entropy, importance_sampling, ppo  # noqa: E402, F401 - they register
