"""What agents, tools and rewards are handed: one rollout's side of everything."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from sortie.context.limits import Limits
from sortie.context.seeds import MAIN
from sortie.context.thread import Sampling, Thread
from sortie.context.tools import ToolLike
from sortie.context.window import ContextWindow
from sortie.core.messages import Message
from sortie.core.task import Task
from sortie.core.trajectory import StopReason, Trajectory
from sortie.resources.lease import Leases
from sortie.resources.spec import ResourceSpec

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Done:
    """What `respond` returns to end the rollout."""

    answer: str | None = None
    """Becomes the trajectory's answer; None: what the agent wrote last."""


Response = str | Done | None
"""Text: the next user message. Done: the environment ends the rollout. None: it has nothing to say, so what the agent
wrote was its answer."""

Respond = Callable[["RunContext", Message], Response | Awaitable[Response]]


@dataclass(slots=True, kw_only=True)
class RunContext:
    """The handle of one rollout. Valid from its set-up to its last reward; never crosses a process boundary."""

    rollout_id: str
    task: Task
    env_name: str
    member: int
    trajectory: Trajectory
    sampling: Sampling
    limits: Limits
    window: ContextWindow
    deadline: float
    """When set-up and agent must be through, in the event loop's time."""
    tools: Mapping[str, ToolLike] = field(default_factory=dict)
    leases: Leases = field(default_factory=Leases)
    """What is held for this rollout."""
    state: Any = None
    """What the environment's set-up yielded."""
    respond: Respond | None = None
    """The environment's side of the conversation, where it has one."""
    system: str | None = None
    """The environment's system message."""
    examples: Sequence[Sequence[Message]] = ()
    """The environment's worked examples, each a conversation."""
    scratch: dict[str, Any] = field(default_factory=dict)
    """Free for use; lives as long as this rollout."""
    shared: dict[str, Any] = field(default_factory=dict)
    """Free for use; lives as long as the run and is seen by all of its rollouts."""
    finished: bool = False
    """Whether `finish` was called. No later limit overwrites that."""
    _main: Thread | None = None
    _threads: dict[str, int] = field(default_factory=dict)

    async def sample(self, new: Sequence[Message], max_tokens: int | None = None) -> Message:
        """Add messages to the main conversation and draw the agent's next turn.

        Raises: LimitReached when a limit is hit (see Thread.sample), ModelError if the sampler failed.
        """
        return await self.main.sample(new, max_tokens)

    async def resample(self, max_tokens: int | None = None) -> Message:
        """Abandon the main conversation's last turn and draw it anew."""
        return await self.main.resample(max_tokens)

    @property
    def main(self) -> Thread:
        """The main conversation."""
        if self._main is None:
            self._main = self._open(MAIN, MAIN, tuple(self.tools.values()))
        return self._main

    def thread(self, agent: str, tools: Sequence[ToolLike] = ()) -> Thread:
        """Open another conversation in the same trajectory: a helper, a critic, a second player."""
        number = self._threads.get(agent, 0)
        self._threads[agent] = number + 1
        return self._open(agent, f"{agent}#{number}", tools)

    def _open(self, agent: str, key: str, tools: Sequence[ToolLike]) -> Thread:
        schemas = [tool.schema for tool in tools]
        return Thread(self.sampling, self.trajectory, self.window, agent=agent, key=key, tools=schemas)

    def lease(self, spec: ResourceSpec[T] | type[ResourceSpec[T]]) -> T:
        """The instance held for this rollout: of one spec, or of the only spec of a type.

        Raises: UndeclaredResource, naming the declaration to add, if nothing such is held.
        """
        return self.leases.find(spec)

    def finish(self, answer: str | None, reason: StopReason = StopReason.ANSWERED) -> None:
        """Record the answer and that the rollout reached an end of its own. The first call stands."""
        if not self.finished:
            self.finished = True
            self.trajectory.answer = answer
            self.trajectory.stop_reason = reason

    @property
    def remaining_s(self) -> float:
        """Seconds left of the rollout's wall clock; never negative."""
        return max(0.0, self.deadline - asyncio.get_running_loop().time())
