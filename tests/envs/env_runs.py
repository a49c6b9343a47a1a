"""Runs of an environment through the real rollout path, with a script in the model's place."""

from __future__ import annotations

from collections.abc import Sequence

from sortie.context.limits import Limits
from sortie.core.messages import Message, ToolCall, assistant
from sortie.core.task import Task
from sortie.core.trajectory import Trajectory
from sortie.envs import Env
from sortie.inference.scripted import ScriptedClient
from sortie.rollouts.engine import RolloutEngine
from toy import ToyRenderer


async def play(env: Env, task: Task, says: Sequence[Message | str]) -> Trajectory:
    """One rollout in which the model says these turns; the toy renderer spells them one token per character."""
    renderer = ToyRenderer()
    client = ScriptedClient.from_texts(renderer, says)
    limits = Limits(turn_tokens=1024, rollout_tokens=8192, window=16384)
    async with RolloutEngine(client, renderer, limits=limits) as engine:
        return await engine.run_one(env, task)


def call(name: str, /, **arguments: object) -> Message:
    """A turn that is one tool call."""
    return assistant("", ToolCall(name=name, arguments=arguments))


def by_level(env: Env, each: int) -> list[Task]:
    """The first `each` held-out tasks of every level."""
    tasks = list(env.tasks("heldout"))
    levels = sorted({task.level or 0 for task in tasks})
    return [task for level in levels for task in [t for t in tasks if t.level == level][:each]]
