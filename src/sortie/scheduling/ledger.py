"""Which assignments are out: ids unique over the run, and what is in flight.

Every issued assignment is settled at most once; a result delivered again changes nothing.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sortie.core.group import Assignment, GroupResult


class Ledger:
    """The assignments of one scheduler."""

    def __init__(self) -> None:
        self._next_id = 0
        self._out: dict[int, str] = {}
        self._busy: Counter[str] = Counter()

    def issue(self, keys: Iterable[str], rollouts: int) -> list[Assignment]:
        """One new assignment per key."""
        issued = []
        for key in keys:
            issued.append(Assignment(self._next_id, key, rollouts))
            self._out[self._next_id] = key
            self._busy[key] += 1
            self._next_id += 1
        return issued

    def settle(self, results: Sequence[GroupResult]) -> list[bool]:
        """Close the results' assignments; False for one that was closed before, so that it must not count again.

        An id that was never issued is evidence from outside, and counts.
        Raises: ValueError if an assignment was of another task, or a reward is not finite; none is closed then.
        """
        for result in results:
            self._check(result)
        return [self._close(result) for result in results]

    def _check(self, result: GroupResult) -> None:
        for reward in result.rewards:
            if reward is not None and not math.isfinite(reward):
                raise ValueError(f"a reward of task {result.key!r} is {reward}; one that was not scored must be None")
        key = self._out.get(result.assignment, result.key)
        if key != result.key:
            raise ValueError(f"assignment {result.assignment} was of task {key!r}, its result names {result.key!r}")

    def _close(self, result: GroupResult) -> bool:
        key = self._out.pop(result.assignment, None)
        if key is None:
            return not 0 <= result.assignment < self._next_id
        self._busy[key] -= 1
        if not self._busy[key]:
            del self._busy[key]
        return True

    def forget(self, keys: Iterable[str]) -> None:
        """Close every assignment of tasks that are gone; their results will not count."""
        gone = set(keys)
        self._out = {number: key for number, key in self._out.items() if key not in gone}
        self._busy = Counter(self._out.values())

    @property
    def busy(self) -> Sequence[str]:
        """Keys in flight, each once."""
        return list(self._busy)

    def __len__(self) -> int:
        return len(self._out)

    def state_dict(self) -> dict[str, Any]:
        """JSON values."""
        return {"next_id": self._next_id, "out": [[number, key] for number, key in self._out.items()]}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take over a saved ledger."""
        self._next_id = int(state["next_id"])
        self._out = {int(number): str(key) for number, key in state["out"]}
        self._busy = Counter(self._out.values())


def scored(result: GroupResult) -> list[float]:
    """Rewards to learn from: none of an abandoned group, and no missing ones."""
    if result.outcome == "abandoned":
        return []
    return [float(reward) for reward in result.rewards if reward is not None]


def check_request(groups: int, group_size: int, tasks: int) -> None:
    """Raises: ValueError if there is nothing to ask for, or nothing to choose from."""
    if groups < 1 or group_size < 1:
        raise ValueError(f"select needs at least one group of one rollout, got {groups} of {group_size}")
    if not tasks:
        raise ValueError("no tasks to choose from: every task was removed; add some before the next select")
