"""Range and second moment of each environment's rewards, so that graded rewards are judged by how much they vary."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
_FIRST = {
    "low": 0.0,
    "high": 1.0,
    "variance": 0.0,
    "binary_variance": 0.0,
    "informative": 0.0,
    "mixed": 0.0,
    "count": 0.0,
    "credit": 0.0,
}
_SUMS = ("variance", "binary_variance", "informative", "mixed", "count")


class EnvironmentStats:
    """Discounted sums per environment; one row each, never dropped."""

    def __init__(self) -> None:
        self.row: dict[str, int] = {}
        self.low = np.zeros(0)
        """Least reward seen, at most 0. Rewards are scaled to [0, 1] by the range seen."""
        self.high = np.zeros(0)
        """Largest reward seen, at least 1."""
        self.variance = np.zeros(0)
        """Sum over groups of the variance of their rewards, unbiased."""
        self.binary_variance = np.zeros(0)
        """The same for binary rewards of equal means."""
        self.informative = np.zeros(0)
        """Groups whose rewards differ."""
        self.mixed = np.zeros(0)
        """Groups whose mean is neither 0 nor 1."""
        self.count = np.zeros(0)
        """Groups scored."""
        self.credit = np.zeros(0)
        """Groups owed to the environment under its least share; not discounted."""

    def __len__(self) -> int:
        return len(self.row)

    def rows(self, names: Sequence[str], credit: Callable[[str], float]) -> list[int]:
        """Row of each name; a new one starts with `credit(name)`."""
        for name in names:
            if name not in self.row:
                self.row[name] = len(self.row)
                for column, first in _FIRST.items():
                    value = credit(name) if column == "credit" else first
                    setattr(self, column, np.append(getattr(self, column), value))
        return [self.row[name] for name in names]

    def scale(self, row: int, rewards: Sequence[float]) -> list[float]:
        """Rewards in [0, 1]; the range grows to hold them."""
        low = self.low[row] = min(float(self.low[row]), *rewards)
        high = self.high[row] = max(float(self.high[row]), *rewards)
        return [(reward - low) / (high - low) for reward in rewards]

    def learn(self, row: int, scaled: Sequence[float], weight: float) -> None:
        """Count a group of scaled rewards.

        With mean m and unbiased variance v of n rewards, m (1 - m) + v / n estimates p (1 - p) without bias, since
        E[m (1 - m)] = p (1 - p) - var / n; if the rewards are binary it equals v.
        """
        self.count[row] += weight
        n = len(scaled)
        if n > 1:
            m = sum(scaled) / n
            v = sum((reward - m) ** 2 for reward in scaled) / (n - 1)
            self.variance[row] += weight * v
            self.binary_variance[row] += weight * (m * (1 - m) + v / n)
            self.informative[row] += weight * (min(scaled) < max(scaled))
            self.mixed[row] += weight * (0.0 < m < 1.0)

    @property
    def spread(self) -> Floats:
        """Reward variance as a share of p (1 - p): 1 for binary rewards, less for graded ones.

        Ours; shrunk to 1 with the weight of about four groups of even binary rewards.
        """
        return (self.variance + 1.0) / (self.binary_variance + 1.0)

    @property
    def differing(self) -> Floats:
        """Share of groups with a mean inside (0, 1) whose rewards differ: 1 for binary rewards. Ours, shrunk to 1."""
        return (self.informative + 1.0) / (self.mixed + 1.0)

    def discount(self, factor: float) -> None:
        """Age the sums."""
        for column in _SUMS:
            setattr(self, column, getattr(self, column) * factor)

    def state_dict(self) -> dict[str, Any]:
        """JSON values."""
        return {"names": list(self.row), **{column: getattr(self, column).tolist() for column in _FIRST}}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take over saved sums; environments the state does not know follow, as they stand."""
        own = {name: {column: getattr(self, column)[i] for column in _FIRST} for name, i in self.row.items()}
        names = [*state["names"], *(name for name in own if name not in state["names"])]
        added = names[len(state["names"]) :]
        self.row = {name: i for i, name in enumerate(names)}
        for column in _FIRST:
            setattr(self, column, np.array([*state[column], *(own[name][column] for name in added)], dtype=float))
