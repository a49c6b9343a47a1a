"""DUMP: an upper confidence bound on the mean absolute advantage of each environment (arXiv 2504.09710).

UCB(d) = mean |A| over the last 300 rollouts of d + sqrt(2 ln(N + 1) / (n_d + 1)), with n_d rollouts of d and N of all;
places go to environments with softmax(UCB / 0.1), and within one to tasks at random. |A| is GRPO's, scaled by the
group's standard deviation. The paper's distributions are environments here (ours).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from pydantic import Field

from sortie.core.config import Config
from sortie.scheduling.rivals.arms import absolute_advantages, race, softmax
from sortie.scheduling.rivals.base import Rival, Shown
from sortie.scheduling.rivals.tasks import Floats, Ints


class DumpConfig(Config):
    """Options of DUMP."""

    window: int = Field(300, ge=1)
    """Rollouts of an environment whose advantages are remembered."""
    temperature: float = Field(0.1, gt=0)
    """Of the softmax over environments."""


class Dump(Rival[DumpConfig]):
    """Draws environments by their upper confidence bounds."""

    Config = DumpConfig

    def _begin(self) -> None:
        self._window: dict[str, list[float]] = {}
        self._number: dict[str, int] = {}

    def bounds(self) -> Floats:
        """UCB of every environment, in the order of their numbers."""
        names = list(self._environments.row)
        mean = np.array([np.mean(self._window.get(name) or [0.0]) for name in names])
        number = np.array([self._number.get(name, 0) for name in names], dtype=float)
        return np.asarray(mean + np.sqrt(2.0 * np.log(number.sum() + 1.0) / (number + 1.0)))

    def _choose(self, groups: int) -> Ints:
        chances = softmax(self.bounds(), self._config.temperature)
        arm, names = self._tasks.environment, list(self._environments.row)
        score = race(arm, chances, names, self._free(), self._tasks.hashes, self._seed, self._selects)
        return self._lowest(score, groups)

    def _learn(self, shown: Sequence[Shown]) -> None:
        names = list(self._environments.row)
        for group in (group for group in shown if group.scaled):
            name = names[group.environment]
            window = self._window.get(name, []) + absolute_advantages(group.scaled).tolist()
            self._window[name] = window[-self._config.window :]
            self._number[name] = self._number.get(name, 0) + len(group.scaled)

    def _believe(self, rows: Ints) -> tuple[Floats, Floats, Floats]:
        """As all groups say, but for the variance: (mean |A| / 2)^2, as for binary rewards, where there are any."""
        mean, spread, variance = super()._believe(rows)
        names = list(self._environments.row)
        for i, env in enumerate(self._tasks.environment[rows].tolist()):
            if self._window.get(names[env]):
                variance[i] = (float(np.mean(self._window[names[env]])) / 2.0) ** 2 * self._environments.spread[env]
        return mean, spread, variance

    def state_dict(self) -> dict[str, Any]:
        """JSON values. Records are not in it: build with the run's current tasks, then load."""
        return {**super().state_dict(), "window": self._window, "number": self._number}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue a saved run; tasks it did not know are taken up as new."""
        super().load_state_dict(state)
        self._window = {name: list(values) for name, values in state["window"].items()}
        self._number = {name: int(number) for name, number in state["number"].items()}
