"""The contract of agents: the loop that decides."""

from __future__ import annotations

from typing import Protocol

from sortie.context.run_context import RunContext
from sortie.core.task import Task


class Agent(Protocol):
    """Runs one task. Agents hold no state of a rollout: one instance serves many at once."""

    async def run(self, task: Task, ctx: RunContext) -> None:
        """Draw turns with `ctx.sample`, call tools, and end with `ctx.finish(answer)`; or just return.

        Raises: LimitReached when a limit is hit, which is recorded and scored; anything else is this agent's error.
        """
        ...
