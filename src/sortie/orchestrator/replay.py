"""Stored rollouts under a changed reward, without drawing a token.

A reward that needs what is gone when a rollout has ended (its state, its context, a leased resource) cannot be asked
again: its recorded value stands where the run has one of that name, and it is left out otherwise.
"""

from __future__ import annotations

import asyncio
import inspect
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from sortie.agents.reward import Reward
from sortie.agents.rubric import Rubric
from sortie.context.limits import Limits
from sortie.context.run_context import RunContext
from sortie.context.seeds import RolloutKey
from sortie.context.thread import Sampling
from sortie.context.window import ContextWindow
from sortie.core.completion import Completion
from sortie.core.errors import ModelError, RewardError, UsageError
from sortie.core.records import RolloutRecord
from sortie.envs import Env
from sortie.inference.client import SampleRequest
from sortie.inference.renderers.messages import MessageRenderer

LIVE = ("state", "ctx")
"""Parameters that only a rollout in progress can fill."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rescored:
    """One stored rollout under the changed rubric."""

    serial: int
    id: str
    step: int
    phase: str
    before: float | None
    after: float | None
    rewards: dict[str, float | None]
    error: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """All of them, and what could not be asked again."""

    env: str
    rollouts: list[Rescored]
    live: dict[str, str]
    """Reward -> what it needs that is gone."""

    def to_dict(self) -> dict[str, Any]:
        """Everything, for JSON."""
        return {"env": self.env, **self.totals(), "live": self.live, "rollouts": [asdict(r) for r in self.rollouts]}

    def totals(self) -> dict[str, Any]:
        """Means over scored rollouts, how many changed, and the share of groups that could teach something."""
        return {
            "n": len(self.rollouts),
            "changed": sum(r.before != r.after for r in self.rollouts),
            "unscored": sum(r.after is None for r in self.rollouts),
            "reward": {when: _mean(getattr(r, when) for r in self.rollouts) for when in ("before", "after")},
            "informative": {when: self._informative(when) for when in ("before", "after")},
        }

    def _informative(self, when: str) -> float | None:
        groups: dict[tuple[int, str], set[float]] = defaultdict(set)
        for r in self.rollouts:
            value = getattr(r, when)
            if r.phase == "train":
                groups[r.step, r.id.rpartition(".")[0]] |= set() if value is None else {value}
        return _mean(float(len(values) > 1) for values in groups.values())


async def replay(records: Iterable[RolloutRecord], env: Env) -> Replay:
    """Score the records that are of `env` anew.

    Raises: UsageError if none is, or if every reward needs what is gone.
    """
    records = list(records)
    own = [record for record in records if record.trajectory.env == env.name]
    if not own:
        there = ", ".join(sorted({record.trajectory.env for record in records})) or "none"
        raise UsageError(f"no stored rollout is of environment {env.name!r}; there: {there}")
    live = {reward.name: needs for reward in env.rubric if (needs := _live_needs(reward))}
    again = Rubric([reward for reward in env.rubric if reward.name not in live])
    kept = [reward for reward in env.rubric if reward.name in live]
    if not again.rewards:
        named = "; ".join(f"{name} needs {needs}" for name, needs in live.items())
        raise UsageError(f"no reward of {env.name!r} can be asked again: {named or 'it has none'}")
    return Replay(env=env.name, rollouts=[await _rescore(record, again, kept) for record in own], live=live)


def _live_needs(reward: Reward[Any, Any]) -> str:
    """What a reward asks for that is gone; empty if it can be asked again."""
    asked = [name for name in inspect.signature(reward).parameters if name in LIVE]
    return ", ".join([*asked, *(spec.label for spec in reward.needs)])


async def _rescore(record: RolloutRecord, again: Rubric, kept: Sequence[Reward[Any, Any]]) -> Rescored:
    trajectory, error = record.trajectory, None
    recorded = {reward.name: trajectory.rewards.get(reward.name) for reward in kept}
    values: dict[str, float | None] = {}
    whole = trajectory.error is None or trajectory.boundary == RewardError.boundary
    if whole:  # what broke before it could be scored cannot be scored now
        try:
            _, values = await again.score(record.task, trajectory, _context(record))
        except RewardError as failed:
            error = str(failed)
    values = {**recorded, **values}
    weighted = [(reward.weight, values.get(reward.name)) for reward in (*kept, *again)]
    parts = [weight * value for weight, value in weighted if value is not None]
    return Rescored(
        serial=record.serial,
        id=trajectory.id,
        step=record.step,
        phase=record.phase,
        before=trajectory.reward,
        after=sum(parts) if parts and whole and error is None else None,
        rewards=values,
        error=error,
    )


class _Over:
    """Stands for the sampler of a rollout that has ended."""

    async def sample(self, request: SampleRequest) -> list[Completion]:
        raise ModelError("the rollout has ended: a reward cannot sample in a replay")


def _context(record: RolloutRecord) -> RunContext:
    """What the rubric wants to be handed; no reward that is asked looks at it."""
    trajectory, limits = record.trajectory, Limits()
    key = RolloutKey(run_seed=0, task_key=record.task.key, visit=0, member=trajectory.member)
    return RunContext(
        rollout_id=trajectory.id,
        task=record.task,
        env_name=trajectory.env,
        member=trajectory.member,
        trajectory=trajectory,
        sampling=Sampling(client=_Over(), renderer=MessageRenderer(), key=key),
        limits=limits,
        window=ContextWindow(limits),
        deadline=asyncio.get_running_loop().time() + limits.score_seconds,
    )


def _mean(values: Iterable[float | None]) -> float | None:
    there = [value for value in values if value is not None]
    return sum(there) / len(there) if there else None
