"""Log-probabilities of chosen tokens, without ever holding all logits.

Logits exist for one chunk of C positions at a time. A loss looks at each logprob by itself, so its derivative by the
hidden state is known up to one factor while the chunk's probabilities are at hand: it is computed there and then, and
the backward pass multiplies it with the factor instead of computing logits again.
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
        logprobs_P = hidden_PD.new_empty(len(hidden_PD), dtype=torch.float32)
        slopes_PD = torch.empty_like(hidden_PD) if ctx.needs_input_grad[0] else None
        buffer_CV = hidden_PD.new_empty(min(chunk, len(hidden_PD)), len(head_VD))
        for start in range(0, len(hidden_PD), chunk):
            part = slice(start, start + chunk)
            hidden_CD, targets_C = hidden_PD[part], targets_P[part]
            logits_CV = torch.mm(hidden_CD, head_VD.T, out=buffer_CV[: len(hidden_CD)])
            if temperature != 1:
                logits_CV.div_(temperature)
            at = torch.arange(len(hidden_CD), device=targets_P.device), targets_C
            chosen_C = logits_CV[at].float()
            peaks_C1 = logits_CV.amax(1, keepdim=True)
            shares_CV = logits_CV.sub_(peaks_C1).exp_()
            sums_C = shares_CV.sum(1, dtype=torch.float32)
            logprobs_P[part] = chosen_C - peaks_C1.squeeze(1).float() - sums_C.log()
            if slopes_PD is not None:  # d log p(t) / d logits = onehot(t) - softmax
                shares_CV[at] = (shares_CV[at].float() - sums_C).to(shares_CV.dtype)
                slopes_PD[part] = torch.mm(shares_CV, head_VD) / (-temperature * sums_C.unsqueeze(1))
        ctx.save_for_backward(slopes_PD)
        return logprobs_P

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, None, None, None]:
        (slopes_PD,) = ctx.saved_tensors
        return grads[0].unsqueeze(1).to(slopes_PD.dtype) * slopes_PD, None, None, None, None
