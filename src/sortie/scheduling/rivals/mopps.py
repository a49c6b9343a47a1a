"""MoPPS: a beta posterior of success per task, Thompson sampling, nearest to one half (arXiv 2507.04632).

After a group with s successes and f failures, a <- l a + (1 - l) a0 + s and b <- l b + (1 - l) b0 + f, with a0 = b0 = 1
and l = 0.5. Each select draws a pool of 8 times as many tasks, one success rate per task from its posterior, and takes
those nearest to 0.5. Only tasks that were rolled out are updated.

Ours: the pool is drawn anew each time, where the published code walks through shuffled epochs; a graded reward, brought
to [0, 1], counts as that part of a success.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np
from pydantic import Field

from sortie.core.config import Config
from sortie.scheduling.rivals.base import Rival, Shown
from sortie.scheduling.rivals.beta import beta_draws, beta_moments
from sortie.scheduling.rivals.tasks import Floats, Ints


class MoppsConfig(Config):
    """Options of MoPPS."""

    decay: float = Field(0.5, ge=0, le=1)
    """What is left of a task's evidence when its next group comes (l)."""
    pool: int = Field(8, ge=1)
    """Candidates per place."""
    target: float = Field(0.5, ge=0, le=1)
    """Success rate that is looked for."""


class Mopps(Rival[MoppsConfig]):
    """Takes the tasks whose drawn success rates lie nearest to the target."""

    Config = MoppsConfig
    COLUMNS: ClassVar[Mapping[str, float]] = {"a": 1.0, "b": 1.0}

    def _choose(self, groups: int) -> Ints:
        column, config = self._tasks.column, self._config
        rate = beta_draws(column["a"], column["b"], self._tasks.hashes, self._seed, "rate", self._selects)
        place = self._noise("pool", self._selects) + 2.0 * ~self._free()
        outside = np.ones(len(place))
        outside[np.argsort(place, kind="stable")[: config.pool * groups]] = 0.0
        return self._lowest(np.abs(rate - config.target) + outside, groups)

    def _learn(self, shown: Sequence[Shown]) -> None:
        a, b, decay = self._tasks.column["a"], self._tasks.column["b"], self._config.decay
        for group in shown:
            if group.scaled:
                successes = sum(group.scaled)
                a[group.row] = decay * a[group.row] + (1.0 - decay) + successes
                b[group.row] = decay * b[group.row] + (1.0 - decay) + len(group.scaled) - successes

    def _believe(self, rows: Ints) -> tuple[Floats, Floats, Floats]:
        """Moments of the posterior; graded rewards vary less than binary ones by what their environment has shown."""
        mean, spread, variance = beta_moments(self._tasks.column["a"][rows], self._tasks.column["b"][rows])
        return mean, spread, variance * self._environments.spread[self._tasks.environment[rows]]
