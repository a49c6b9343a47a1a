"""`sortie chat`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sortie.cli.models_of import build_envs, config_of, opened, runs_option
from sortie.core.errors import SortieError

if TYPE_CHECKING:
    from sortie.context.run_context import RunContext
    from sortie.core.messages import Message
    from sortie.core.task import Task
    from sortie.envs import Env

CALLS = 8
"""Most turns with tool calls before the agent must listen again."""
A_DAY = 86_400.0


@click.command()
@click.argument("run")
@click.option("--env", "env_name", help="Whose tools it has.  [default: the first environment of the run]")
@click.option("--temperature", type=click.FloatRange(0), default=0.7, show_default=True, help="0 is greedy.")
@runs_option
def chat(run: str, env_name: str | None, temperature: float, runs: Path) -> None:
    """Talk to the agent that a run trained; its tools are executed. Ctrl-D ends.

    \b
    Example:
      sortie chat run-1 --env inventory
    """
    import asyncio

    from sortie.core.run_folder import RunFolder

    config = config_of(RunFolder.open(run, runs))
    tables = {table.name: table for table in config.env}
    name = env_name or config.env[0].name
    (env,) = build_envs([name], tables[name].options.get("levels", ()) if name in tables else ())
    asyncio.run(_talk(run, runs, env, temperature))


async def _talk(run: str, runs: Path, env: Env, temperature: float) -> None:
    from sortie.context.limits import Limits
    from sortie.rollouts.engine import RolloutEngine

    async with opened(None, run, runs, None) as session:
        window = session.window or 8192
        limits = Limits(turn_tokens=min(512, window // 4), rollout_tokens=10**9, window=window, seconds=A_DAY)
        click.echo(f"{run} with the tools of {env.name}: {', '.join(tool.name for tool in env.tools) or 'none'}")
        talk, task = Talkative.of(env, Talker(input, click.echo)), env.tasks("train")[0]
        # A task gives the tools the state they work on; its prompt is not shown, yours takes its place.
        async with RolloutEngine(session.client, session.renderer, limits=limits) as engine:
            trajectory = await engine.run_one(talk, task, policy=session.policy, temperature=temperature)
    if trajectory.error:
        raise SortieError(f"the conversation broke at {trajectory.boundary}: {trajectory.error}")


@dataclass(frozen=True, slots=True)
class Talker:
    """An agent that asks a person what to do. `ask` raises EOFError when the person has gone."""

    ask: Callable[[str], str]
    say: Callable[[str], Any]

    async def run(self, task: Task, ctx: RunContext) -> None:
        """Alternate between person and model until the person goes, or the window is full."""
        from sortie.agents.react import ReAct
        from sortie.agents.threads import in_thread
        from sortie.core.messages import user

        opening = ReAct().opening(task, ctx)
        new = opening[: -1 if isinstance(task.prompt, str) else -len(task.prompt)]
        while True:
            try:
                said = await in_thread(self.ask, "\nyou> ")
            except EOFError:
                ctx.finish(None)
                self.say("")
                return
            new = [*new, user(said)]
            await self._answer(ctx, new)
            new = []

    async def _answer(self, ctx: RunContext, new: Sequence[Message]) -> None:
        from sortie.agents.calls import run_calls
        from sortie.context.limits import LimitReached
        from sortie.core.trajectory import StopReason

        for _ in range(CALLS):
            try:
                message = await ctx.sample(new)
            except LimitReached as limit:
                if limit.reason is not StopReason.TURN_TOKENS or limit.message is None:
                    self.say("(the conversation fills the model's window: start a new one)")
                    raise
                self.say(f"agent> {limit.message.content} (cut)")
                return
            if message.content:
                self.say(f"agent> {message.content}")
            if not message.tool_calls:
                return
            for call in message.tool_calls:
                arguments = ", ".join(f"{name}={value!r}" for name, value in call.arguments.items())
                self.say(f"  calls {call.name}({arguments})" if call.error is None else f"  bad call: {call.error}")
            new = await run_calls(ctx, message.tool_calls)
            for answer in new:
                self.say(f"  gets  {answer.content}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Talkative:
    """An environment with another agent, and nothing to score."""

    name: str
    tools: Any
    rubric: Any
    agent: Any
    needs: Any
    setup: Any
    respond: Any
    system: Any
    examples: Any

    @classmethod
    def of(cls, env: Env, agent: Talker) -> Talkative:
        """`env` as seen by `agent`."""
        from sortie.agents.rubric import Rubric

        same = {name: getattr(env, name) for name in ("name", "tools", "needs", "setup", "system", "examples")}
        return cls(**same, rubric=Rubric(), agent=agent, respond=None)
