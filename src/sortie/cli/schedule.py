"""`sortie schedule`."""

from __future__ import annotations

from pathlib import Path

import click

from sortie.cli.models_of import runs_option
from sortie.cli.output import json_option, print_json


@click.group()
def schedule() -> None:
    """Which tasks a run spent its rollouts on, and why."""


@schedule.command()
@click.argument("run")
@click.option("--env", "env", metavar="NAME", help="Only this environment.")
@click.option(
    "--task",
    "tasks",
    metavar="KEY",
    multiple=True,
    help="Why this task was or was not chosen at the last select; its key or the beginning of it; may be repeated. "
    "The text then is only about these.",
)
@click.option(
    "--plot",
    "plot",
    metavar="FILE.png",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Also draw predictions, coverage, waste and groups over the steps.",
)
@runs_option
@json_option
def explain(run: str, env: str | None, tasks: tuple[str, ...], plot: Path | None, runs: Path, as_json: bool) -> None:
    """Explain how a run chose its tasks: what was predicted, what was spent, what it brought, what was wasted.

    Works on finished, running and interrupted runs of every task scheduler, and changes nothing in them. A group is
    the rollouts on one task; it teaches only if their rewards differ (it is then informative). A hint is a cluster of
    tasks that look alike before they are tried, a pattern one of tasks whose rollouts go alike.

    \b
    Examples:
      sortie schedule explain run-1
      sortie schedule explain run-1 --env sqlite_qa --plot schedule.png
      sortie schedule explain run-1 --task sqlite_qa/1f6b
      sortie schedule explain run-1 --json
    """
    from sortie.cli.schedule_text import lines
    from sortie.core.run_folder import RunFolder
    from sortie.orchestrator.schedule import explain_run

    told = explain_run(RunFolder.open(run, runs), env=env, tasks=tasks)
    if plot is not None:
        from sortie.orchestrator.schedule.plot import plot_schedule

        plot_schedule(told, plot)
    if as_json:
        print_json(told.to_dict())
        return
    for line in lines(told):
        click.echo(line)
    if plot is not None:
        click.echo(f"\nwrote {plot}")
