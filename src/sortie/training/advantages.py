"""How the rewards of a group become advantages. Pure functions; G is the number of scored siblings."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Rewards = NDArray[np.float64]


def group_mean_advantages(rewards_G: Rewards) -> Rewards:
    """Each reward minus the mean of its group (Dr. GRPO, arXiv 2503.20783, sec. 3.1: no division by the spread)."""
    centred: Rewards = rewards_G - rewards_G.mean()
    return centred


def group_norm_advantages(rewards_G: Rewards) -> Rewards:
    """Minus the mean, over the standard deviation (GRPO, arXiv 2402.03300, sec. 4.1.2). 0 where all are equal."""
    spread = rewards_G.std()
    return group_mean_advantages(rewards_G) / spread if spread > 0 else np.zeros_like(rewards_G)


ADVANTAGES: dict[str, Callable[[Rewards], Rewards]] = {
    "group_mean": group_mean_advantages,
    "group_norm": group_norm_advantages,
}
