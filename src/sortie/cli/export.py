"""`sortie export`."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import click

from sortie.cli.models_of import runs_option
from sortie.cli.output import json_option, print_json


@click.command()
@click.argument("run")
@click.option("--out", type=click.Path(path_type=Path), required=True, help="New folder to write.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["peft", "merged"]),
    default="peft",
    show_default=True,
    help="A PEFT adapter, or the whole model with the adapter merged in.",
)
@runs_option
@json_option
def export(run: str, out: Path, form: Literal["peft", "merged"], runs: Path, as_json: bool) -> None:
    """Write what a run trained, for peft and transformers to load.

    \b
    Examples:
      sortie export run-1 --out adapter
      sortie export run-1 --format merged --out model
    """
    from sortie.core.run_folder import RunFolder
    from sortie.orchestrator.export import export_run

    folder = export_run(RunFolder.open(run, runs), out, form)
    if as_json:
        print_json({"run": run, "format": form, "folder": str(folder)})
    else:
        click.echo(folder)
