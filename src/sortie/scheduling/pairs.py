"""What is remembered of each (environment, task) pair, as columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sortie.core.group import TaskRecord
from sortie.scheduling.keyed import key_hashes

UNVISITED = -1
_COLUMNS: dict[str, type] = {
    "hashes": np.uint64,
    "environment": np.int64,
    "hint": np.int64,
    "cell": np.int64,
    "pattern": np.int64,
    "precision": np.float64,
    "linear": np.float64,
    "count": np.float64,
    "cost": np.float64,
}


class Departed:
    """What removed pairs taught: it keeps speaking for their environment, hint and pattern until it is forgotten."""

    def __init__(self) -> None:
        self.rows = np.zeros((0, 5))
        """Environment, hint, pattern, precision and linear term of each."""

    def append(self, pairs: Pairs, gone: NDArray[np.int64]) -> None:
        """Keep what the visited ones among `gone` rows taught."""
        gone = gone[pairs.precision[gone] > 0]
        columns = (pairs.environment, pairs.hint, pairs.pattern, pairs.precision, pairs.linear)
        self.rows = np.concatenate([self.rows, np.stack([column[gone] for column in columns], axis=1)])

    def discount(self, factor: float) -> None:
        """Age them, and drop those that say nothing any more."""
        self.rows[:, 3:] *= factor
        self.rows = self.rows[self.rows[:, 3] > 1e-3]


class Pairs:
    """One row per pair. Rows keep their order when others leave, and close up."""

    def __init__(self) -> None:
        self.records: list[TaskRecord] = []
        self.row: dict[str, int] = {}
        self.hashes = np.zeros(0, dtype=np.uint64)
        self.environment = np.zeros(0, dtype=np.int64)
        self.hint = np.zeros(0, dtype=np.int64)
        self.cell = np.zeros(0, dtype=np.int64)
        self.pattern = np.zeros(0, dtype=np.int64)
        """Of its last rollouts; UNVISITED before."""
        self.precision = np.zeros(0)
        """Of its Gaussian site, discounted."""
        self.linear = np.zeros(0)
        """Precision times mean of its site, discounted."""
        self.count = np.zeros(0)
        """Groups seen, discounted."""
        self.cost = np.zeros(0)
        self.departed = Departed()

    def __len__(self) -> int:
        return len(self.records)

    def add(self, records: Sequence[TaskRecord]) -> int:
        """Append a row per record; environment, hint and cell are the caller's to set. Returns the first new row."""
        first = len(self)
        self.records.extend(records)
        self.row.update((record.key, first + i) for i, record in enumerate(records))
        for name, kind in _COLUMNS.items():
            setattr(self, name, np.append(getattr(self, name), np.zeros(len(records), dtype=kind)))
        self.hashes[first:] = key_hashes([record.key for record in records])
        self.pattern[first:] = UNVISITED
        self.cost[first:] = [record.cost for record in records]
        return first

    def remove(self, keys: Sequence[str]) -> None:
        """Drop rows; unknown keys are ignored."""
        kept = np.ones(len(self), dtype=bool)
        gone = np.array([self.row[key] for key in set(keys) if key in self.row], dtype=np.int64)
        self.departed.append(self, gone)
        kept[gone] = False
        self.records = [record for record, keep in zip(self.records, kept, strict=True) if keep]
        self.row = {record.key: i for i, record in enumerate(self.records)}
        for name in _COLUMNS:
            setattr(self, name, getattr(self, name)[kept])

    def discount(self, factor: float) -> None:
        """Age everything learned."""
        self.precision *= factor
        self.linear *= factor
        self.count *= factor
        self.departed.discount(factor)

    def state_dict(self) -> dict[str, Any]:
        """What was learned of visited pairs, as JSON values."""
        columns = (self.pattern, self.precision, self.linear, self.count)
        visited = {self.records[i].key: [column[i].item() for column in columns] for i in np.flatnonzero(self.count)}
        return {"visited": visited, "departed": self.departed.rows.tolist()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take over what was learned of the pairs that exist here."""
        for column, blank in ((self.pattern, UNVISITED), (self.precision, 0.0), (self.linear, 0.0), (self.count, 0.0)):
            column[:] = blank
        self.departed.rows = np.array(state["departed"], dtype=float).reshape(-1, 5)
        for key, (pattern, precision, linear, count) in state["visited"].items():
            if key in self.row:
                i = self.row[key]
                self.pattern[i], self.precision[i], self.linear[i], self.count[i] = pattern, precision, linear, count
