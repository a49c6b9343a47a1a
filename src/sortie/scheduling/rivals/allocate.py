"""How many rollouts each group of a batch gets, for the least variance of the gradient."""

from __future__ import annotations

import heapq
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray


def allocate(signal: Sequence[float] | NDArray[np.float64], group_size: int, least: int, most: int) -> list[int]:
    """Minimise sum a_i (n_i - 1) / n_i^2 for sum n_i = groups x group_size, least <= n_i <= most (arXiv 2602.01601).

    Exact for least >= 3, where every term is convex: rollouts are given out one by one where they help most, ties to
    the smaller group. Groups of `least` or fewer on average are all of equal size.
    """
    sizes = [min(least, group_size)] * len(signal)
    most = max(most, group_size)
    gains = [(-_gain(a, n), n, i) for i, (a, n) in enumerate(zip(signal, sizes, strict=True))]
    heapq.heapify(gains)
    for _ in range(len(sizes) * group_size - sum(sizes)):
        _, _, i = heapq.heappop(gains)
        sizes[i] += 1
        if sizes[i] < most:
            heapq.heappush(gains, (-_gain(signal[i], sizes[i]), sizes[i], i))
    return sizes


def _gain(a: float, n: int) -> float:
    """What one more rollout takes off a group's term."""
    return float(a) * ((n - 1) / n**2 - n / (n + 1) ** 2)
