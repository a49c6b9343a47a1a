"""The greedy oracle: knows every pair's true success, so it exists in simulations only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np

from benchmarks.scheduling.learner import Learner
from sortie.scheduling import Assignment, GroupResult, Prediction, TaskRecord, Verdict


class Oracle:
    """A TaskScheduler that takes the groups of the largest expected gain, and is never wrong about p."""

    def __init__(self, learner: Learner, by: Literal["gain", "variance"] = "gain") -> None:
        self._learner, self._by = learner, by
        self._next = 0

    def select(self, groups: int, group_size: int) -> list[Assignment]:
        """The largest gain per cost: growth of the score, or reward variance."""
        world = self._learner.world
        p = self._learner.success()
        value = (self._learner.gain() if self._by == "gain" else p * (1.0 - p) / world.checks) / world.cost
        best = np.argsort(-value, kind="stable")[:groups]
        chosen = [
            Assignment(self._next + i, world.records[row].key, group_size)
            for i, row in enumerate(np.resize(best, groups).tolist())
        ]
        self._next += groups
        return chosen

    def observe(self, results: Sequence[GroupResult]) -> list[Verdict]:
        """Nothing to learn."""
        return ["keep"] * len(results)

    def predict(self, keys: Sequence[str]) -> Prediction:
        """The truth."""
        rows = [self._learner.row[key] for key in keys]
        p = self._learner.success()[rows]
        variance = p * (1.0 - p) / self._learner.world.checks[rows]
        return Prediction(mean=tuple(p.tolist()), std=(0.0,) * len(rows), variance=tuple(variance.tolist()))

    def add(self, records: Sequence[TaskRecord]) -> None:
        """Refused: worlds are fixed."""
        raise NotImplementedError("the oracle's tasks are its world's")

    def remove(self, keys: Sequence[str]) -> None:
        """Refused: worlds are fixed."""
        raise NotImplementedError("the oracle's tasks are its world's")

    def state_dict(self) -> dict[str, Any]:
        """JSON values."""
        return {"next": self._next}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take over a saved count."""
        self._next = int(state["next"])

    def metrics(self) -> dict[str, float]:
        """None."""
        return {}
