"""Low-rank adapters (Hu et al. 2021, arXiv 2106.09685): W x + (alpha / rank) B A x.

A `Lora` owns the tensors under PEFT-like names, one A and one B per projection. The decoder fuses projections that
read the same input, so an adapter is applied per fused linear: the A's stacked, the B's on a block diagonal. The
trainer fuses inside its graph, the engine once per published snapshot.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from sortie.core.policy import LoraConfig
from sortie.models.config import DecoderConfig

if TYPE_CHECKING:
    from sortie.models.decoder import Delta

FUSED: dict[str, tuple[str, ...]] = {
    "qkv": ("q_proj", "k_proj", "v_proj"),
    "o": ("o_proj",),
    "gate_up": ("gate_proj", "up_proj"),
    "down": ("down_proj",),
}
"""Fused linear of the decoder -> its projections, in the order of their output rows."""


def projection_shapes(config: DecoderConfig) -> dict[str, tuple[int, int]]:
    """(outputs, inputs) of every projection."""
    q, kv = config.heads * config.head_dim, config.kv_heads * config.head_dim
    d, f = config.hidden, config.feed_forward
    return {
        "q_proj": (q, d),
        "k_proj": (kv, d),
        "v_proj": (kv, d),
        "o_proj": (d, q),
        "gate_proj": (f, d),
        "up_proj": (f, d),
        "down_proj": (d, f),
    }


def module_of(projection: str) -> str:
    """Submodule a projection sits in, as PEFT spells it."""
    return "mlp" if projection in ("gate_proj", "up_proj", "down_proj") else "self_attn"


def tensor_name(layer: int, projection: str, which: str) -> str:
    """`layers.0.self_attn.q_proj.A`."""
    return f"layers.{layer}.{module_of(projection)}.{projection}.{which}"


@dataclass(slots=True)
class Lora:
    """One adapter's tensors, fp32: A [rank, inputs] and B [outputs, rank] per layer and target."""

    config: LoraConfig
    model: DecoderConfig
    tensors: dict[str, Tensor]

    @classmethod
    def create(cls, config: LoraConfig, model: DecoderConfig, *, seed: int, device: str = "cpu") -> Lora:
        """A fresh adapter: A uniform as in a linear layer, B zero, so that it starts equal to the base model."""
        generator = torch.Generator().manual_seed(seed)
        shapes, tensors = projection_shapes(model), {}
        for layer in range(model.layers):
            for target in config.targets:
                outputs, inputs = shapes[target]
                bound = 1 / math.sqrt(inputs)
                a = torch.empty(config.rank, inputs).uniform_(-bound, bound, generator=generator)
                tensors[tensor_name(layer, target, "A")] = a.to(device)
                tensors[tensor_name(layer, target, "B")] = torch.zeros(outputs, config.rank, device=device)
        return cls(config, model, tensors)

    @property
    def scale(self) -> float:
        return self.config.alpha / self.config.rank

    @property
    def parameters(self) -> int:
        """Number of trainable weights."""
        return sum(t.numel() for t in self.tensors.values())

    def digest(self) -> str:
        """16 hex digits over names and values."""
        return tensors_digest(self.tensors)

    def fuse(self) -> FusedLora:
        """The adapter as the decoder applies it; differentiable in the tensors."""
        shapes = projection_shapes(self.model)
        factors = {}
        for layer in range(self.model.layers):
            for linear, projections in FUSED.items():
                present = [p for p in projections if p in self.config.targets]
                if present:
                    a = torch.cat([self.tensors[tensor_name(layer, p, "A")] for p in present])
                    factors[layer, linear] = (a, self._block_diagonal(layer, projections, shapes) * self.scale)
        return FusedLora(factors)

    def _block_diagonal(self, layer: int, projections: tuple[str, ...], shapes: dict[str, tuple[int, int]]) -> Tensor:
        blocks = []
        for p in projections:
            present = p in self.config.targets
            blocks.append(self.tensors[tensor_name(layer, p, "B")] if present else self._no_columns(shapes[p][0]))
        return torch.block_diag(*blocks) if len(blocks) > 1 else blocks[0]

    def _no_columns(self, outputs: int) -> Tensor:
        """Rows of a projection without an adapter: no columns, so they stay untouched."""
        return next(iter(self.tensors.values())).new_zeros(outputs, 0)

    def snapshot(self) -> Lora:
        """An immutable copy for publishing."""
        return Lora(self.config, self.model, {name: t.detach().clone() for name, t in self.tensors.items()})


@dataclass(frozen=True, slots=True)
class FusedLora:
    """A `Delta` that applies one adapter to every token."""

    factors: Mapping[tuple[int, str], tuple[Tensor, Tensor]]
    """(layer, fused linear) -> A [ranks, inputs], B [outputs, ranks], the scale already in B."""

    def to(self, dtype: torch.dtype) -> FusedLora:
        """The same factors in the decoder's dtype."""
        return FusedLora({key: (a.to(dtype), b.to(dtype)) for key, (a, b) in self.factors.items()})

    def __call__(self, layer: int, linear: str, x: Tensor, y: Tensor) -> Tensor:
        pair = self.factors.get((layer, linear))
        if pair is None:
            return y
        a, b = pair
        return y.addmm_(x @ a.T, b.T)


class RoutedLora:
    """A `Delta` for a batch in which tokens belong to different adapters, or to none."""

    def __init__(self, parts: Sequence[tuple[Tensor, Delta]]) -> None:
        self.parts = parts
        """(indices of tokens, adapter) pairs; tokens in no pair see the base model."""

    def __call__(self, layer: int, linear: str, x: Tensor, y: Tensor) -> Tensor:
        for rows, lora in self.parts:
            y.index_copy_(0, rows, lora(layer, linear, x[rows], y[rows]))
        return y


def tensors_digest(tensors: Mapping[str, Tensor]) -> str:
    """16 hex digits over names, shapes and bytes."""
    digest = hashlib.sha256()
    for name in sorted(tensors):
        value = tensors[name].detach().cpu().contiguous()
        digest.update(f"{name}{tuple(value.shape)}".encode())
        digest.update(value.view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()[:16]
