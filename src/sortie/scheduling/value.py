"""The value of a candidate, in parts: what is exploited, what is explored, and what it costs.

    value = (signal + spread_weight x spread of the signal + coverage_weight x bonus) / divisor
    divisor = (relative cost)^exponent x (1 + repeat x tries / (1 + mean tries))

Signals are in units of the largest possible one. Ours; the spread term is an upper confidence bound (Auer 2002) on the
signal, the bonus one on what an environment and a hint were tried.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sortie.scheduling.factors import Floats, Ints
from sortie.scheduling.rewards import EnvironmentStats
from sortie.scheduling.signal import Outlook


@dataclass(frozen=True, slots=True)
class Value:
    """Parts of the value, one entry per candidate, before the division by cost."""

    signal: Floats
    spread: Floats
    """Weighted standard deviation of the signal."""
    divisor: Floats
    """Relative cost to the power of the exponent, and more for a task rolled out before."""

    @property
    def fixed(self) -> Floats:
        """What does not change while a batch is chosen."""
        return np.asarray((self.signal + self.spread) / self.divisor)


def value_of(
    outlook: Outlook, environment: Ints, stats: EnvironmentStats, *, kind: str, spread: float, divisor: Floats
) -> Value:
    """Signal by `kind`: "variance" of rewards (1: binary at p = 1/2) or "informative", the chance that they differ."""
    if kind == "variance":
        scale = 4.0 * stats.spread[environment]
        return Value(outlook.variance * scale, spread * outlook.variance_sd * scale, divisor)
    scale = stats.differing[environment]
    return Value(outlook.chance * scale, spread * outlook.chance_sd * scale, divisor)
