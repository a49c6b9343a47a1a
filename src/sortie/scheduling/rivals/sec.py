"""SEC: a value per category of tasks, learned by TD(0) from absolute advantages (arXiv 2505.14970).

Q(c) <- (1 - a) Q(c) + a r(c), where r(c) is the mean |A| of this step's rollouts of category c, starting from 0; places
go to categories with softmax(Q / t), and within one to tasks at random. |A| is GRPO's, scaled by the group's standard
deviation.

Ours: a category is an environment, split by the feature named `level` where its tasks have it; the paper takes given
topics or levels of difficulty, and tunes a and t for each data set, so one value of each serves here.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from pydantic import Field

from sortie.core.config import Config
from sortie.core.group import TaskRecord
from sortie.scheduling.rivals.arms import absolute_advantages, race, softmax
from sortie.scheduling.rivals.base import Rival, Shown
from sortie.scheduling.rivals.tasks import Floats, Ints


class SecConfig(Config):
    """Options of SEC."""

    rate: float = Field(0.5, gt=0, le=1)
    """Step of the TD(0) update (a)."""
    temperature: float = Field(0.5, gt=0)
    """Of the softmax over categories (t)."""
    level: str | None = "level"
    """Feature that splits an environment into categories; None: environments are not split."""


class Sec(Rival[SecConfig]):
    """Draws categories by their values."""

    Config = SecConfig

    def _begin(self) -> None:
        self._value: dict[str, float] = {}

    def category(self, record: TaskRecord) -> str:
        """The name of a task's category."""
        features, level = record.features, self._config.level
        if level is None or not isinstance(features, Mapping) or level not in features:
            return record.environment
        return f"{record.environment} {level} {features[level]:g}"

    def _choose(self, groups: int) -> Ints:
        number: dict[str, int] = {}
        arm = np.array([number.setdefault(self.category(record), len(number)) for record in self._tasks.records])
        chances = softmax(np.array([self._value.get(name, 0.0) for name in number]), self._config.temperature)
        score = race(arm, chances, list(number), self._free(), self._tasks.hashes, self._seed, self._selects)
        return self._lowest(score, groups)

    def _learn(self, shown: Sequence[Shown]) -> None:
        seen: defaultdict[str, list[float]] = defaultdict(list)
        for group in (group for group in shown if group.scaled):
            seen[self.category(self._tasks.records[group.row])] += absolute_advantages(group.scaled).tolist()
        for name, advantages in seen.items():
            old = self._value.get(name, 0.0)
            self._value[name] = old + self._config.rate * (float(np.mean(advantages)) - old)

    def _believe(self, rows: Ints) -> tuple[Floats, Floats, Floats]:
        """As all groups say, but for the variance: (Q / 2)^2, as for binary rewards, where the category was seen."""
        mean, spread, variance = super()._believe(rows)
        for i, row in enumerate(rows.tolist()):
            value = self._value.get(self.category(self._tasks.records[row]))
            if value is not None:
                variance[i] = (value / 2.0) ** 2 * self._environments.spread[self._tasks.environment[row]]
        return mean, spread, variance

    def state_dict(self) -> dict[str, Any]:
        """JSON values. Records are not in it: build with the run's current tasks, then load."""
        return {**super().state_dict(), "value": dict(self._value)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue a saved run; tasks it did not know are taken up as new."""
        super().load_state_dict(state)
        self._value = {name: float(value) for name, value in state["value"].items()}
