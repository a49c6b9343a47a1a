"""The contract of task schedulers: which tasks next, and how many rollouts each. Drives with no LLM at all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from sortie.core.group import Assignment, GroupResult, TaskRecord, Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """What a scheduler expects of keys, one entry per key."""

    mean: tuple[float, ...]
    """Expected reward of one rollout."""
    std: tuple[float, ...]
    """Uncertainty of that mean."""
    variance: tuple[float, ...]
    """Expected variance of reward between rollouts."""


class TaskScheduler(Protocol):
    """Chooses tasks. One assignment becomes one group; a key repeats within one select only when tasks are fewer than
    groups; the rollouts of one select sum to `groups x group_size`."""

    def select(self, groups: int, group_size: int) -> list[Assignment]: ...
    def observe(self, results: Sequence[GroupResult]) -> list[Verdict]: ...
    def predict(self, keys: Sequence[str]) -> Prediction: ...
    def add(self, records: Sequence[TaskRecord]) -> None: ...
    def remove(self, keys: Sequence[str]) -> None: ...
    def state_dict(self) -> dict[str, Any]: ...
    def load_state_dict(self, state: Mapping[str, Any]) -> None: ...
    def metrics(self) -> dict[str, float]: ...
