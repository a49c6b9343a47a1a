"""A weighted set of rewards."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from typing import Any

from sortie.agents.reward import Reward
from sortie.context.run_context import RunContext
from sortie.core.errors import ConfigError
from sortie.core.task import Task
from sortie.core.trajectory import Trajectory

Values = dict[str, float | None]


class Rubric:
    """Scores a rollout as the weighted sum of those rewards that apply to it."""

    def __init__(self, rewards: Sequence[Reward[Any, Any]] = ()) -> None:
        """Raises: ConfigError if two rewards share a name."""
        names = [reward.name for reward in rewards]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise ConfigError(f"two rewards are called {twice!r}; give one of them @reward(name=...)")
        self.rewards = tuple(rewards)

    def __iter__(self) -> Iterator[Reward[Any, Any]]:
        return iter(self.rewards)

    async def score(self, task: Task, trajectory: Trajectory, ctx: RunContext) -> tuple[float | None, Values]:
        """The weighted sum and each reward before its weight; None for what was not scored.

        The rewards run concurrently. Raises: RewardError naming the first reward, in order, that failed.
        """
        outcomes = await asyncio.gather(*(self._one(reward, task, trajectory, ctx) for reward in self.rewards))
        values: Values = {}
        for reward, outcome in zip(self.rewards, outcomes, strict=True):
            if isinstance(outcome, Exception):
                raise outcome
            values[reward.name] = outcome
        scored = [(reward.weight, values[reward.name]) for reward in self.rewards]
        parts = [weight * value for weight, value in scored if value is not None]
        return (sum(parts) if parts else None), values

    async def _one(
        self, reward: Reward[Any, Any], task: Task, trajectory: Trajectory, ctx: RunContext
    ) -> float | Exception | None:
        try:
            return await reward.value(task, trajectory, ctx)
        except Exception as error:  # noqa: BLE001  # held until its siblings are done, so that none is left running
            return error
