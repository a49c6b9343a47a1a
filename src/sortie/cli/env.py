"""`sortie env`."""

from __future__ import annotations

import click

from sortie.cli.output import json_option, print_json


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
