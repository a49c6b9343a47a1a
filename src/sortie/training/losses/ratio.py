"""The importance ratio to the sampler's policy, and what it says about the step."""

from __future__ import annotations

from torch import Tensor


def ratio_figures(logprobs_P: Tensor, behaviour_P: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
    """p / q per token, and per-token figures: `ratio`, `mismatch` (|log p - log q|) and `kl`.

    `kl` is the estimator r - 1 - log r of KL(q, p) for r = p / q (Schulman 2020, "Approximating KL divergence", k3).
    """
    difference_P = logprobs_P - behaviour_P
    ratio_P = difference_P.exp()
    still_P = difference_P.detach()
    return ratio_P, {
        "ratio": ratio_P.detach(),
        "mismatch": still_P.abs(),
        "kl": still_P.exp() - 1 - still_P,
    }
