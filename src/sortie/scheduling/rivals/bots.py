"""BOTS: beta posteriors of every task move at every step, also of those not rolled out (arXiv 2510.26374).

a <- (1 - l) a + l a0 + (1 - r) s + r s', and b likewise with failures, with a0 = b0 = 1, l = 0.1 and r = 0.1. s counts
the successes of a task that was rolled out, and s' = s for it; for any other s = 0 and s' = n p', pseudo-successes of a
group of n. Thompson sampling takes the tasks nearest to success 0.5 out of all.

The paper predicts p' by interpolation between two reference models: with their mean success on the tasks rolled out,
lo and hi, and the policy's, x, the ability c = (x - lo) / (hi - lo), smoothed by 0.9, gives p' = lo_i + c (hi_i - lo_i)
for task i, clipped to [0, 1]. `anchors` names the features that hold lo_i and hi_i. Without them (ours): p' is the mean
success of this step's groups in the task's environment, and tasks of environments that had none only forget.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from pydantic import Field

from sortie.core.config import Config
from sortie.core.errors import ConfigError
from sortie.core.group import TaskRecord
from sortie.scheduling.rivals.base import Rival, Shown
from sortie.scheduling.rivals.beta import beta_draws, beta_moments
from sortie.scheduling.rivals.tasks import Floats, Ints

SMOOTHING = 0.9
"""What is left of the old ability at each step."""


class BotsConfig(Config):
    """Options of BOTS."""

    forget: float = Field(0.1, ge=0, le=1)
    """How far posteriors go back to their prior at each step (l)."""
    implicit: float = Field(0.1, ge=0, le=1)
    """Weight of the evidence for tasks that were not rolled out (r)."""
    target: float = Field(0.5, ge=0, le=1)
    """Success rate that is looked for."""
    anchors: tuple[str, str] | None = None
    """Features that hold the success rates of a weak and a strong reference model; None: use environments' means."""


class Bots(Rival[BotsConfig]):
    """Takes the tasks whose drawn success rates lie nearest to the target."""

    Config = BotsConfig
    COLUMNS: ClassVar[Mapping[str, float]] = {"a": 1.0, "b": 1.0}

    def _begin(self) -> None:
        self._ability: float | None = None

    def _choose(self, groups: int) -> Ints:
        column = self._tasks.column
        rate = beta_draws(column["a"], column["b"], self._tasks.hashes, self._seed, "rate", self._selects)
        return self._lowest(np.abs(rate - self._config.target), groups)

    def _learn(self, shown: Sequence[Shown]) -> None:
        groups = [group for group in shown if group.scaled]
        if not groups:
            return
        config, tasks = self._config, self._tasks
        successes, failures = np.zeros(len(tasks)), np.zeros(len(tasks))
        for group in groups:
            successes[group.row] += sum(group.scaled)
            failures[group.row] += len(group.scaled) - sum(group.scaled)
        guess, weight = self._guess(groups)
        others = np.where(successes + failures > 0, 0.0, weight)
        size = others * config.implicit * sum(len(group.scaled) for group in groups) / len(groups)
        for name, real, share in (("a", successes, guess), ("b", failures, 1.0 - guess)):
            tasks.column[name] = (1.0 - config.forget) * tasks.column[name] + config.forget + real + size * share

    def _guess(self, groups: Sequence[Shown]) -> tuple[Floats, Floats]:
        """Success rate predicted for every task, and 1 where there is such a prediction."""
        rates = np.array([sum(group.scaled) / len(group.scaled) for group in groups])
        if self._config.anchors is None:
            env, size = [group.environment for group in groups], len(self._environments)
            number = np.bincount(env, minlength=size)
            mean = np.bincount(env, rates, size) / np.maximum(number, 1)
            return mean[self._tasks.environment], (number > 0)[self._tasks.environment].astype(float)
        low, high = self._anchors()
        rows = [group.row for group in groups]
        ability = (rates.mean() - low[rows].mean()) / max(float(high[rows].mean() - low[rows].mean()), 1e-6)
        old = ability if self._ability is None else self._ability
        self._ability = float(SMOOTHING * old + (1.0 - SMOOTHING) * ability)
        return np.clip(low + self._ability * (high - low), 0.0, 1.0), np.ones(len(low))

    def _anchors(self) -> tuple[Floats, Floats]:
        low, high = np.array([self._anchor(record) for record in self._tasks.records]).T
        return low, high

    def _anchor(self, record: TaskRecord) -> tuple[float, float]:
        features, names = record.features, self._config.anchors or ("", "")
        if not isinstance(features, Mapping) or not all(name in features for name in names):
            raise ConfigError(f"task {record.key!r} has no features {names[0]!r} and {names[1]!r} (scheduler.anchors)")
        return features[names[0]], features[names[1]]

    def add(self, records: Sequence[TaskRecord]) -> None:
        """Take up new tasks; known keys are left as they are.

        Raises: ConfigError if one lacks the features that `anchors` names.
        """
        if self._config.anchors is not None:
            for record in records:
                self._anchor(record)
        super().add(records)

    def _believe(self, rows: Ints) -> tuple[Floats, Floats, Floats]:
        """Moments of the posterior; graded rewards vary less than binary ones by what their environment has shown."""
        mean, spread, variance = beta_moments(self._tasks.column["a"][rows], self._tasks.column["b"][rows])
        return mean, spread, variance * self._environments.spread[self._tasks.environment[rows]]

    def state_dict(self) -> dict[str, Any]:
        """JSON values. Records are not in it: build with the run's current tasks, then load."""
        return {**super().state_dict(), "ability": self._ability}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue a saved run; tasks it did not know are taken up as new."""
        super().load_state_dict(state)
        self._ability = state["ability"]
