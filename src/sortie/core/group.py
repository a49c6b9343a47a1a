"""Siblings on one task: what the task scheduler asks for, and what comes back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from sortie.core.policy import PolicyVersion
from sortie.core.trajectory import Trajectory

Features = Mapping[str, float] | Sequence[float]
Outcome = Literal["done", "abandoned"]
Verdict = Literal["keep", "refill"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskRecord:
    """A task as the task scheduler sees it. `key` is `env/content-hash`."""

    key: str
    environment: str
    text: str = ""
    features: Features | None = None
    cost: float = 1.0
    """Expected cost of one rollout, in any unit shared by all records."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvironmentRecord:
    """An environment as the task scheduler sees it."""

    name: str
    description: str = ""
    tools: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Assignment:
    """One task to roll out `rollouts` times; becomes one Group."""

    id: int
    """Unique over the run."""
    key: str
    rollouts: int


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupResult:
    """What became of one assignment."""

    key: str
    assignment: int
    rewards: tuple[float | None, ...]
    """One per rollout; None: not scored."""
    features: Features | None = None
    """Interaction pattern of its rollouts."""
    version: int = 0
    """Number of the policy version that acted."""
    outcome: Outcome = "done"


@dataclass(slots=True)
class Group:
    """The trajectories of one assignment."""

    assignment: Assignment
    trajectories: list[Trajectory] = field(default_factory=list)
    version: PolicyVersion | None = None

    @property
    def scored(self) -> list[Trajectory]:
        """Members with a reward."""
        return [t for t in self.trajectories if t.reward is not None]

    @property
    def rewards(self) -> list[float]:
        """Rewards of the scored members."""
        return [t.reward for t in self.trajectories if t.reward is not None]

    @property
    def informative(self) -> bool:
        """At least two scored members, whose raw rewards differ: only then is there a gradient."""
        return len(set(self.rewards)) > 1
