"""GRESO: pass over tasks whose last groups showed no variance (arXiv 2506.02177, algorithm 1).

Tasks come in epochs of random order. One whose last k groups all succeeded, or all failed, is passed over with chance
1 - max(p^k, 0.01), with one p for easy and one for hard tasks. After each step, p falls by 0.01 where the share of such
groups reached its target and rises by 0.01 where not; of the target share of 25%, a third is for easy tasks. The
published code starts both at 0.5, keeps them within [0.05, 0.95], and leaves them alone in the first epoch; on top runs
dynamic sampling, as here (`most`, see `rivals.dapo`).

Ours: a group of graded rewards that are all equal is easy if they lie in the upper half of the range its environment
has shown, else hard, where the code asks for 0.98 and 0.11. The adaptive batch size needs nothing here: a replacement
is asked for per group.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from pydantic import Field

from sortie.scheduling.rivals.base import Shown
from sortie.scheduling.rivals.dapo import DapoConfig, DynamicSampling
from sortie.scheduling.rivals.tasks import Floats, Ints


class GresoConfig(DapoConfig):
    """Options of GRESO."""

    target: float = Field(0.25, ge=0, le=1)
    """Share of groups without variance that p is steered to; a third of it for easy tasks."""
    first: float = Field(0.5, ge=0, le=1)
    """Where both p start."""
    step: float = Field(0.01, ge=0, le=1)
    """How far they move per step."""
    least: float = Field(0.01, gt=0, le=1)
    """Every task in turn is taken with at least this chance."""


BOUNDS = 0.05, 0.95
"""Of both p."""


class Greso(DynamicSampling[GresoConfig]):
    """Passes over what showed no variance lately."""

    Config = GresoConfig
    COLUMNS: ClassVar[Mapping[str, float]] = {"turns": 0.0, "easy": 0.0, "hard": 0.0}

    def _begin(self) -> None:
        super()._begin()
        self._p = {"easy": self._config.first, "hard": self._config.first}

    def _choose(self, groups: int) -> Ints:
        self._refill.open(groups)
        return self._in_turn(groups, self.skip_chance())

    def skip_chance(self) -> Floats:
        """1 - max(p^k, least) per task, k the length of its streak without variance."""
        keep = np.ones(len(self._tasks))
        for kind, p in self._p.items():
            keep = keep * np.maximum(p ** self._tasks.column[kind], self._config.least)
        return 1.0 - keep

    def _learn(self, shown: Sequence[Shown]) -> None:
        super()._learn(shown)
        scored = [group for group in shown if group.scaled]
        kinds = [_kind(group) for group in scored]
        for group, kind in zip(scored, kinds, strict=True):
            for name in self._p:
                streak = self._tasks.column[name]
                streak[group.row] = streak[group.row] + 1.0 if kind == name else 0.0
        if not scored or self._tasks.column["turns"].min() < 1:
            return
        for name, part in (("easy", 1 / 3), ("hard", 2 / 3)):
            share = kinds.count(name) / len(kinds)
            step = -self._config.step if share >= part * self._config.target else self._config.step
            self._p[name] = float(np.clip(self._p[name] + step, *BOUNDS))

    def _believe(self, rows: Ints) -> tuple[Floats, Floats, Floats]:
        """As all groups say, but for the variance, which shrinks with the streak as the chance to be taken does."""
        mean, spread, variance = super()._believe(rows)
        return mean, spread, variance * (1.0 - self.skip_chance()[rows])

    def state_dict(self) -> dict[str, Any]:
        """JSON values. Records are not in it: build with the run's current tasks, then load."""
        return {**super().state_dict(), "p": dict(self._p)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue a saved run; tasks it did not know join its epoch."""
        super().load_state_dict(state)
        self._p = {name: float(value) for name, value in state["p"].items()}

    def metrics(self) -> dict[str, float]:
        """Those of every rival, and both p."""
        return {**super().metrics(), **{f"p_{name}": value for name, value in self._p.items()}}


def _kind(group: Shown) -> str:
    if group.differs:
        return "mixed"
    return "easy" if group.scaled[0] > 0.5 else "hard"
