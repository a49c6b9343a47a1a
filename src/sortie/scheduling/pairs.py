"""Every (environment, task) pair, as columns, and queues of those not rolled out lately."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sortie.core.group import TaskRecord
from sortie.scheduling.factors import Ints
from sortie.scheduling.keyed import key_hashes, uniforms

NONE = -1
_COLUMNS: dict[str, type] = {
    "hashes": np.uint64,
    "environment": np.int32,
    "hint": np.int32,
    "cell": np.int32,
    "site": np.int32,
    "visits": np.int32,
    "cost": np.float32,
}


class Pairs:
    """One row per pair. Rows keep their order when others leave, and close up."""

    def __init__(self, seed: int) -> None:
        self.records: list[TaskRecord] = []
        self.row: dict[str, int] = {}
        self.hashes = np.zeros(0, dtype=np.uint64)
        self.environment = np.zeros(0, dtype=np.int32)
        self.hint = np.zeros(0, dtype=np.int32)
        self.cell = np.zeros(0, dtype=np.int32)
        self.site = np.zeros(0, dtype=np.int32)
        """Row of its observations, NONE without."""
        self.visits = np.zeros(0, dtype=np.int32)
        """Groups scored since it was added."""
        self.cost = np.zeros(0, dtype=np.float32)
        self._seed = seed
        self._bins: Bins | None = None

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
        self.site[first:] = NONE
        self.cost[first:] = [record.cost for record in records]
        self._bins = None
        return first

    def remove(self, keys: Sequence[str]) -> Ints:
        """Drop rows; unknown keys are ignored. Returns where each old row is now, NONE if gone."""
        kept = np.ones(len(self), dtype=bool)
        kept[[self.row[key] for key in set(keys) if key in self.row]] = False
        self.records = [record for record, keep in zip(self.records, kept, strict=True) if keep]
        self.row = {record.key: i for i, record in enumerate(self.records)}
        for name in _COLUMNS:
            setattr(self, name, getattr(self, name)[kept])
        self._bins = None
        return np.asarray(np.where(kept, np.cumsum(kept) - 1, NONE), dtype=np.int64)

    @property
    def bins(self) -> Bins:
        """Pairs that nothing but their own rollouts tells apart."""
        if self._bins is None:
            self._bins = Bins(self, self._seed)
        return self._bins

    def moved(self) -> None:
        """Environments, hints or cells were set anew."""
        self._bins = None

    def state_dict(self) -> dict[str, Any]:
        """Visits of visited pairs, as JSON values."""
        return {self.records[i].key: int(self.visits[i]) for i in np.flatnonzero(self.visits).tolist()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take over the visits of the pairs that exist here."""
        self.visits[:] = 0
        self.site[:] = NONE
        for key, visits in state.items():
            if key in self.row:
                self.visits[self.row[key]] = visits


class Bins:
    """Pairs of one environment and one hint, cheapest first, then in a keyed random order that lasts for the run."""

    def __init__(self, pairs: Pairs, seed: int) -> None:
        hints = int(pairs.hint.max(initial=0)) + 1
        codes, of_pair = np.unique(pairs.environment.astype(np.int64) * hints + pairs.hint, return_inverse=True)
        self.environment: Ints = codes // hints
        self.hint: Ints = codes % hints
        self.order = np.lexsort((uniforms(pairs.hashes, seed, "queue"), pairs.cost, of_pair)).astype(np.int32)
        self.first: Ints = np.searchsorted(of_pair[self.order], np.arange(len(codes)))
        self.end: Ints = np.append(self.first[1:], len(of_pair))
        self.cell: Ints = pairs.cell[self.order[self.first]].astype(np.int64)
        self.of_pair: NDArray[np.int32] = of_pair.astype(np.int32)
        self.by_hash = np.argsort(pairs.hashes, kind="stable").astype(np.int32)
        """Rows in an order that does not depend on when tasks were added."""

    def __len__(self) -> int:
        return len(self.first)

    def heads(self, blocked: NDArray[np.bool_]) -> Ints:
        """The first pair of each bin that is not blocked; NONE where all are."""
        at, out = self.first.copy(), np.full(len(self), NONE, dtype=np.int64)
        open_ = np.arange(len(self))
        while len(open_):
            open_ = open_[at[open_] < self.end[open_]]
            pair = self.order[at[open_]]
            free = ~blocked[pair]
            out[open_[free]] = pair[free]
            open_ = open_[~free]
            at[open_] += 1
        return out

    def following(self, b: int, blocked: NDArray[np.bool_]) -> int:
        """The first pair of bin `b` that is not blocked; NONE if there is none."""
        for start in range(int(self.first[b]), int(self.end[b]), 256):
            rest = self.order[start : min(start + 256, int(self.end[b]))]
            free = np.flatnonzero(~blocked[rest])
            if len(free):
                return int(rest[free[0]])
        return NONE
