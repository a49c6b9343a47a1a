"""Attention of queries over keys with grouped heads, and the plain causal case."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional as F


def grouped_attention(q_QNH: Tensor, k_SKH: Tensor, v_SKH: Tensor, mask_QS: Tensor) -> Tensor:
    """Softmax attention of Q queries over S keys; N is a multiple of K. Boolean mask: True where a query may look.

    Query heads that share a key head are laid side by side as extra queries, so keys are never copied.
    """
    (q, n, h), k = q_QNH.shape, k_SKH.shape[1]
    g = n // k
    q_KGQH = q_QNH.view(q, k, g, h).permute(1, 2, 0, 3).reshape(1, k, g * q, h)
    out = F.scaled_dot_product_attention(
        q_KGQH, k_SKH.transpose(0, 1).unsqueeze(0), v_SKH.transpose(0, 1).unsqueeze(0), attn_mask=mask_QS.repeat(g, 1)
    )
    return out.view(k, g, q, h).permute(2, 0, 1, 3).reshape(q, n, h)


def attention_with_mass(q_BNQH: Tensor, k_BNSH: Tensor, v_BNSH: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor]:
    """Softmax attention, [B, N, Q, H], and the logarithm of its normaliser, [B, N, Q], fp32: what is needed to join
    attention over two sets of keys. `mask` is added to the scores.
    """
    if q_BNQH.device.type == "cpu":
        out, mass = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(q_BNQH, k_BNSH, v_BNSH, attn_mask=mask)
        return out, mass
    scores = (q_BNQH @ k_BNSH.transpose(2, 3)).float() * q_BNQH.shape[-1] ** -0.5
    scores = scores if mask is None else scores + mask
    mass = scores.logsumexp(dim=-1)
    return (scores - mass.unsqueeze(-1)).exp().to(q_BNQH.dtype) @ v_BNSH, mass


class CausalAttend:
    """Plain causal attention over sequences laid end to end, with no memory of earlier calls."""

    def __init__(self, lengths: Sequence[int], device: torch.device | None = None) -> None:
        self.lengths = list(lengths)
        self.masks = [torch.ones(n, n, dtype=torch.bool, device=device).tril() for n in self.lengths]

    @property
    def positions_T(self) -> Tensor:
        """Each token's place in its own sequence."""
        return torch.cat([torch.arange(n) for n in self.lengths])

    def __call__(self, layer: int, q_TNH: Tensor, k_TKH: Tensor, v_TKH: Tensor) -> Tensor:
        parts = zip(
            q_TNH.split(self.lengths), k_TKH.split(self.lengths), v_TKH.split(self.lengths), self.masks, strict=True
        )
        return torch.cat([grouped_attention(q, k, v, mask) for q, k, v, mask in parts])
