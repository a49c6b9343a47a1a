"""VCRL: a gate on reward variance, and a bank of tasks that passed it (arXiv 2509.19803).

A group's score is its unbiased reward variance over the largest possible for its size: n / (4 (n - 1)) for even n,
(n + 1) / (4 n) for odd. Groups below a threshold leave the batch, and tasks from the bank of those that passed take
their places, highest priority first.

The threshold (0.3 for the first 20 steps, then 0.8) and the momentum (0.9) are the paper's as far as we know; its
exact update of priorities is not in the notes we had. Ours: a task enters with its score, later scores move its
priority as 0.9 old + 0.1 new, and it leaves when it fails the gate. Where the paper may train on stored rollouts, here
bank tasks are rolled out again by the present policy, asked for by `refill` verdicts and not gated a second time; what
the bank cannot fill comes in turn. A graded reward is brought to [0, 1] first. A step is a batch that was asked for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from pydantic import Field

from sortie.core.config import Config
from sortie.core.group import Assignment, Verdict
from sortie.scheduling.rivals.base import Shown
from sortie.scheduling.rivals.refill import Refill
from sortie.scheduling.rivals.tasks import Floats, Ints
from sortie.scheduling.rivals.turns import TurnRival


class VcrlConfig(Config):
    """Options of VCRL."""

    early: float = Field(0.3, ge=0, le=1)
    """Threshold of the first steps."""
    late: float = Field(0.8, ge=0, le=1)
    """Threshold after them."""
    early_steps: int = Field(20, ge=0)
    """How many are the first steps."""
    momentum: float = Field(0.9, ge=0, le=1)
    """What is left of a task's priority when it is scored again."""


def variance_score(scaled: Sequence[float]) -> float:
    """Variance of a group's rewards in [0, 1] over the largest possible; 0 for fewer than two."""
    n = len(scaled)
    if n < 2:
        return 0.0
    most = n / (4.0 * (n - 1)) if n % 2 == 0 else (n + 1) / (4.0 * n)
    return float(np.var(scaled, ddof=1)) / most


class Vcrl(TurnRival[VcrlConfig]):
    """Replaces groups of low variance by tasks that showed much."""

    Config = VcrlConfig
    COLUMNS: ClassVar[Mapping[str, float]] = {"turns": 0.0, "bank": 0.0, "variance": -1.0}

    def _begin(self) -> None:
        self._refill = Refill(2.0)
        self._steps = 0
        self._fills = False
        self._replacements: set[int] = set()

    @property
    def threshold(self) -> float:
        """Of the present step."""
        return self._config.early if self._steps <= self._config.early_steps else self._config.late

    def select(self, groups: int, group_size: int) -> list[Assignment]:
        """The next tasks in turn, or those of the bank to fill up the batch before."""
        assignments = super().select(groups, group_size)
        if self._fills:
            self._replacements |= {assignment.id for assignment in assignments}
        return assignments

    def _choose(self, groups: int) -> Ints:
        self._fills = self._refill.open(groups)
        self._steps += not self._fills
        bank, free = self._tasks.column["bank"], self._free()
        banked = np.flatnonzero((bank > 0) & free)
        if not self._fills or not len(banked):
            return self._in_turn(groups)
        best = banked[np.lexsort((self._noise("tie", self._selects)[banked], -bank[banked]))][:groups]
        return best if len(best) == groups else np.append(best, self._in_turn(groups - len(best), out=best))

    def _learn(self, shown: Sequence[Shown]) -> None:
        super()._learn(shown)
        bank, momentum = self._tasks.column["bank"], self._config.momentum
        for group in shown:
            if group.scaled:
                score = variance_score(group.scaled)
                self._tasks.column["variance"][group.row] = float(np.var(group.scaled))
                old = float(bank[group.row])
                new = momentum * old + (1.0 - momentum) * score if old else score
                bank[group.row] = new if score >= self.threshold else 0.0

    def _verdict(self, group: Shown) -> Verdict:
        if group.result.assignment in self._replacements:
            self._replacements.discard(group.result.assignment)
            return "keep"
        return "keep" if variance_score(group.scaled) >= self.threshold or not self._refill.grant() else "refill"

    def _believe(self, rows: Ints) -> tuple[Floats, Floats, Floats]:
        """As all groups say, but for the variance: that of the task's last group, where there is one."""
        mean, spread, variance = super()._believe(rows)
        last = self._tasks.column["variance"][rows]
        return mean, spread, np.where(last >= 0, last, variance)

    def state_dict(self) -> dict[str, Any]:
        """JSON values. Records are not in it: build with the run's current tasks, then load."""
        own = {"refill": self._refill.state_dict(), "steps": self._steps, "replacements": sorted(self._replacements)}
        return {**super().state_dict(), **own}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue a saved run; tasks it did not know join its epoch."""
        super().load_state_dict(state)
        self._refill.load_state_dict(state["refill"])
        self._steps, self._replacements = int(state["steps"]), {int(number) for number in state["replacements"]}

    def metrics(self) -> dict[str, float]:
        """Those of every rival, and the share of tasks in the bank."""
        bank = self._tasks.column["bank"]
        return {**super().metrics(), "banked": float((bank > 0).mean()) if len(bank) else 0.0}
