"""An adapter that every contestant loads: rank 16 on all seven projections, B not zero, in PEFT layout."""

from __future__ import annotations

from pathlib import Path

import torch

from sortie.core.policy import LoraConfig
from sortie.models.config import DecoderConfig
from sortie.models.export import export_adapter
from sortie.models.lora import Lora

RANK = 16
B_SCALE = 0.01
"""Standard deviation of B, as in the middle of a training: small enough that the model still writes text."""


def make_adapter(model: Path, folder: Path, *, seed: int = 0) -> Lora:
    """Draw the adapter and write it into the new `folder`."""
    lora = Lora.create(LoraConfig(rank=RANK), DecoderConfig.read(model), seed=seed)
    generator = torch.Generator().manual_seed(seed + 1)
    for name, tensor in sorted(lora.tensors.items()):
        if name.endswith(".B"):
            tensor.normal_(0.0, B_SCALE, generator=generator)
    export_adapter(lora, folder, base=model.name)
    return lora
