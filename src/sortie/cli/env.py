"""`sortie env`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from sortie.cli.models_of import levels_option
from sortie.cli.output import json_option, print_json, print_table

if TYPE_CHECKING:
    from sortie.rollouts.check import Finding


@click.group()
def env() -> None:
    """Environments to train in."""


@env.command("list")
@json_option
def list_(as_json: bool) -> None:
    """List the environments that ship with Sortie. Your own is named module:attribute wherever these names go.

    \b
    Example:
      sortie env list --json
    """
    from sortie import envs

    found = envs.catalog_info()
    if as_json:
        print_json([{name: getattr(info, name) for name in info.__dataclass_fields__} for info in found])
        return
    for info in found:
        click.echo(f"{info.name}: {info.description}")
        click.echo("  tools   " + "\n          ".join(info.tools))
        grades = [f"{level}: {asks}" for level, asks in info.levels.items()]
        click.echo("  levels  " + "\n          ".join(grades))


@env.command()
@click.argument("name")
@click.option("--tasks", type=click.IntRange(1), default=3, show_default=True, help="Tasks of each level to try.")
@levels_option
@json_option
def check(name: str, tasks: int, levels: tuple[int, ...], as_json: bool) -> None:
    """Check that an environment is fit to train in. No model is needed; the exit code is 1 if a check fails.

    \b
    Its oracle must score 1, an agent that does nothing 0, and a hostile one 0: it reads the verifier,
    prints its markers, edits tests, and makes empty, huge and malformed calls. Equal seeds must give
    equal episodes, and no rollout may leave a trace in another.

    \b
    Examples:
      sortie env check inventory
      sortie env check my_envs:shop --tasks 10
    """
    import asyncio
    from dataclasses import asdict

    from sortie import envs
    from sortie.rollouts.check import check_env

    chosen = list(levels or envs.levels_of(name))
    options: dict[str, Any] = {"levels": chosen} if chosen else {}
    findings = asyncio.run(check_env(lambda: envs.build(name, **options), tasks))
    sound = not any(finding.failed for finding in findings)
    if as_json:
        print_json({"env": name, "ok": sound, "checks": [asdict(finding) for finding in findings]})
    else:
        _show(findings)
    if not sound:
        raise click.exceptions.Exit(1)


def _show(findings: Sequence[Finding]) -> None:
    """A line per level with how many tries of each check went well, then what went wrong."""
    from sortie.rollouts.check import CHECKS

    rows: dict[int | None, dict[str, Any]] = {}
    for finding in findings:
        row = rows.setdefault(finding.level, {"level": finding.level})
        row[finding.check] = f"{finding.tried - finding.failed}/{finding.tried}"
    print_table(list(rows.values()), ("level", *CHECKS), empty="no tasks")
    said: set[str | None] = {None}
    for finding in findings:
        if finding.fault not in said:  # a sandbox that does not start fails everything in the same words
            said.add(finding.fault)
            where = "" if finding.level is None else f", level {finding.level}"
            click.echo(f"failed: {finding.check}{where}: {finding.fault} (task {finding.prompt!r})")
