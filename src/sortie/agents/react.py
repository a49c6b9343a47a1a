"""ReAct: reason, act, observe, until there is an answer (Yao et al. 2022, arXiv 2210.03629)."""

from __future__ import annotations

from collections.abc import Sequence
from inspect import isawaitable

from pydantic import Field

from sortie.agents.calls import run_calls
from sortie.context.limits import LimitReached
from sortie.context.run_context import Done, Response, RunContext
from sortie.core.config import Config
from sortie.core.errors import EnvError, blame
from sortie.core.messages import Message, system, user
from sortie.core.task import Task
from sortie.core.trajectory import StopReason


class ReAct(Config):
    """Calls tools turn by turn; the first turn without a call is the answer, or goes to the environment's `respond`."""

    max_turns: int = Field(4, ge=1)
    """Most turns the model may take."""
    system: str | None = None
    """System message; None: the environment's."""
    examples: tuple[tuple[Message, ...], ...] = ()
    """Worked examples, each a conversation, shown before the task; empty: the environment's."""

    async def run(self, task: Task, ctx: RunContext) -> None:
        """Raises: LimitReached(TURN_LIMIT) if `max_turns` pass without an answer; the last turn's calls still run."""
        new: Sequence[Message] = self.opening(task, ctx)
        for _ in range(self.max_turns):
            message = await ctx.sample(new)
            if message.tool_calls:
                new = await run_calls(ctx, message.tool_calls)
            else:
                new = await self._hear(message, ctx)
            if ctx.finished:
                return
        raise LimitReached(StopReason.TURN_LIMIT, f"no answer within {self.max_turns} turns")

    def opening(self, task: Task, ctx: RunContext) -> list[Message]:
        """System message, examples, then the task; a system message that the task brings takes the place of ours."""
        prompt = [user(task.prompt)] if isinstance(task.prompt, str) else list(task.prompt)
        text = self.system if self.system is not None else ctx.system
        head = [system(text)] if text is not None else []
        if prompt and prompt[0].role == "system":
            head = [prompt.pop(0)]
        return [*head, *(message for example in (self.examples or ctx.examples) for message in example), *prompt]

    async def _hear(self, message: Message, ctx: RunContext) -> list[Message]:
        """What the environment says to a turn without calls; where it says nothing, that turn was the answer."""
        response: Response = None
        if ctx.respond is not None:
            with blame(EnvError, f"respond of environment {ctx.env_name!r}"):
                raw = ctx.respond(ctx, message)
                response = await raw if isawaitable(raw) else raw
        if isinstance(response, str):
            return [user(response)]
        if isinstance(response, Done):
            answer = message.content if response.answer is None else response.answer
            ctx.finish(answer, StopReason.ENV_DONE)
        else:
            ctx.finish(message.content)
        return []
