"""Log-probabilities of chosen tokens, without ever holding all logits.

Logits exist for one chunk of C positions at a time, [V, C]: products of this shape run faster on CPUs than [C, V] (see
`decoder.product`). The backward pass computes them again from the hidden states.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor


def chosen_logprobs(hidden_PD: Tensor, head_VD: Tensor, targets_P: Tensor, temperature: float, chunk: int) -> Tensor:
    """log softmax(hidden head^T / temperature) at the targets, [P], in float32. Differentiable in `hidden_PD` only."""
    out: Tensor = _ChosenLogprobs.apply(  # type: ignore[no-untyped-call]  # torch leaves `apply` untyped
        hidden_PD, head_VD, targets_P, temperature, chunk
    )
    return out


class _ChosenLogprobs(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, hidden_PD: Tensor, head_VD: Tensor, targets_P: Tensor, temperature: float, chunk: int
    ) -> Tensor:
        parts, norms = [], []
        for h, t in zip(hidden_PD.split(chunk), targets_P.split(chunk), strict=True):
            logits_VC = torch.mm(head_VD, h.T).float().div_(temperature)
            norm = logits_VC.logsumexp(dim=0)
            parts.append(logits_VC.gather(0, t.unsqueeze(0)).squeeze(0) - norm)
            norms.append(norm)
        ctx.save_for_backward(hidden_PD, head_VD, targets_P, torch.cat(norms))
        ctx.temperature, ctx.chunk = temperature, chunk
        return torch.cat(parts)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, None, None, None]:
        hidden_PD, head_VD, targets_P, norms_P = ctx.saved_tensors
        out = []
        pieces = (x.split(ctx.chunk) for x in (hidden_PD, targets_P, norms_P, grads[0]))
        for h, t, norm, g in zip(*pieces, strict=True):
            # d log p(t) / d logits = onehot(t) - softmax
            shares_VC = torch.mm(head_VD, h.T).float().div_(ctx.temperature).sub_(norm).exp_().neg_()
            shares_VC[t, torch.arange(len(t), device=t.device)] += 1
            shares_VC.mul_(g / ctx.temperature)
            out.append(torch.mm(shares_VC.T.to(head_VD.dtype), head_VD))
        return torch.cat(out), None, None, None, None
