"""`sortie runs`."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

import click

from sortie.cli.models_of import runs_option
from sortie.cli.output import SCORE_COLUMNS, json_option, print_json, print_table, score_table


@click.group()
def runs() -> None:
    """What was trained here."""


@runs.command("list")
@runs_option
@json_option
def list_(runs: Path, as_json: bool) -> None:
    """List runs, the oldest first.

    \b
    Example:
      sortie runs list --json
    """
    from sortie.core.run_folder import list_runs

    found = [info.to_dict() for info in list_runs(runs)]
    if as_json:
        print_json(found)
        return
    for row in found:
        row["started"] = datetime.fromtimestamp(row["started"]).strftime("%Y-%m-%d %H:%M")
    columns = ("name", "started", "status", "steps", "model", "before", "after")
    print_table(found, columns, empty=f"no runs in {runs}/; start one with `sortie train RUN.toml`")


@runs.command()
@click.argument("run")
@runs_option
@json_option
def show(run: str, runs: Path, as_json: bool) -> None:
    """Show one run: its state, its last step and its result.

    \b
    Example:
      sortie runs show run-1
    """
    from sortie.core.run_folder import RunFolder

    folder = RunFolder.open(run, runs)
    info, metrics, summary = folder.info().to_dict(), folder.metrics(), folder.summary()
    last = metrics[-1] if metrics else None
    if as_json:
        print_json({**info, "last_step": last, "summary": summary})
        return
    click.echo(f"{info['name']}: {info['model']}, {info['status']} after {info['steps']} steps, in {info['path']}")
    if last:
        numbers = {key: value for key, value in last.items() if isinstance(value, int | float) and key != "at"}
        click.echo("last step: " + ", ".join(f"{key} {value:.4g}" for key, value in numbers.items()))
    for when in ("before", "after"):
        _print_scores(when, (summary or {}).get(when))


def _print_scores(when: str, scores: dict[str, Any] | None) -> None:
    if scores:
        click.echo(f"\n{when} training, on held-out tasks:")
        print_table(score_table(scores), SCORE_COLUMNS, empty="nothing")
