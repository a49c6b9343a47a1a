"""Keys of the randomness: equal keys give equal draws, whatever ran before or beside them."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

MAIN = "main"
"""Name of an agent's main conversation."""


def seed_for(run_seed: int, task_key: str, visit: int, member: int, turn: int, thread: str = MAIN) -> int:
    """A 63-bit key of one sampling request, from what identifies it and nothing else."""
    # Lengths are unambiguous: numbers hold no "/", and the two free texts come last and length-prefixed.
    text = f"{run_seed}/{visit}/{member}/{turn}/{len(task_key)}/{task_key}/{thread}"
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big") >> 1


@dataclass(frozen=True, slots=True, kw_only=True)
class RolloutKey:
    """What identifies one rollout within a run."""

    run_seed: int
    task_key: str
    visit: int
    """How often this task was assigned before in this run."""
    member: int
    """Index among its siblings."""

    @property
    def id(self) -> str:
        """Unique within a run, equal for every attempt at the same rollout."""
        return f"{self.task_key}@{self.visit}.{self.member}"

    def seed(self, turn: int, thread: str) -> int:
        """Key of the draw number `turn` of one thread."""
        return seed_for(self.run_seed, self.task_key, self.visit, self.member, turn, thread)
