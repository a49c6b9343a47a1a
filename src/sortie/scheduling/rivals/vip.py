"""VIP: success predicted by a Gaussian process over tasks, rollouts allocated by variance (arXiv 2602.01601).

Tasks come in epochs of random order. After a step with groups B of success rates p_B, the mean of every task's logit
moves by K_cB (K_BB + 1e-4 I)^-1 (logit p_B - m_B), from which the next step starts; the covariance stays the prior's,
an RBF kernel over task embeddings. Rollouts n_i of a batch minimise sum a_i (n_i - 1) / n_i^2, a_i = p_i (1 - p_i),
the variance of the gradient, within bounds and with the batch's budget (see `allocate`).

Ours: an embedding is the task's given features, each column scaled by its spread, or its hashed text (the paper has a
sentence encoder); tasks of different environments lie one more length scale apart; the length scale is the median
distance. Rates are clipped to half a success of the group: the published code's 1e-6 lets one failed group outweigh any
number of mixed ones (`clip` brings it back). Allocation is Dr. GRPO's objective, without the code's extra terms.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from pydantic import Field

from sortie.core.config import Config
from sortie.core.group import TaskRecord
from sortie.scheduling.rivals.allocate import allocate
from sortie.scheduling.rivals.base import Shown
from sortie.scheduling.rivals.embed import Embedding
from sortie.scheduling.rivals.tasks import Floats, Ints
from sortie.scheduling.rivals.turns import TurnRival

JITTER = 1e-4
"""On the diagonal of K_BB."""


class VipConfig(Config):
    """Options of VIP."""

    prior: float = 0.0
    """Logit of success of a task before anything is known."""
    least: int = Field(3, ge=3)
    """Fewest rollouts of a group, unless groups are smaller on average."""
    most: int = Field(32, ge=3)
    """Most rollouts of a group, unless groups are larger on average."""
    clip: float | None = Field(None, gt=0, lt=0.5)
    """Success rates are clipped to [clip, 1 - clip]; None: to half a success of the group."""


class Vip(TurnRival[VipConfig]):
    """Uniform choice, with more rollouts where their rewards are predicted to vary."""

    Config = VipConfig
    COLUMNS: ClassVar[Mapping[str, float]] = {"turns": 0.0, "logit": 0.0}

    def _begin(self) -> None:
        self._embedding = Embedding()

    def add(self, records: Sequence[TaskRecord]) -> None:
        """Take up new tasks; known keys are left as they are."""
        super().add(records)
        self._embedding.extend(self._tasks.records)

    def remove(self, keys: Sequence[str]) -> None:
        """Drop tasks; unknown keys are ignored, and results still in flight will not count."""
        super().remove(keys)
        self._embedding.extend(self._tasks.records)

    def _choose(self, groups: int) -> Ints:
        return self._in_turn(groups)

    def _sizes(self, rows: Ints, group_size: int) -> list[int]:
        p = _sigmoid(self._logits(rows))
        return allocate(p * (1.0 - p), group_size, self._config.least, self._config.most)

    def _learn(self, shown: Sequence[Shown]) -> None:
        super()._learn(shown)
        groups = [group for group in shown if group.scaled]
        if not groups:
            return
        rows, env = np.array([group.row for group in groups]), self._tasks.environment
        clip = [self._config.clip or 0.5 / max(len(group.scaled), 2) for group in groups]
        rate = np.clip([sum(group.scaled) / len(group.scaled) for group in groups], clip, 1.0 - np.array(clip))
        surprise = np.log(rate / (1.0 - rate)) - self._logits(rows)
        kernel = self._embedding.kernel(rows, env)
        weights = np.linalg.solve(kernel[rows] + JITTER * np.eye(len(rows)), surprise)
        self._tasks.column["logit"] += kernel @ weights

    def _logits(self, rows: Ints) -> Floats:
        return np.asarray(self._config.prior + self._tasks.column["logit"][rows])

    def _believe(self, rows: Ints) -> tuple[Floats, Floats, Floats]:
        """Success at the mean logit; its spread is that of the prior, whose covariance is never updated."""
        p = _sigmoid(self._logits(rows))
        return p, p * (1.0 - p), p * (1.0 - p) * self._environments.spread[self._tasks.environment[rows]]

    def state_dict(self) -> dict[str, Any]:
        """JSON values. Records are not in it: build with the run's current tasks, then load."""
        return {**super().state_dict(), "embedding": self._embedding.state_dict()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue a saved run; tasks it did not know join its epoch at the prior's mean."""
        super().load_state_dict(state)
        self._embedding.load_state_dict(state["embedding"])
        self._embedding.extend(self._tasks.records)


def _sigmoid(x: Floats) -> Floats:
    return np.asarray(1.0 / (1.0 + np.exp(-x)))
