"""Cosines and sines of rotary positions, kept in a table that grows when a longer sequence comes."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from sortie.models.config import DecoderConfig


class RotaryTable:
    """Looks up cos and sin, [T, 1, H], for positions [T]; sin is negative in its first half, as `rotate` wants it."""

    def __init__(self, config: DecoderConfig, device: torch.device) -> None:
        self.frequencies = frequencies(config).to(device)
        self.cos = self.sin = torch.empty(0, 1, config.head_dim, device=device)

    def __call__(self, positions_T: Tensor, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        longest = int(positions_T.max()) + 1 if positions_T.numel() else 0
        if longest > len(self.cos):
            self._grow(max(longest, 2 * len(self.cos), 512))
        return self.cos[positions_T].to(dtype), self.sin[positions_T].to(dtype)

    def _grow(self, length: int) -> None:
        # Built outside inference mode, whoever asks first: the trainer saves these tensors for its backward pass.
        with torch.inference_mode(False):
            steps = torch.arange(length, device=self.frequencies.device, dtype=torch.float32)
            angles = torch.outer(steps, self.frequencies)
            angles = torch.cat((angles, angles), dim=-1).unsqueeze(1)
            self.cos, self.sin = angles.cos(), angles.sin()
            self.sin[..., : self.sin.shape[-1] // 2].neg_()


def frequencies(config: DecoderConfig) -> Tensor:
    """Angle per position of each pair, [H / 2], in fp32, scaled as the configuration says."""
    exponents = torch.arange(0, config.head_dim, 2, dtype=torch.int64).float() / config.head_dim
    plain = 1.0 / (config.rope_theta**exponents)
    scaling = config.rope_scaling
    if scaling is None:
        return plain
    factor = float(scaling["factor"])
    if scaling["rope_type"] == "linear":
        return plain / factor
    # llama3: long wavelengths are divided by `factor`, short ones kept, with a linear passage in between.
    low, high = float(scaling["low_freq_factor"]), float(scaling["high_freq_factor"])
    turns = float(scaling["original_max_position_embeddings"]) * plain / (2 * math.pi)
    smooth = ((turns - low) / (high - low)).clamp(0, 1)
    return plain * (smooth + (1 - smooth) / factor)
