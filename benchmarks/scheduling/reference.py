"""The crude first model that the world's constants were set by: Bayesian regression with fixed weights.

Mean logit of a pair = level + environment + pattern, each with a fixed normal prior; a group's smoothed logit is an
observation, discounted by age. Nothing is kept of single pairs. It takes the largest E[p (1 - p)] + half the standard
deviation of p, and one group in twenty at random. It exists to place the world, not to compete.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sortie.scheduling import Assignment, GroupResult, Prediction, TaskRecord, Verdict

Floats = NDArray[np.float64]
LEVEL_SD, EFFECT_SD, OWN_SD = 3.0, 2.0, 1.0
DISCOUNT = 0.9
"""Per update."""
RANDOM = 0.05
SMOOTH = 0.5
"""Added to successes and failures of a group before its logit is taken."""
SPREAD = 0.5
"""Weight of the standard deviation of p in the value."""


class Regression:
    """A TaskScheduler with indicators of environment and text template."""

    def __init__(self, records: Sequence[TaskRecord], seed: int = 0) -> None:
        self._records = tuple(records)
        self._row = {record.key: i for i, record in enumerate(records)}
        environments = _numbers([record.environment for record in records])
        patterns = _numbers([re.sub(r"\d+", "0", record.text) for record in records])
        self._columns = np.stack(
            [np.zeros_like(environments), 1 + environments, 1 + environments.max() + 1 + patterns], axis=1
        )
        width = int(self._columns.max()) + 1
        self._prior = np.array([LEVEL_SD**-2.0, *([EFFECT_SD**-2.0] * (width - 1))])
        self._precision = np.zeros((width, width))
        self._linear = np.zeros(width)
        self._rng = np.random.default_rng([seed, 7])
        self._next = 0

    def _logits(self) -> tuple[Floats, Floats]:
        cov = np.linalg.inv(self._precision + np.diag(self._prior))
        mean = cov @ self._linear
        columns = self._columns
        var = cov[columns[:, :, None], columns[:, None, :]].sum(axis=(1, 2)) + OWN_SD**2
        return np.asarray(mean[columns].sum(axis=1)), np.asarray(var)

    def select(self, groups: int, group_size: int) -> list[Assignment]:
        """The largest expected variance, and a few at random."""
        _, std, variance = self._believed()
        value = variance + SPREAD * std + 1e-9 * self._rng.random(len(variance))
        value[self._rng.random(len(value)) < RANDOM * groups / len(value)] = np.inf
        best = np.argsort(-value)[:groups]
        chosen = [Assignment(self._next + i, self._records[row].key, group_size) for i, row in enumerate(best.tolist())]
        self._next += groups
        return chosen

    def observe(self, results: Sequence[GroupResult]) -> list[Verdict]:
        """Weighted least squares on smoothed logits."""
        self._precision *= DISCOUNT
        self._linear *= DISCOUNT
        for result in results:
            rewards = [reward for reward in result.rewards if reward is not None]
            n, p = len(rewards), (sum(rewards) + SMOOTH) / (len(rewards) + 2 * SMOOTH)
            weight = 1.0 / (1.0 / (n * p * (1 - p)) + OWN_SD**2)
            columns = self._columns[self._row[result.key]]
            self._precision[np.ix_(columns, columns)] += weight
            self._linear[columns] += weight * np.log(p / (1 - p))
        return ["keep"] * len(results)

    def _believed(self) -> tuple[Floats, Floats, Floats]:
        mean, var = self._logits()
        nodes, weights = np.polynomial.hermite_e.hermegauss(9)
        p = 1.0 / (1.0 + np.exp(-(mean + np.sqrt(var) * nodes[:, None])))
        weights = weights / weights.sum()
        m = weights @ p
        return m, np.sqrt(np.maximum(weights @ p**2 - m**2, 0.0)), weights @ (p * (1 - p))

    def predict(self, keys: Sequence[str]) -> Prediction:
        """By the regression alone."""
        rows = [self._row[key] for key in keys]
        mean, std, variance = (column[rows] for column in self._believed())
        return Prediction(mean=tuple(mean.tolist()), std=tuple(std.tolist()), variance=tuple(variance.tolist()))

    def add(self, records: Sequence[TaskRecord]) -> None:
        """Refused: a reference for fixed worlds."""
        raise NotImplementedError("the crude regression has a fixed set of tasks")

    def remove(self, keys: Sequence[str]) -> None:
        """Refused: a reference for fixed worlds."""
        raise NotImplementedError("the crude regression has a fixed set of tasks")

    def state_dict(self) -> dict[str, Any]:
        """Refused: runs of the benchmark are short."""
        raise NotImplementedError("the crude regression is not checkpointed")

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Refused: runs of the benchmark are short."""
        raise NotImplementedError("the crude regression is not checkpointed")

    def metrics(self) -> dict[str, float]:
        """None."""
        return {}


def _numbers(names: Sequence[str]) -> NDArray[np.int64]:
    number = {name: i for i, name in enumerate(dict.fromkeys(names))}
    return np.array([number[name] for name in names], dtype=np.int64)
