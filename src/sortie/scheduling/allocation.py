"""How many rollouts each chosen task gets, for a select's budget of groups x group_size.

A group trains by its squared advantages, sum (r - mean)^2, whose expectation for n rollouts is (n - 1) E[p (1 - p)]:
the first rollout only sets the baseline, and each further one is worth the pair's E[p (1 - p)] under its posterior.
Where groups count by whether they are informative at all, the rollout after n is worth what it adds to the chance
E[1 - p^n - (1 - p)^n], namely E[p^n (1 - p) + (1 - p)^n p]. Neither grows with n, so giving every rollout to where it
is worth the most is optimal (ours; greedy for separable concave sums: Fox 1966).
"""

from __future__ import annotations

import math

import numpy as np

from sortie.scheduling.factors import Floats, Ints


def bounds(group_size: int, stretch: float) -> tuple[int, int]:
    """Fewest and most rollouts of a group: group_size / stretch, but two, for one tells of no difference, and
    group_size x stretch."""
    return min(max(2, math.ceil(group_size / stretch - 1e-9)), group_size), math.floor(group_size * stretch + 1e-9)


def allocate(worth: Floats, group_size: int, least: int) -> Ints:
    """Sizes of the N groups of a select, summing to N x group_size.

    `worth[i, k]` is what rollout least + 1 + k adds to group i, not growing with k; a group has least + K rollouts at
    most. Ties go to the smaller group, then to the first.
    """
    groups, steps = worth.shape
    left = groups * (group_size - least)
    group, rollout = np.divmod(np.arange(worth.size), max(steps, 1))
    order = np.lexsort((group, rollout, -worth.ravel()))[:left]
    return np.asarray(least + np.bincount(group[order], minlength=groups))
