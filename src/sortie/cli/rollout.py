"""`sortie rollout`."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from sortie.cli.models_of import build_envs, levels_option, model_options, opened
from sortie.cli.output import json_option, print_json
from sortie.core.errors import UsageError

if TYPE_CHECKING:
    from sortie.core.task import Task
    from sortie.core.trajectory import Trajectory
    from sortie.envs import Env
    from sortie.orchestrator.session import Session


@click.command()
@click.argument("env_name", metavar="ENV")
@model_options
@click.option("--show", is_flag=True, help="Print every message, not only the result.")
@click.option("--task", "index", type=click.IntRange(0), default=0, show_default=True, help="Which task of the split.")
@click.option("--split", type=click.Choice(["train", "heldout"]), default="train", show_default=True)
@click.option("--temperature", type=click.FloatRange(0), default=1.0, show_default=True, help="0 is greedy.")
@click.option("--seed", type=int, default=0, show_default=True, help="Another seed, another rollout.")
@click.option("--oracle", is_flag=True, help="Let the environment's own solution speak; needs no model.")
@click.option("--no-tools", is_flag=True, help="Give the agent no tools.")
@levels_option
@json_option
def rollout(
    env_name: str,
    model: str | None,
    run: str | None,
    runs: Path,
    base_url: str | None,
    show: bool,
    index: int,
    split: str,
    temperature: float,
    seed: int,
    oracle: bool,
    no_tools: bool,
    levels: tuple[int, ...],
    as_json: bool,
) -> None:
    """Run one agent on one task, and say what happened.

    \b
    Examples:
      sortie rollout arithmetic --model smollm2-135m --show
      sortie rollout my_envs:shop --oracle --show
    """
    import asyncio

    from sortie.cli.transcript import result, transcript
    from sortie.core.records import to_line, tokens_of
    from sortie.envs.bare import without_tools

    (env,) = build_envs([env_name], levels)
    task = _pick(env, split, index)
    if no_tools:
        env = without_tools(env)

    async def act() -> tuple[Trajectory, Session]:
        from sortie.rollouts.engine import RolloutEngine

        source = _oracle(env, task) if oracle else opened(model, run, runs, base_url)
        async with source as session, RolloutEngine(session.client, session.renderer, run_seed=seed) as engine:
            return await engine.run_one(env, task, policy=session.policy, temperature=temperature), session

    trajectory, session = asyncio.run(act())
    if as_json:
        print_json({**to_line(trajectory, task), "tokens": tokens_of(trajectory)})
        return
    lines = transcript(trajectory, task, session.renderer.decode) if show else result(trajectory)
    click.echo("\n".join(lines))


def _pick(env: Env, split: str, index: int) -> Task:
    tasks = env.tasks("heldout" if split == "heldout" else "train")
    if index >= len(tasks):
        raise UsageError(f"environment {env.name!r} has {len(tasks)} {split} tasks: --task must be below that")
    return tasks[index]


@asynccontextmanager
async def _oracle(env: Env, task: Task) -> AsyncIterator[Session]:
    """A session in which the environment's own solution of the task speaks."""
    from sortie.inference.renderers.messages import MessageRenderer
    from sortie.inference.scripted import ScriptedClient
    from sortie.orchestrator.session import Session

    if env.oracle is None:
        raise UsageError(f"environment {env.name!r} has no oracle: it declares no Env(oracle=...)")
    renderer = MessageRenderer()
    client = ScriptedClient.from_texts(renderer, env.oracle(task))
    yield Session(model_name="oracle", client=client, renderer=renderer)
