"""The tasks of one rival: a row per task, and named columns of numbers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sortie.core.group import TaskRecord
from sortie.scheduling.keyed import key_hashes

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class Tasks:
    """Rows keep their order when others leave, and close up. Every column has a value that new tasks start with."""

    def __init__(self, first: Mapping[str, float]) -> None:
        self.records: list[TaskRecord] = []
        self.row: dict[str, int] = {}
        self.hashes = key_hashes([])
        self.environment: Ints = np.zeros(0, dtype=np.int64)
        """Number of each task's environment; the owner sets it."""
        self.column: dict[str, Floats] = {name: np.zeros(0) for name in first}
        self._first = dict(first)

    def __len__(self) -> int:
        return len(self.records)

    def add(self, records: Sequence[TaskRecord]) -> Ints:
        """Append the records whose keys are new; returns their rows."""
        new = list({record.key: record for record in records if record.key not in self.row}.values())
        start = len(self)
        self.records.extend(new)
        self.row.update((record.key, start + i) for i, record in enumerate(new))
        self.hashes = np.append(self.hashes, key_hashes([record.key for record in new]))
        self.environment = np.append(self.environment, np.zeros(len(new), dtype=np.int64))
        for name, value in self._first.items():
            self.column[name] = np.append(self.column[name], np.full(len(new), value))
        return np.arange(start, len(self))

    def remove(self, keys: Iterable[str]) -> None:
        """Drop rows; unknown keys are ignored."""
        kept = np.ones(len(self), dtype=bool)
        kept[[self.row[key] for key in set(keys) if key in self.row]] = False
        self.records = [record for record, keep in zip(self.records, kept, strict=True) if keep]
        self.row = {record.key: i for i, record in enumerate(self.records)}
        self.hashes, self.environment = self.hashes[kept], self.environment[kept]
        self.column = {name: values[kept] for name, values in self.column.items()}

    def rows(self, keys: Iterable[str]) -> Ints:
        """Row of each key.

        Raises: KeyError for a task that is not here.
        """
        rows = []
        for key in keys:
            if key not in self.row:
                raise KeyError(f"no task {key!r} in this scheduler")
            rows.append(self.row[key])
        return np.array(rows, dtype=np.int64)

    def state_dict(self) -> dict[str, Any]:
        """JSON values: the columns of the tasks that have left their start."""
        values = np.stack([self.column[name] for name in self._first], axis=1)
        moved = np.flatnonzero((values != np.array(list(self._first.values()))).any(axis=1))
        return {self.records[i].key: values[i].tolist() for i in moved}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take over saved columns of the tasks that exist here."""
        for name, value in self._first.items():
            self.column[name][:] = value
        for key, values in state.items():
            if key in self.row:
                for name, value in zip(self._first, values, strict=True):
                    self.column[name][self.row[key]] = value
