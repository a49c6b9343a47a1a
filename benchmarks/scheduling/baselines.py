"""Predictors to be beaten: a constant, the mean of the environment, and a beta posterior per task.

Each has the part of the TaskScheduler contract that predicting needs. Evidence fades per update: by 0.9 where every
update brings some, by 0.99 for single tasks, which under `uniform` come round every 60 updates.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from sortie.scheduling import GroupResult, Prediction, TaskRecord, Verdict


class Cells:
    """A beta posterior per cell of tasks; a cell's prior is worth two rollouts at the mean of everything seen."""

    def __init__(self, records: Sequence[TaskRecord], cells: Sequence[Any], discount: float = 0.9) -> None:
        number = {cell: i for i, cell in enumerate(dict.fromkeys(cells))}
        self._cell = {record.key: number[cell] for record, cell in zip(records, cells, strict=True)}
        self._discount = discount
        self._passed, self._tried = np.zeros(len(number)), np.zeros(len(number))
        self._variance = self._binary = 1.0

    def predict(self, keys: Sequence[str]) -> Prediction:
        """Mean and deviation of the cell's posterior, and E[p (1 - p)] = ab / ((a + b)(a + b + 1)) times the variance
        of all rewards seen as a share of what binary ones would have shown (as in `scheduling.rewards`)."""
        rows = [self._cell[key] for key in keys]
        tried, passed = self._tried.sum() + 2.0, self._passed.sum() + 1.0
        middle = passed / tried
        a, b = self._passed[rows] + 2.0 * middle, (self._tried - self._passed)[rows] + 2.0 * (1.0 - middle)
        n = a + b
        variance = a * b / (n * (n + 1.0)) * self._variance / self._binary
        return Prediction(
            mean=tuple((a / n).tolist()),
            std=tuple(np.sqrt(a * b / (n**2 * (n + 1.0))).tolist()),
            variance=tuple(variance.tolist()),
        )

    def observe(self, results: Sequence[GroupResult]) -> list[Verdict]:
        """Fade, and count."""
        self._passed *= self._discount
        self._tried *= self._discount
        for result in results:
            rewards = [reward for reward in result.rewards if reward is not None]
            cell = self._cell[result.key]
            self._passed[cell] += sum(rewards)
            self._tried[cell] += len(rewards)
            mean, variance = np.mean(rewards), np.var(rewards, ddof=1)
            self._variance += float(variance)
            self._binary += float(mean * (1.0 - mean) + variance / len(rewards))
        return ["keep"] * len(results)


def constant(records: Sequence[TaskRecord]) -> Cells:
    """One cell for all."""
    return Cells(records, [0] * len(records))


def environment_mean(records: Sequence[TaskRecord]) -> Cells:
    """A cell per environment."""
    return Cells(records, [record.environment for record in records])


def task_beta(records: Sequence[TaskRecord]) -> Cells:
    """A cell per task: knows nothing at a first visit but the mean of everything."""
    return Cells(records, [record.key for record in records], discount=0.99)


BASELINES: dict[str, Any] = {"constant": constant, "environment": environment_mean, "task beta": task_beta}
