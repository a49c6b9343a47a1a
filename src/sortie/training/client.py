"""The contract of everything that trains an adapter.

Calls take effect in the order they were made. Losses are sums over tokens: all normalisation is in the data's weights,
so that micro-batches, ranks and tenants agree. Gradients accumulate until `optim_step`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from sortie.core.config import Config
from sortie.core.datum import Datum
from sortie.core.policy import PolicyVersion


class AdamParams(Config):
    """AdamW (Loshchilov & Hutter 2019, arXiv 1711.05101) with global gradient clipping."""

    lr: float = Field(2e-4, gt=0)
    beta1: float = Field(0.9, ge=0, lt=1)
    beta2: float = Field(0.95, ge=0, lt=1)
    eps: float = Field(1e-8, gt=0)
    weight_decay: float = Field(0.0, ge=0)
    grad_clip: float | None = Field(1.0, gt=0)
    """Largest global gradient norm; None: no clipping."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepOutput:
    """What a forward (and backward) pass found."""

    loss: float
    """Sum over tokens of weight x loss."""
    logprobs: list[NDArray[np.float32]]
    """Per datum, one per position; 0 where the weight is 0."""
    metrics: dict[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class OptimOutput:
    """What an optimiser step did."""

    step: int
    grad_norm: float
    """Before clipping."""
    update_norm: float
    """Euclidean norm of the change of all adapter weights."""


class TrainingClient(Protocol):
    """Handle to train one adapter."""

    async def forward(
        self, data: Sequence[Datum], loss: str, config: Mapping[str, Any] | None = None
    ) -> StepOutput: ...
    async def forward_backward(
        self, data: Sequence[Datum], loss: str, config: Mapping[str, Any] | None = None
    ) -> StepOutput: ...
    async def optim_step(self, params: AdamParams) -> OptimOutput: ...
    async def save(self, name: str) -> Path: ...
    async def load(self, path: Path, *, optimizer: bool = True) -> None: ...
    async def publish(self) -> PolicyVersion: ...
