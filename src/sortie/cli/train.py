"""`sortie train`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from sortie.cli.output import json_option, print_json

if TYPE_CHECKING:
    from sortie.orchestrator.config import RunConfig


@click.command()
@click.argument("run_file", metavar="RUN.toml", type=click.Path(path_type=Path))
@click.option("--set", "overrides", metavar="A.B=C", multiple=True, help="Change one setting; may be repeated.")
@click.option("--runs", type=click.Path(path_type=Path), default=Path("runs"), help="Folder of runs.  [default: runs]")
@click.option("--name", help="Name of this run.  [default: the next free number]")
@click.option("--dry-run", is_flag=True, help="Print the resolved settings and what the run would cost, then stop.")
@json_option
def train(
    run_file: Path, overrides: tuple[str, ...], runs: Path, name: str | None, dry_run: bool, as_json: bool
) -> None:
    """Train the agent that RUN.toml describes.

    \b
    Example:
      sortie train recipes/quickstart/run.toml --set optim.lr=1e-4 --set env.0.levels=[1,2]

    Everything about the run is kept in RUNS/NAME and can be read while it goes on.
    """
    import asyncio

    from sortie.core.config import load
    from sortie.orchestrator.config import RunConfig

    config = load(RunConfig, run_file, overrides)
    if dry_run:
        _print_plan(config, as_json)
        return
    from sortie.orchestrator.loop import train_run

    # With --json, stdout holds the result alone.
    summary = asyncio.run(train_run(config, runs=runs, name=name, say=lambda line: click.echo(line, err=as_json)))
    if as_json:
        print_json(summary.to_dict())


def _print_plan(config: RunConfig, as_json: bool) -> None:
    from sortie.orchestrator.setup import build_envs, check, preview

    built = build_envs(config)
    check(config, built)
    lines = preview(config, built)
    if as_json:
        print_json({"config": config.model_dump(mode="json"), "plan": lines})
    else:
        click.echo("\n".join([*(f"# {line}" for line in lines), "", config.to_toml().rstrip()]))
