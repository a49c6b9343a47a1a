"""What rivals share: the books every TaskScheduler keeps. A rival adds how it chooses, learns and believes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from sortie.core.config import Config as BaseConfig
from sortie.core.group import Assignment, EnvironmentRecord, GroupResult, TaskRecord, Verdict
from sortie.scheduling.keyed import uniforms
from sortie.scheduling.ledger import Ledger, check_request, scored
from sortie.scheduling.rewards import EnvironmentStats
from sortie.scheduling.rivals.tasks import Floats, Ints, Tasks
from sortie.scheduling.scheduler import Prediction

C = TypeVar("C", bound=BaseConfig)

BUSY = 1e9
"""Added to the score of a task in flight, so that it comes last."""


@dataclass(frozen=True, slots=True)
class Shown:
    """A group that counts, of a task that is here."""

    row: int
    environment: int
    result: GroupResult
    scaled: tuple[float, ...]
    """Its rewards, brought to [0, 1] by the range its environment has shown; missing ones left out."""

    @property
    def differs(self) -> bool:
        """Whether it has a gradient."""
        return len(set(self.scaled)) > 1


class Rival(Generic[C]):
    """Keeps ledger, tasks and statistics; subclasses fill in the methods at the end."""

    Config: ClassVar[type[BaseConfig]]
    COLUMNS: ClassVar[Mapping[str, float]] = {}
    """What is remembered of each task, and where it starts."""

    def __init__(
        self,
        records: Sequence[TaskRecord],
        environments: Sequence[EnvironmentRecord] = (),
        seed: int = 0,
        config: C | None = None,
    ) -> None:
        self._config: C = config or self.Config()  # type: ignore[assignment]
        self._seed = seed
        self._selects = 0
        self._ledger = Ledger()
        self._tasks = Tasks({"draws": 0.0, **self.COLUMNS})
        self._environments = EnvironmentStats()
        self._environments.rows([record.name for record in environments], lambda name: 0.0)
        self._moments = np.zeros(3)  # number, sum and sum of squares of the scaled rewards seen
        self._groups = self._informative = 0
        self._begin()
        self.add(records)

    def select(self, groups: int, group_size: int) -> list[Assignment]:
        """The tasks this rival would roll out next; those in flight only when no others are left."""
        check_request(groups, group_size, len(self._tasks))
        rows = self._choose(groups)
        self._selects += 1
        np.add.at(self._tasks.column["draws"], rows, 1.0)
        sizes = self._sizes(rows, group_size)
        return [
            self._ledger.issue([self._tasks.records[row].key], size)[0]
            for row, size in zip(rows.tolist(), sizes, strict=True)
        ]

    def observe(self, results: Sequence[GroupResult]) -> list[Verdict]:
        """Learn from every group that counts."""
        counts = self._ledger.settle(results)
        shown = [self._shown(result) if new else None for result, new in zip(results, counts, strict=True)]
        learned = [group for group in shown if group is not None and group.scaled]
        for group in learned:
            rewards = np.array(group.scaled)
            self._moments += (len(rewards), rewards.sum(), (rewards**2).sum())
            self._groups += 1
            self._informative += group.differs
            self._environments.learn(group.environment, group.scaled, 1.0)
        known = [group for group in shown if group is not None]
        for row in (group.row for group in known if group.result.outcome == "abandoned"):
            draws = self._tasks.column["draws"]
            draws[row] = max(draws[row] - 1.0, 0.0)
        self._learn(known)
        return [self._verdict(group) if group and group.result.assignment >= 0 else "keep" for group in shown]

    def predict(self, keys: Sequence[str]) -> Prediction:
        """In units of the reward, by the range each environment has shown."""
        rows, stats = self._tasks.rows(keys), self._environments
        mean, spread, variance = self._believe(rows)
        env = self._tasks.environment[rows]
        low, width = stats.low[env], (stats.high - stats.low)[env]
        return Prediction(
            mean=tuple((low + width * mean).tolist()),
            std=tuple((width * spread).tolist()),
            variance=tuple((width**2 * variance).tolist()),
        )

    def add(self, records: Sequence[TaskRecord]) -> None:
        """Take up new tasks; known keys are left as they are."""
        self._join(self._tasks.add(records))

    def remove(self, keys: Sequence[str]) -> None:
        """Drop tasks; unknown keys are ignored, and results still in flight will not count."""
        self._tasks.remove(keys)
        self._ledger.forget(keys)

    def state_dict(self) -> dict[str, Any]:
        """JSON values. Records are not in it: build with the run's current tasks, then load."""
        return {
            "selects": self._selects,
            "ledger": self._ledger.state_dict(),
            "tasks": self._tasks.state_dict(),
            "environments": self._environments.state_dict(),
            "moments": self._moments.tolist(),
            "groups": [self._groups, self._informative],
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue a saved run; tasks it did not know are taken up as new."""
        self._selects = int(state["selects"])
        self._ledger.load_state_dict(state["ledger"])
        self._ledger.forget([key for key in self._ledger.busy if key not in self._tasks.row])
        self._environments.load_state_dict(state["environments"])
        self._tasks.load_state_dict(state["tasks"])
        self._moments = np.array(state["moments"], dtype=float)
        self._groups, self._informative = (int(n) for n in state["groups"])
        self._join(np.arange(len(self._tasks)))

    def metrics(self) -> dict[str, float]:
        """Informative share of the groups seen, share of tasks drawn at least once, share of draws per environment."""
        tasks, names = self._tasks, list(self._environments.row)
        draws = tasks.column["draws"]
        per_env = np.bincount(tasks.environment, draws, len(names)) / max(float(draws.sum()), 1.0)
        return {
            "informative_share": self._informative / max(self._groups, 1),
            "coverage": float((draws > 0).mean()) if len(tasks) else 0.0,
            "in_flight": float(len(self._ledger)),
            **{f"share/{name}": float(share) for name, share in zip(names, per_env, strict=True)},
        }

    def _shown(self, result: GroupResult) -> Shown | None:
        row = self._tasks.row.get(result.key)
        if row is None:
            return None
        env, rewards = int(self._tasks.environment[row]), scored(result)
        return Shown(row, env, result, tuple(self._environments.scale(env, rewards)) if rewards else ())

    def _noise(self, *counters: int | str) -> Floats:
        """One number in [0, 1) per task, keyed by its key and `counters`."""
        return uniforms(self._tasks.hashes, self._seed, *counters)

    def _free(self) -> NDArray[np.bool_]:
        free = np.ones(len(self._tasks), dtype=bool)
        free[[self._tasks.row[key] for key in self._ledger.busy]] = False
        return free

    def _lowest(self, score: Floats, groups: int, free: NDArray[np.bool_] | None = None) -> Ints:
        """Rows of the lowest scores, those not `free` last; all again and again when tasks are fewer than groups."""
        last = np.where(self._free() if free is None else free, score, score + BUSY)
        order = np.lexsort((self._noise("tie", self._selects), last))
        return np.resize(order[:groups], groups)

    def _join(self, rows: Ints) -> None:
        """Place tasks that have just come."""
        names = [self._tasks.records[row].environment for row in rows.tolist()]
        self._tasks.environment[rows] = self._environments.rows(names, lambda name: 0.0)

    def _begin(self) -> None:
        """Set up what the rival keeps besides columns, before the first tasks come."""

    def _choose(self, groups: int) -> Ints:
        """Rows to roll out."""
        return self._lowest(self._noise("select", self._selects), groups)

    def _sizes(self, rows: Ints, group_size: int) -> list[int]:
        """Rollouts of each; they sum to `len(rows) * group_size`."""
        return [group_size] * len(rows)

    def _learn(self, shown: Sequence[Shown]) -> None:
        """Take in the groups of one `observe`; those with no rewards were abandoned or not scored."""

    def _verdict(self, group: Shown) -> Verdict:
        """Whether a group stays in the batch."""
        return "keep"

    def _believe(self, rows: Ints) -> tuple[Floats, Floats, Floats]:
        """Mean, its standard deviation, and variance of scaled rewards: here what all groups so far say, for every task
        alike, with one made-up success and one failure."""
        number, total, squares = (self._moments + np.array([2.0, 1.0, 1.0])).tolist()
        mean = total / number
        variance = max(squares / number - mean**2, 0.0)
        ones = np.ones(len(rows))
        return mean * ones, (variance / (number + 1)) ** 0.5 * ones, variance * ones
