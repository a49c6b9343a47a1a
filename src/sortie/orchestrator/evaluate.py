"""Success on held-out tasks, with intervals."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from sortie.context.limits import Limits
from sortie.core.errors import TrainingError
from sortie.core.policy import PolicyVersion
from sortie.core.task import Split, Task, TaskSet
from sortie.core.trajectory import Trajectory
from sortie.envs import Env
from sortie.envs.bare import without_tools
from sortie.orchestrator.session import Session
from sortie.rollouts.engine import RolloutEngine

POOLED = "pooled"
Z95 = 1.959963984540054
"""Quantile of the normal law for a two-sided 95% interval."""


@dataclass(frozen=True, slots=True)
class Score:
    """Mean reward with a 95% interval over `n` scored rollouts."""

    mean: float
    low: float
    high: float
    n: int

    def to_dict(self) -> dict[str, Any]:
        """The four fields."""
        return asdict(self)

    def __str__(self) -> str:
        return f"{self.mean:.3f} [{self.low:.3f}, {self.high:.3f}]"


def score_of(rewards: Sequence[float]) -> Score:
    """Wilson's interval (Wilson 1927, eq. 4) where every reward is 0 or 1, else mean plus or minus z s / sqrt(n)."""
    n = len(rewards)
    if n == 0:
        return Score(math.nan, math.nan, math.nan, 0)
    mean = sum(rewards) / n
    if all(r in (0.0, 1.0) for r in rewards):
        centre = (mean + Z95**2 / (2 * n)) / (1 + Z95**2 / n)
        half = Z95 / (1 + Z95**2 / n) * math.sqrt(mean * (1 - mean) / n + Z95**2 / (4 * n * n))
        return Score(mean, max(0.0, centre - half), min(1.0, centre + half), n)
    spread = math.sqrt(sum((r - mean) ** 2 for r in rewards) / max(n - 1, 1))
    return Score(mean, mean - Z95 * spread / math.sqrt(n), mean + Z95 * spread / math.sqrt(n), n)


def spread_over(tasks: TaskSet, count: int) -> list[Task]:
    """`count` of the tasks, evenly over their order, so that every level is met; all of them if they are fewer."""
    if len(tasks) <= count:
        return list(tasks)
    return [tasks[i * len(tasks) // count] for i in range(count)]


async def evaluate(
    session: Session,
    envs: Sequence[Env],
    *,
    tasks: int = 100,
    temperature: float = 1.0,
    limits: Limits | None = None,
    seed: int = 0,
    max_concurrent: int = 64,
    split: Split = "heldout",
    tools: bool = True,
    on_done: Callable[[Trajectory, Task], None] | None = None,
) -> dict[str, Score]:
    """One rollout on each of `tasks` tasks per environment; keyed by environment, and "pooled" over all rollouts.

    Without `tools` the agent is given none. A rollout that could not be scored is in no mean.
    Raises: TrainingError, naming the first cause, if no rollout of an environment could be scored.
    """
    shown = [env if tools else without_tools(env) for env in envs]
    async with RolloutEngine(
        session.client,
        session.renderer,
        limits=limits,
        run_seed=seed,
        max_concurrent=max_concurrent,
        on_finished=on_done,
    ) as engine:
        return await evaluate_with(
            engine, shown, tasks=tasks, temperature=temperature, split=split, policy=session.policy
        )


async def evaluate_with(
    engine: RolloutEngine,
    envs: Sequence[Env],
    *,
    tasks: int,
    temperature: float,
    split: Split = "heldout",
    policy: PolicyVersion | None = None,
) -> dict[str, Score]:
    """`evaluate` on a rollout engine that is already there."""
    jobs = [(env, task) for env in envs for task in spread_over(env.tasks(split), tasks)]
    async with asyncio.TaskGroup() as scope:
        running = [
            scope.create_task(engine.run_one(env, task, policy=policy, temperature=temperature)) for env, task in jobs
        ]
    rewards: dict[str, list[float]] = {env.name: [] for env in envs}
    errors: dict[str, str] = {}
    for (env, _), job in zip(jobs, running, strict=True):
        trajectory = job.result()
        if trajectory.reward is not None:
            rewards[env.name].append(trajectory.reward)
        elif trajectory.error:
            errors.setdefault(env.name, trajectory.error)
    return _scores(rewards, errors)


def _scores(rewards: Mapping[str, list[float]], errors: Mapping[str, str]) -> dict[str, Score]:
    for name, values in rewards.items():
        if not values and name in errors:
            raise TrainingError(f"no rollout of {name!r} could be scored; the first failed with: {errors[name]}")
    scores = {name: score_of(values) for name, values in rewards.items()}
    scores[POOLED] = score_of([r for values in rewards.values() for r in values])
    return scores
