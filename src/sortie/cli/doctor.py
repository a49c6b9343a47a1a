"""`sortie doctor`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from sortie.cli.models_of import runs_option
from sortie.cli.output import json_option, print_json
from sortie.core.errors import UsageError

if TYPE_CHECKING:
    from sortie.orchestrator.doctor.check import Check


@click.command()
@click.argument("target", metavar="[RUN.toml | RUN]", required=False)
@click.option("--model", help="Look at a model: a name from `sortie model list`, a folder or a hub id.")
@click.option("--set", "overrides", metavar="A.B=C", multiple=True, help="Change one setting of RUN.toml.")
@runs_option
@json_option
def doctor(target: str | None, model: str | None, overrides: tuple[str, ...], runs: Path, as_json: bool) -> None:
    """Say what to change, most costly first: on this machine, in a run file, or in a run.

    \b
    Examples:
      sortie doctor                                 the machine
      sortie doctor --model smollm2-135m            do engine, trainer and chat template agree?
      sortie doctor recipes/quickstart/run.toml     all of that, and one small step
      sortie doctor run-1                           what holds this run back?

    Exit code 1 if something fails.
    """
    from sortie.orchestrator.doctor.check import most_costly_first

    if model is not None and target is not None:
        raise UsageError("give --model, or a run file or run, not both")
    if overrides and not (target or "").endswith(".toml"):
        raise UsageError("--set changes a run file: name one")
    found = most_costly_first(_examine(target, model, overrides, runs))
    if as_json:
        print_json([check.to_dict() for check in found])
    else:
        _print(found)
    if any(check.status == "fail" for check in found):
        raise click.exceptions.Exit(1)


def _examine(target: str | None, model: str | None, overrides: Sequence[str], runs: Path) -> list[Check]:
    import asyncio

    if target is not None and not target.endswith(".toml"):
        from sortie.core.run_folder import RunFolder
        from sortie.orchestrator.doctor.run_report import run_checks

        return run_checks(RunFolder.open(target, runs))
    from sortie.orchestrator.doctor import examine

    if target is not None:
        from sortie.core.config import load
        from sortie.orchestrator.config import RunConfig

        config = load(RunConfig, Path(target), overrides)
        return asyncio.run(examine.examine_run_file(config, runs, lambda line: click.echo(line, err=True)))
    if model is not None:
        return asyncio.run(examine.examine_model(model, runs))
    return asyncio.run(examine.examine_machine(runs))


def _print(checks: Sequence[Check]) -> None:
    width = max(len(check.name) for check in checks)
    for check in checks:
        click.echo(f"{check.status:<4}  {check.name:<{width}}  {check.finding}")
        if check.remedy:
            click.echo(f"{'':<{width + 8}}-> {check.remedy}")
    counts = Counter(check.status for check in checks)
    click.echo(f"\n{counts['fail']} failed, {counts['warn']} to look at, {counts['ok']} well")
