"""One scheduler in one world: a curve of the score against updates, rollouts and cost.

Every rollout is charged, those of groups that a `refill` verdict sent back included. A run goes on until it has spent
both the rollouts and the cost that `uniform` is expected to spend, so that it can be read at either.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field
from typing import Any

from benchmarks.scheduling.learner import Learner
from benchmarks.scheduling.oracle import Oracle
from benchmarks.scheduling.reference import Regression
from benchmarks.scheduling.worlds import GROUP_SIZE, World
from sortie.orchestrator.loop import REFILL_ROUNDS
from sortie.scheduling import GroupResult, TaskScheduler, build

GROUPS = 32
"""Of 8 rollouts per update."""
MOST = 5.0
"""A run ends at this many times the budget in rollouts, whatever it has cost."""


@dataclass(slots=True)
class Curve:
    """A run: one entry per update, the first before any."""

    rollouts: list[int] = field(default_factory=list)
    """Spent so far, refills included."""
    cost: list[float] = field(default_factory=list)
    """Spent so far, in mean costs of a rollout."""
    score: list[float] = field(default_factory=list)
    """Mean true success over all pairs."""
    informative: list[float] = field(default_factory=list)
    """Share of the update's rolled-out groups whose rewards differ; 0 before any."""
    seconds: float = 0.0
    """Spent within select and observe."""


def scheduler_of(label: str, learner: Learner, seed: int) -> TaskScheduler:
    """`name`, or `name:option=value:option=value` with the options of its Config.

    Raises: UnknownName, ConfigError as `sortie.scheduling.build`; ValueError for a part without `=`.
    """
    name, _, rest = label.partition(":")
    options = options_of(rest)
    if name == "oracle":
        return Oracle(learner, **options)
    if name == "regression":
        return Regression(learner.world.records, seed=seed, **options)
    return build(name, learner.world.records, environments=learner.world.environments, seed=seed, **options)


def options_of(text: str) -> dict[str, Any]:
    """`a=1:b.c=x` as {"a": 1, "b": {"c": "x"}}; values are JSON where they can be read so, else text."""
    options: dict[str, Any] = {}
    for part in filter(None, text.split(":")):
        name, equals, value = part.partition("=")
        if not equals:
            raise ValueError(f"scheduler option {part!r} has no value; write {part}=VALUE")
        *path, last = name.split(".")
        place = options
        for step in path:
            place = place.setdefault(step, {})
        try:
            place[last] = json.loads(value)
        except ValueError:
            place[last] = value
    return options


def run(world: World, label: str, *, steps: int | None = None) -> Curve:
    """Train one learner under the scheduler called `label` for the rollouts and cost of `steps` uniform updates."""
    learner = Learner(world)
    scheduler = scheduler_of(label, learner, world.seed)
    budget = (steps or world.spec.steps) * GROUPS * GROUP_SIZE
    curve = Curve([0], [0.0], [learner.score()], [0.0])
    drift_at = None if world.spec.drift_at is None else world.spec.drift_at * budget
    while min(curve.rollouts[-1], curve.cost[-1]) < budget - 1e-6 and curve.rollouts[-1] < MOST * budget:
        if drift_at is not None and curve.rollouts[-1] >= drift_at:
            learner.drift()
            drift_at = None
        kept, rolled = _update(learner, scheduler, curve)
        learner.learn(kept)
        spent = [len(result.rewards) for result in rolled]
        costs = [world.cost[learner.row[result.key]] * n for result, n in zip(rolled, spent, strict=True)]
        curve.rollouts.append(curve.rollouts[-1] + sum(spent))
        curve.cost.append(curve.cost[-1] + float(sum(costs)))
        curve.score.append(learner.score())
        curve.informative.append(sum(len(set(result.rewards)) > 1 for result in rolled) / len(rolled))
    return curve


def _update(learner: Learner, scheduler: TaskScheduler, curve: Curve) -> tuple[list[GroupResult], list[GroupResult]]:
    """Groups kept for one update, and all that were rolled out for it, as the orchestrator's `roll_out` does."""
    kept: list[GroupResult] = []
    rolled: list[GroupResult] = []
    wanted = GROUPS
    for _ in range(REFILL_ROUNDS):
        started = time.process_time()
        assignments = scheduler.select(wanted, GROUP_SIZE)
        curve.seconds += time.process_time() - started
        results = learner.roll_out(assignments)
        started = time.process_time()
        verdicts = scheduler.observe(results)
        curve.seconds += time.process_time() - started
        rolled += results
        kept += [result for result, verdict in zip(results, verdicts, strict=True) if verdict == "keep"]
        wanted = verdicts.count("refill")
        if not wanted:
            break
    return kept, rolled
