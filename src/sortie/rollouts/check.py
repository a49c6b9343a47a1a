"""Whether an environment is fit to train in: played by its oracle, by an idle agent and by a hostile one.

Five claims, for some tasks of each level: the oracle scores 1; doing nothing scores 0; equal seeds give equal episodes;
a rollout leaves no trace in the next or in its neighbours; and a hostile agent scores 0. Every rollout goes through the
real engine, and all of them lease from the same pools.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import chain, zip_longest

from sortie.context.limits import Limits
from sortie.core.errors import UsageError
from sortie.core.messages import Message
from sortie.core.task import Task
from sortie.core.trajectory import Trajectory
from sortie.envs.env import Env
from sortie.envs.hostile import IDLE, Script, tricks
from sortie.inference.client import SampleRequest
from sortie.inference.renderers.messages import MessageRenderer
from sortie.inference.scripted import ScriptedClient
from sortie.resources.engine import ResourceEngine
from sortie.rollouts.engine import RolloutEngine

ORACLE = "oracle scores 1"
NOTHING = "idle scores 0"
SAME = "same episode"
TRACE = "no trace"
HOSTILE = "hostile scores 0"
CHECKS = (ORACLE, NOTHING, SAME, TRACE, HOSTILE)

LIMITS = Limits(turn_tokens=200_000, rollout_tokens=2_000_000, window=4_000_000)
"""So wide that a huge argument reaches its tool."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """One thing that was tried, and what is wrong with it; None: nothing."""

    check: str
    task: Task
    fault: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """How one check went on one level."""

    check: str
    level: int | None
    tried: int
    failed: int
    fault: str | None
    """What was wrong with the first that failed."""
    prompt: str | None
    """Its task."""


async def check_env(make: Callable[[], Env], tasks: int = 3) -> list[Finding]:
    """Play `tasks` tasks of each level, from both splits in turn. `make` is called twice.

    Raises: UsageError if there is no oracle.
    """
    env, again = make(), make()
    if env.oracle is None:
        raise UsageError(f"environment {env.name!r} has no oracle to check it with: it declares no Env(oracle=...)")
    sample, twins = (_sample(built, tasks) for built in (env, again))
    outcomes: list[Outcome] = []
    async with ResourceEngine() as resources:
        for task, twin in zip_longest(sample, twins):
            outcomes += await _Trial(env, again, resources).outcomes(task, twin)
    return _summed(outcomes)


@dataclass(frozen=True, slots=True)
class _Trial:
    """Everything that is tried on one task."""

    env: Env
    again: Env
    resources: ResourceEngine

    async def outcomes(self, task: Task, twin: Task | None) -> list[Outcome]:
        solution = _solution(self.env, task)
        content = task.content_hash()
        alone = await self._play(self.env, task, solution)
        idle = [await self._play(self.env, task, script) for script in IDLE.values()]
        hostile = tricks(self.env, task)
        among, *enemies = await asyncio.gather(
            self._play(self.env, task, solution), *(self._play(self.env, task, script) for script in hostile.values())
        )
        after = await self._play(self.again, task, solution)
        rewarded = [(ORACLE, "oracle", alone, 1.0)]
        rewarded += [(NOTHING, name, played, 0.0) for name, played in zip(IDLE, idle, strict=True)]
        rewarded += [(HOSTILE, name, played, 0.0) for name, played in zip(hostile, enemies, strict=True)]
        faults = [(check, _wrong(played, want, name)) for check, name, played, want in rewarded]
        same = None if twin is not None and task == twin else "another task stands in its place"
        faults.append((SAME, same or _differs(alone, after)))
        changed = None if task.content_hash() == content else "the task itself was changed"
        faults.append((TRACE, changed or _differs(alone, among) or _wrong(among, 1.0, "oracle among hostile ones")))
        return [Outcome(check, task, fault) for check, fault in faults]

    async def _play(self, env: Env, task: Task, script: Script) -> Trajectory:
        renderer = MessageRenderer()
        client = ScriptedClient(_repeating(script), renderer=renderer)
        return await RolloutEngine(client, renderer, self.resources, LIMITS).run_one(env, task)


def _sample(env: Env, each: int) -> list[Task]:
    """The first `each` tasks of every level, the splits taking turns."""
    turns: Iterable[Task | None] = chain.from_iterable(zip_longest(env.tasks("heldout"), env.tasks("train")))
    chosen: dict[int | None, list[Task]] = {}
    for task in turns:
        if task is not None and len(level := chosen.setdefault(task.level, [])) < each:
            level.append(task)
    return [task for level in sorted(chosen, key=lambda level: level or 0) for task in chosen[level]]


def _solution(env: Env, task: Task) -> Script:
    return env.oracle(task) if env.oracle is not None else ()


def _repeating(script: Script) -> Callable[[SampleRequest], Message | str]:
    turns = iter(script)
    return lambda request: next(turns, script[-1])


def _wrong(played: Trajectory, want: float, name: str) -> str | None:
    if played.reward is None:
        return f"{name}: not scored: {played.error or 'every reward returned None'}"
    return None if abs(played.reward - want) < 1e-9 else f"{name}: scored {played.reward:g}"


def _differs(one: Trajectory, other: Trajectory) -> str | None:
    """Where two rollouts with the same turns went apart."""
    for number, (was, then) in enumerate(zip_longest(_episode(one), _episode(other), fillvalue="nothing")):
        if was != then:
            return f"part {number} was {was.strip():.80}, then {then.strip():.80}"
    return None if one.reward == other.reward else f"scored {one.reward}, then {other.reward}"


def _episode(played: Trajectory) -> list[str]:
    """What was said on both sides, with the output of calls that no later turn read."""
    renderer = MessageRenderer()
    return [*(renderer.decode(node.token_ids) for node in played.nodes), *(record.output for record in played.tools)]


def _summed(outcomes: list[Outcome]) -> list[Finding]:
    levels = list(dict.fromkeys(outcome.task.level for outcome in outcomes))
    findings = []
    for check in CHECKS:
        for level in levels:
            tried = [outcome for outcome in outcomes if (outcome.check, outcome.task.level) == (check, level)]
            failed = [outcome for outcome in tried if outcome.fault is not None]
            fault, prompt = (failed[0].fault, str(failed[0].task.prompt)) if failed else (None, None)
            findings.append(
                Finding(check=check, level=level, tried=len(tried), failed=len(failed), fault=fault, prompt=prompt)
            )
    return findings
