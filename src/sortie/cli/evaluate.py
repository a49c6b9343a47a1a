"""`sortie eval`."""

from __future__ import annotations

from pathlib import Path

import click

from sortie.cli.models_of import build_envs, levels_option, model_options, opened
from sortie.cli.output import SCORE_COLUMNS, json_option, print_json, print_table, score_table


@click.command("eval")
@click.argument("env_names", metavar="ENV...", nargs=-1, required=True)
@model_options
@click.option("--tasks", type=click.IntRange(1), default=100, show_default=True, help="Tasks per environment.")
@click.option("--temperature", type=click.FloatRange(0), default=1.0, show_default=True, help="0 is greedy.")
@click.option("--split", type=click.Choice(["heldout", "train"]), default="heldout", show_default=True)
@click.option("--seed", type=int, default=0, show_default=True, help="Key of the randomness.")
@click.option(
    "--seconds", type=click.FloatRange(0, min_open=True), default=120.0, show_default=True, help="Per rollout."
)
@click.option("--max-concurrent", type=click.IntRange(1), default=64, show_default=True, help="Rollouts at once.")
@click.option("--no-tools", is_flag=True, help="Give the agent no tools: what does the model know by itself?")
@levels_option
@json_option
def evaluate(
    env_names: tuple[str, ...],
    model: str | None,
    run: str | None,
    runs: Path,
    base_url: str | None,
    tasks: int,
    temperature: float,
    split: str,
    seed: int,
    seconds: float,
    max_concurrent: int,
    no_tools: bool,
    levels: tuple[int, ...],
    as_json: bool,
) -> None:
    """Measure success on held-out tasks, with 95% intervals.

    \b
    Examples:
      sortie eval arithmetic inventory --model smollm2-135m
      sortie eval arithmetic --run run-1 --level 3
      sortie eval arithmetic --model openai:gpt-4o-mini
      sortie eval arithmetic --model openai:qwen3 --base-url http://localhost:8000/v1
    """
    import asyncio

    from sortie.context.limits import Limits
    from sortie.core.trajectory import StopReason
    from sortie.orchestrator import evaluate as evaluation
    from sortie.orchestrator.checks import time_warnings

    built, limits = build_envs(env_names, levels), Limits(seconds=seconds)
    stops: list[StopReason | None] = []

    async def measure() -> dict[str, evaluation.Score]:
        async with opened(model, run, runs, base_url) as session:
            return await evaluation.evaluate(
                session,
                built,
                tasks=tasks,
                temperature=temperature,
                seed=seed,
                split="train" if split == "train" else "heldout",
                tools=not no_tools,
                limits=limits,
                max_concurrent=max_concurrent,
                on_done=lambda trajectory, _: stops.append(trajectory.stop_reason),
            )

    scores = {name: score.to_dict() for name, score in asyncio.run(measure()).items()}
    for line in time_warnings(
        stops.count(StopReason.TIME), len(stops), limits, remedy="raise --seconds, or lower --max-concurrent"
    ):
        click.echo(f"warning: {line}", err=True)
    if as_json:
        print_json(scores)
    else:
        print_table(score_table(scores), SCORE_COLUMNS, empty="no environment")
