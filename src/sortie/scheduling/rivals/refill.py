"""How far dynamic sampling may go: replacements are counted per batch, and a batch may only cost so much."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class Refill:
    """A `select` for no more groups than are owed fills up the batch before it; any other opens a new batch.

    A driver that ignores refill verdicts therefore just opens new batches. All replacements are rollouts that somebody
    pays for, so a batch costs at most `most` times what it was first asked for (rounded down to groups).
    """

    def __init__(self, most: float) -> None:
        self._most = most
        self.wanted = 0
        """Groups the batch was first asked for."""
        self.granted = 0
        """Replacements granted for it so far."""
        self.owed = 0
        """Of these, not yet selected."""

    def open(self, groups: int) -> bool:
        """Note a select; True if it fills up the batch before it."""
        fills = 0 < groups <= self.owed
        if fills:
            self.owed -= groups
        else:
            self.wanted, self.granted, self.owed = groups, 0, 0
        return fills

    def grant(self) -> bool:
        """Whether one more group may be replaced; counts it if so."""
        if self.granted + 1 > (self._most - 1.0) * self.wanted:
            return False
        self.granted += 1
        self.owed += 1
        return True

    def state_dict(self) -> dict[str, Any]:
        """JSON values."""
        return {"wanted": self.wanted, "granted": self.granted, "owed": self.owed}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take over a saved count."""
        self.wanted, self.granted, self.owed = (int(state[name]) for name in ("wanted", "granted", "owed"))
