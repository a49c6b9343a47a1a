"""What an agent can do in the house. Docstrings are short: each of their tokens is in every prompt."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from sortie.agents.tool import tool
from sortie.context.run_context import RunContext
from sortie.core.task import Task
from sortie.core.trajectory import StopReason
from sortie.envs.catalog.text_world.world import World

DONE = "all done"


@contextmanager
def opened(task: Task, ctx: RunContext) -> Iterator[World]:
    """The house as the task starts it, one per rollout."""
    yield World.of(task.data["world"])


@tool(inline=True)
def go(ctx: RunContext, room: str) -> str:
    """Walk."""
    return _world(ctx).go(room)


@tool(inline=True)
def take(ctx: RunContext, item: str) -> str:
    """Pick up."""
    return _world(ctx).take(item)


@tool(inline=True)
def put(ctx: RunContext, item: str, box: str) -> str:
    """Put into an open box."""
    world, goals = _world(ctx), ctx.task.data["goals"]
    said = world.put(item, box)
    if world.placed(goals) < len(goals):
        return said
    ctx.finish(None, StopReason.ENV_DONE)
    return DONE


@tool(name="open", inline=True)
def open_box(ctx: RunContext, box: str) -> str:
    """Open."""
    return _world(ctx).open(box)


TOOLS = (go, take, put, open_box)


def _world(ctx: RunContext) -> World:
    world: World = ctx.state
    return world
