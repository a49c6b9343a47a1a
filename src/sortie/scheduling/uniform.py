"""Every task equally often: without replacement, in epochs of keyed random order.

A task joins the epoch that runs when it is added. An abandoned assignment puts its task back into its epoch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import compress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sortie.core.config import Config
from sortie.core.group import Assignment, EnvironmentRecord, GroupResult, TaskRecord, Verdict
from sortie.scheduling.keyed import key_hashes, uniforms
from sortie.scheduling.ledger import Ledger, check_request, scored
from sortie.scheduling.scheduler import Prediction


class UniformConfig(Config):
    """No options."""


class Uniform:
    """The baseline every other scheduler is measured against."""

    Config = UniformConfig

    def __init__(
        self,
        records: Sequence[TaskRecord],
        environments: Sequence[EnvironmentRecord] = (),
        seed: int = 0,
        config: UniformConfig | None = None,
    ) -> None:
        self._seed = seed
        self._ledger = Ledger()
        self._records: list[TaskRecord] = []
        self._row: dict[str, int] = {}
        self._hashes = key_hashes([])
        self._draws = np.zeros(0, dtype=np.int64)
        self._order = np.zeros(0)  # each task's place within its epoch, in [0, 1)
        self._epoch = 0
        self._moments = np.zeros(3)  # number, sum and sum of squares of the rewards seen
        self._groups = self._informative = 0
        self.add(records)

    def select(self, groups: int, group_size: int) -> list[Assignment]:
        """The least drawn tasks first, in an order drawn anew for each epoch; those in flight last."""
        check_request(groups, group_size, len(self._records))
        self._epoch = int(self._draws.min())
        rank = (self._draws - self._epoch) + self._order
        rank[[self._row[key] for key in self._ledger.busy]] += 1e9
        first = min(groups, len(rank))
        chosen = np.argpartition(rank, first - 1)[:first]
        chosen = chosen[np.argsort(rank[chosen], kind="stable")]
        rows = np.resize(chosen, groups)
        np.add.at(self._draws, rows, 1)
        self._shuffle(chosen)
        return self._ledger.issue([self._records[row].key for row in rows], group_size)

    def observe(self, results: Sequence[GroupResult]) -> list[Verdict]:
        """Keep every group."""
        for result in compress(results, self._ledger.settle(results)):
            row = self._row.get(result.key)
            if result.outcome == "abandoned" and row is not None:
                self._draws[row] = max(self._draws[row] - 1, 0)
                self._shuffle(np.array([row]))
            rewards = scored(result)
            if rewards:
                self._moments += (len(rewards), sum(rewards), sum(reward**2 for reward in rewards))
                self._groups += 1
                self._informative += min(rewards) < max(rewards)
        return ["keep"] * len(results)

    def predict(self, keys: Sequence[str]) -> Prediction:
        """The same for every task: what all rewards so far say, with one made-up success and one failure."""
        for key in keys:
            if key not in self._row:
                raise KeyError(f"no task {key!r} in this scheduler")
        number, total, squares = (self._moments + np.array([2.0, 1.0, 1.0])).tolist()
        mean = total / number
        variance = max(squares / number - mean**2, 0.0)
        n = len(keys)
        return Prediction(mean=(mean,) * n, std=((variance / (number + 1)) ** 0.5,) * n, variance=(variance,) * n)

    def add(self, records: Sequence[TaskRecord]) -> None:
        """Take up new tasks; known keys are left as they are."""
        new = list({record.key: record for record in records if record.key not in self._row}.values())
        first = len(self._records)
        epoch = int(self._draws.min()) if first else self._epoch
        self._records.extend(new)
        self._row.update((record.key, first + i) for i, record in enumerate(new))
        self._hashes = np.append(self._hashes, key_hashes([record.key for record in new]))
        self._draws = np.append(self._draws, np.full(len(new), epoch, dtype=np.int64))
        self._order = np.append(self._order, np.zeros(len(new)))
        self._shuffle(np.arange(first, len(self._records)))

    def remove(self, keys: Sequence[str]) -> None:
        """Drop tasks; unknown keys are ignored, and results still in flight will not count."""
        kept = np.ones(len(self._records), dtype=bool)
        kept[[self._row[key] for key in set(keys) if key in self._row]] = False
        if len(self._draws):
            self._epoch = int(self._draws.min())
        self._records = [record for record, keep in zip(self._records, kept, strict=True) if keep]
        self._row = {record.key: i for i, record in enumerate(self._records)}
        self._hashes, self._draws, self._order = self._hashes[kept], self._draws[kept], self._order[kept]
        self._ledger.forget(keys)

    def _shuffle(self, rows: NDArray[np.int64]) -> None:
        """Draw the places of `rows` within the epochs they are now in."""
        for epoch in np.unique(self._draws[rows]):
            of_epoch = rows[self._draws[rows] == epoch]
            self._order[of_epoch] = uniforms(self._hashes[of_epoch], self._seed, "epoch", int(epoch))

    def state_dict(self) -> dict[str, Any]:
        """JSON values. Records are not in it: build with the run's current tasks, then load."""
        return {
            "ledger": self._ledger.state_dict(),
            "epoch": int(self._draws.min()) if len(self._draws) else self._epoch,
            "draws": {record.key: int(n) for record, n in zip(self._records, self._draws, strict=True)},
            "moments": self._moments.tolist(),
            "groups": [self._groups, self._informative],
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue a saved run; tasks it did not know join its epoch."""
        self._ledger.load_state_dict(state["ledger"])
        self._ledger.forget([key for key in self._ledger.busy if key not in self._row])
        self._epoch = int(state["epoch"])
        draws = [state["draws"].get(record.key, self._epoch) for record in self._records]
        self._draws = np.array(draws, dtype=np.int64)
        self._shuffle(np.arange(len(draws)))
        self._moments = np.array(state["moments"], dtype=float)
        self._groups, self._informative = (int(n) for n in state["groups"])

    def metrics(self) -> dict[str, float]:
        """Informative share of the groups seen, share of tasks drawn at least once, share of draws per environment."""
        drawn = max(int(self._draws.sum()), 1)
        shares = {f"share/{record.environment}": 0.0 for record in self._records}
        for record, draws in zip(self._records, self._draws.tolist(), strict=True):
            shares[f"share/{record.environment}"] += draws / drawn
        return {
            "informative_share": self._informative / max(self._groups, 1),
            "coverage": float((self._draws > 0).mean()) if len(self._draws) else 0.0,
            "in_flight": float(len(self._ledger)),
            **shares,
        }
