"""Drawing tokens: one keyed uniform per position, and inverse CDF in vocabulary order.

The draw depends on (seed, sample index, position) and the row's own logits, so neighbours in the batch cannot change it
beyond rounding. Logprobs are of the whole distribution at the row's temperature, which is what the trainer sees.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b

import torch
from torch import Tensor
from torch.nn import functional as F

CHUNK = 256
"""Vocabulary entries whose mass is summed first: the search then runs over V / 256 sums and 256 entries, not over V."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Draw:
    """How to draw one row's next token."""

    uniform: float
    temperature: float
    top_p: float = 1.0
    top_k: int = 0


def keyed_uniform(seed: int, sample: int, position: int) -> float:
    """A number in [0, 1) that depends on the key alone."""
    key = struct.pack("<QQQ", seed & (2**64 - 1), sample, position)
    return int.from_bytes(blake2b(key, digest_size=8).digest(), "little") / 2**64


def sample(logits_RV: Tensor, draws: Sequence[Draw]) -> tuple[list[int], list[float]]:
    """One token per row and its logprob."""
    device = logits_RV.device
    uniforms_R = torch.tensor([d.uniform for d in draws], dtype=torch.float64, device=device)
    scaled_RV = logits_RV
    if any(d.temperature not in (0, 1) for d in draws):  # else a pass over the vocabulary that changes nothing
        scaled_RV = logits_RV / torch.tensor([[d.temperature or 1.0] for d in draws], device=device)
    law_RV = scaled_RV.softmax(dim=1, dtype=torch.float32)
    allowed_RV = law_RV
    if any(d.top_p < 1 or d.top_k > 0 for d in draws):
        allowed_RV = torch.stack([_truncate(mass, d) for mass, d in zip(law_RV, draws, strict=True)])
    picks_R = inverse_cdf(allowed_RV, uniforms_R)
    greedy = [i for i, d in enumerate(draws) if d.temperature == 0]
    if greedy:
        picks_R[greedy] = scaled_RV[greedy].argmax(dim=1)
    return picks_R.tolist(), law_RV.gather(1, picks_R.unsqueeze(1)).squeeze(1).log().tolist()


def inverse_cdf(mass_RV: Tensor, uniforms_R: Tensor) -> Tensor:
    """Smallest index whose cumulative share exceeds the uniform, [R]. Entries without mass are never chosen."""
    rows, vocab = mass_RV.shape
    mass_RV = F.pad(mass_RV, (0, -vocab % CHUNK)) if vocab % CHUNK else mass_RV
    chunks_RCE = mass_RV.view(rows, -1, CHUNK)
    ends_RC = chunks_RCE.sum(dim=2).double().cumsum(dim=1)
    target_R1 = (uniforms_R * ends_RC[:, -1]).unsqueeze(1)
    chunk_R1 = torch.searchsorted(ends_RC, target_R1, right=True).clamp(max=ends_RC.shape[1] - 1)
    before_R1 = F.pad(ends_RC, (1, 0)).gather(1, chunk_R1)
    inside_RE = chunks_RCE[torch.arange(rows, device=mass_RV.device), chunk_R1.squeeze(1)].double()
    entry_R1 = torch.searchsorted(inside_RE.cumsum(dim=1), target_R1 - before_R1, right=True)
    # Rounding may leave the target past the last entry with mass: take that entry.
    last_R1 = CHUNK - 1 - (inside_RE > 0).flip(1).int().argmax(dim=1, keepdim=True)
    return (chunk_R1 * CHUNK + torch.minimum(entry_R1, last_R1)).squeeze(1)


def _truncate(mass_V: Tensor, draw: Draw) -> Tensor:
    """Mass of the `top_k` likeliest tokens, and of those the fewest that hold `top_p` of it; 0 elsewhere."""
    values, order = mass_V.sort(descending=True)
    if draw.top_k > 0:
        values[draw.top_k :] = 0
    before = values.cumsum(0) - values
    values[before >= draw.top_p * values.sum()] = 0
    return torch.zeros_like(mass_V).scatter_(0, order, values)
