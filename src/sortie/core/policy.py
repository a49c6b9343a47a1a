"""One LoRA, and one immutable published revision of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pydantic import Field

from sortie.core.config import Config

Target = Literal["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]
ALL_TARGETS: tuple[Target, ...] = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")


class LoraConfig(Config):
    """Shape of one adapter (Hu et al. 2021, arXiv 2106.09685): W x + (alpha / rank) B A x."""

    rank: int = Field(16, ge=1, le=512)
    """Inner dimension of A and B."""
    alpha: float = Field(32.0, gt=0)
    """Scale; the update is multiplied by alpha / rank."""
    targets: tuple[Target, ...] = Field(ALL_TARGETS, min_length=1)
    """Linear layers that get an adapter, in every block."""


@dataclass(frozen=True, slots=True)
class PolicyVersion:
    """One published revision of an adapter. Equal digests mean equal weights."""

    adapter: str
    number: int
    """0 is the adapter as created (B = 0, equal to the base model); each publish adds one."""
    digest: str
    """Hash of the adapter's tensors."""

    def __str__(self) -> str:
        return f"{self.adapter}@{self.number}"
