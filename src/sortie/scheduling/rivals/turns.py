"""Rivals that walk through the tasks in epochs of keyed random order, as a shuffled data loader does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from sortie.core.group import TaskRecord
from sortie.scheduling.keyed import uniforms
from sortie.scheduling.rivals.base import C, Rival, Shown
from sortie.scheduling.rivals.tasks import Floats, Ints

PASSES = 8
"""A task passed over in so many epochs in a row is not passed over again."""


class TurnRival(Rival[C]):
    """Every task has its turn once per epoch; it may be passed over then. A task that was abandoned has it again.

    New tasks join the epoch that runs.
    """

    COLUMNS: ClassVar[Mapping[str, float]] = {"turns": 0.0}
    _epoch = 0.0

    def _in_turn(self, groups: int, skip: Floats | None = None, out: Ints | None = None) -> Ints:
        """The next rows in turn, a turn passed over with chance `skip`; what was walked past has had its turn.

        Those of `out`, as those in flight, come last.
        """
        places = self._places(1 if skip is None else PASSES)
        accepted = len(places) - 1 + np.zeros(len(self._tasks), dtype=np.int64)
        if skip is not None:
            for i in range(len(places) - 1, -1, -1):
                accepted[self._by_turn("skip", i) >= skip] = i
        turns, free = self._tasks.column["turns"], self._free()
        free[[] if out is None else out] = False
        score = places[accepted, np.arange(len(turns))]
        rows = self._lowest(score, groups, free)
        chosen = np.unique(rows)
        end = score[chosen[free[chosen]]].max(initial=-1.0)
        passed = np.where(free, (places <= end).sum(axis=0), 0)
        passed[chosen] = accepted[chosen] + 1
        turns += passed
        np.add.at(turns, rows[len(chosen) :], 1.0)
        return rows

    def _places(self, passes: int) -> Floats:
        """Where each of its next turns lies, [passes, N]: number of the epoch plus place within it."""
        turns = self._tasks.column["turns"]
        return np.stack([turns + i + self._by_turn("epoch", i) for i in range(passes)])

    def _by_turn(self, purpose: str, ahead: int) -> Floats:
        """One number in [0, 1) per task, keyed by the turn that lies `ahead`."""
        turns = self._tasks.column["turns"].astype(np.int64) + ahead
        out = np.zeros(len(turns))
        for turn in np.unique(turns).tolist():
            at = turns == turn
            out[at] = uniforms(self._tasks.hashes[at], self._seed, purpose, turn)
        return out

    def add(self, records: Sequence[TaskRecord]) -> None:
        """Take up new tasks; known keys are left as they are."""
        old = len(self._tasks)
        self._note_epoch()
        super().add(records)
        self._tasks.column["turns"][old:] = self._epoch

    def remove(self, keys: Sequence[str]) -> None:
        """Drop tasks; unknown keys are ignored, and results still in flight will not count."""
        self._note_epoch()
        super().remove(keys)

    def _note_epoch(self) -> None:
        if len(self._tasks):
            self._epoch = float(self._tasks.column["turns"].min())

    def _learn(self, shown: Sequence[Shown]) -> None:
        turns = self._tasks.column["turns"]
        for group in shown:
            if group.result.outcome == "abandoned":
                turns[group.row] = max(turns[group.row] - 1.0, 0.0)

    def state_dict(self) -> dict[str, Any]:
        """JSON values. Records are not in it: build with the run's current tasks, then load."""
        self._note_epoch()
        return {**super().state_dict(), "epoch": self._epoch}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue a saved run; tasks it did not know join its epoch."""
        super().load_state_dict(state)
        self._epoch = float(state["epoch"])
        new = [row for key, row in self._tasks.row.items() if key not in state["tasks"]]
        self._tasks.column["turns"][new] = self._epoch
