"""One attempt at one rollout: set up, act, score, tear down.

Each phase has a time limit of its own and blames its own boundary. A limit ends the acting and is scored like any other
end; an error ends the attempt, and the reward stays None. The tear-down always runs.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager, asynccontextmanager
from typing import Any, Protocol

from sortie.agents.agent import Agent
from sortie.agents.rubric import Rubric
from sortie.context.limits import LimitReached
from sortie.context.run_context import Respond, RunContext
from sortie.context.tools import ToolLike
from sortie.core.errors import AgentError, BoundaryError, EnvError, RewardError, SortieError, blame
from sortie.core.messages import Message
from sortie.core.task import Task
from sortie.core.trajectory import StopReason
from sortie.resources.spec import ResourceSpec
from sortie.rollouts.watch import mark

log = logging.getLogger("sortie")

World = AbstractAsyncContextManager[Any] | AbstractContextManager[Any]


class EnvLike(Protocol):
    """What a rollout needs of an environment."""

    @property
    def name(self) -> str: ...
    @property
    def tools(self) -> Sequence[ToolLike]: ...
    @property
    def rubric(self) -> Rubric: ...
    @property
    def agent(self) -> Agent: ...
    @property
    def needs(self) -> Sequence[ResourceSpec[Any]]:
        """Everything its tools, rewards and the environment itself declare."""
        ...

    @property
    def setup(self) -> Callable[[Task, RunContext], World] | None:
        """Makes the context manager that yields `ctx.state`; None: there is no state."""
        ...

    @property
    def respond(self) -> Respond | None: ...
    @property
    def system(self) -> str | None: ...
    @property
    def examples(self) -> Sequence[Sequence[Message]]: ...


async def attempt(env: EnvLike, ctx: RunContext) -> None:
    """Run the agent on the task and fill in `ctx.trajectory`.

    Raises: BoundaryError naming where the attempt broke.
    """
    mark("setting up")
    world = _world(env, ctx)
    seconds = min(ctx.limits.setup_seconds, ctx.remaining_s)
    async with _phase(EnvError, f"set-up of environment {env.name!r}", seconds):
        ctx.state = await world.__aenter__()
    try:
        await _act(env.agent, ctx)
        await _score(env.rubric, ctx)
    except BaseException:
        try:
            await _tear_down(env, world, ctx)
        except EnvError as late:
            log.warning("%s, after an error of its rollout", late)
        raise
    await _tear_down(env, world, ctx)


async def _act(agent: Agent, ctx: RunContext) -> None:
    mark("acting")
    seconds, reason = ctx.remaining_s, StopReason.AGENT_DONE
    try:
        async with asyncio.timeout(seconds):
            with blame(AgentError, f"agent {type(agent).__name__}"):
                await agent.run(ctx.task, ctx)
    except TimeoutError:  # the agent's own would have become an AgentError
        reason = StopReason.TIME
    except LimitReached as limit:
        reason = limit.reason
    except SortieError as error:
        ctx.trajectory.stop_reason = StopReason.ERROR
        if isinstance(error, BoundaryError):
            raise
        raise AgentError(f"agent {type(agent).__name__}: {error}") from error
    if not ctx.finished:  # no limit overwrites an end that was reached
        ctx.trajectory.stop_reason = reason


async def _score(rubric: Rubric, ctx: RunContext) -> None:
    mark("scoring")
    async with _phase(RewardError, "scoring", ctx.limits.score_seconds):
        reward, values = await rubric.score(ctx.task, ctx.trajectory, ctx)
    ctx.trajectory.reward, ctx.trajectory.rewards = reward, values


async def _tear_down(env: EnvLike, world: AbstractAsyncContextManager[Any], ctx: RunContext) -> None:
    mark("tearing down")
    # Always left as after success: a set-up written as a generator then runs the lines behind its yield.
    async with _phase(EnvError, f"tear-down of environment {env.name!r}", ctx.limits.setup_seconds):
        await world.__aexit__(None, None, None)


@asynccontextmanager
async def _phase(kind: type[BoundaryError], what: str, seconds: float) -> AsyncIterator[None]:
    """Bound a phase in time; whatever it raises leaves as a BoundaryError."""
    try:
        async with asyncio.timeout(seconds):
            with blame(kind, what):
                yield
    except TimeoutError:
        raise kind(f"{what} did not finish within {seconds:g} s") from None
    except BoundaryError:  # with the cause it has: that is where the fault is
        raise
    except SortieError as error:  # a usage error or a limit where nobody handles it is the fault of that phase
        raise kind(f"{what}: {error}") from error


@asynccontextmanager
async def _world(env: EnvLike, ctx: RunContext) -> AsyncIterator[Any]:
    if env.setup is None:
        yield None
        return
    world = env.setup(ctx.task, ctx)
    if isinstance(world, AbstractAsyncContextManager):
        async with world as state:
            yield state
    else:
        with world as state:
            yield state
