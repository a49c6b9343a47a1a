"""`sortie train`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from sortie.cli.output import json_option, print_json
from sortie.core.errors import ConfigError

if TYPE_CHECKING:
    from sortie.orchestrator.config import RunConfig


@click.command()
@click.argument("run_file", metavar="[RUN.toml]", required=False, type=click.Path(path_type=Path))
@click.option("--set", "overrides", metavar="A.B=C", multiple=True, help="Change one setting; may be repeated.")
@click.option("--runs", type=click.Path(path_type=Path), default=Path("runs"), help="Folder of runs.  [default: runs]")
@click.option("--name", help="Name of this run.  [default: the next free number]")
@click.option(
    "--resume", metavar="RUN", help="Go on with this run from its last step, by its own settings and any --set."
)
@click.option("--dry-run", is_flag=True, help="Print the resolved settings and what the run would cost, then stop.")
@json_option
def train(
    run_file: Path | None,
    overrides: tuple[str, ...],
    runs: Path,
    name: str | None,
    resume: str | None,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Train the agent that RUN.toml describes, or go on with a run that was interrupted or is to learn more.

    \b
    Examples:
      sortie train recipes/quickstart/run.toml --set optim.lr=1e-4 --set env.0.levels=[1,2]
      sortie train --resume arithmetic+inventory-1 --set steps=30

    Everything about the run is kept in RUNS/NAME and can be read while it goes on.
    """
    import asyncio

    if (run_file is None) == (resume is None):
        raise ConfigError("give either a RUN.toml to start, or --resume RUN to go on")
    if resume is not None and (name is not None or dry_run):
        raise ConfigError(f"{'--name' if name is not None else '--dry-run'} has no effect with --resume; leave it out")
    if run_file is not None and dry_run:
        _print_plan(_read(run_file, overrides), as_json)
        return
    from sortie.orchestrator.loop import resume_run, train_run

    def say(line: str) -> None:
        click.echo(line, err=as_json)  # with --json, stdout holds the result alone

    if resume is not None:
        summary = asyncio.run(resume_run(resume, runs=runs, changes=overrides, say=say))
    else:
        assert run_file is not None
        summary = asyncio.run(train_run(_read(run_file, overrides), runs=runs, name=name, say=say))
    if as_json:
        print_json(summary.to_dict())


def _read(run_file: Path, overrides: tuple[str, ...]) -> RunConfig:
    from sortie.core.config import load
    from sortie.orchestrator.config import RunConfig

    return load(RunConfig, run_file, overrides)


def _print_plan(config: RunConfig, as_json: bool) -> None:
    from sortie.orchestrator.setup import build_envs, check, preview

    built = build_envs(config)
    check(config, built)
    lines = preview(config, built)
    if as_json:
        print_json({"config": config.model_dump(mode="json"), "plan": lines})
    else:
        click.echo("\n".join([*(f"# {line}" for line in lines), "", config.to_toml().rstrip()]))
