"""`sortie runs`."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sortie.cli.models_of import build_envs, config_of, runs_option
from sortie.cli.output import SCORE_COLUMNS, json_option, print_json, print_table, score_table
from sortie.core.errors import UsageError

if TYPE_CHECKING:
    from sortie.core.run_folder import RunFolder


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
@click.option("--rollouts", "listed", is_flag=True, help="List the stored rollouts.")
@click.option("--rollout", "wanted", metavar="ID", help="Show one rollout, by its id or its serial number.")
@click.option("--tokens", is_flag=True, help="With --rollout: one line per token, with mask and log-probability.")
@runs_option
@json_option
def show(run: str, listed: bool, wanted: str | None, tokens: bool, runs: Path, as_json: bool) -> None:
    """Show one run: its state, its last step and its result; or one of its rollouts, whole.

    \b
    Examples:
      sortie runs show run-1
      sortie runs show run-1 --rollouts
      sortie runs show run-1 --rollout 17 --tokens
    """
    from sortie.cli import stored
    from sortie.core.run_folder import RunFolder

    folder = RunFolder.open(run, runs)
    if tokens and wanted is None:
        raise UsageError("--tokens needs --rollout ID: the tokens of which rollout?")
    if wanted is not None:
        _show_rollout(folder, wanted, tokens, as_json)
    elif listed:
        rows = [stored.list_row(record) for record in folder.trajectories()]
        if as_json:
            print_json(rows)
        else:
            print_table(rows, stored.LIST_COLUMNS, empty="no rollout has ended yet")
    else:
        _show_run(folder, as_json)


def _show_run(folder: RunFolder, as_json: bool) -> None:
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


def _show_rollout(folder: RunFolder, wanted: str, tokens: bool, as_json: bool) -> None:
    from sortie.cli import stored
    from sortie.cli.transcript import transcript

    found = stored.find(folder, wanted)
    if as_json:
        print_json(stored.to_dict(found[-1]))
        return
    config, t = config_of(folder), found[-1].trajectory
    decode = stored.decoder_of(config.model, config.renderer)
    click.echo("\n".join([*stored.heading(found), ""]))
    print_table(stored.node_rows(t), stored.NODE_COLUMNS, empty="it ended before anything was rendered")
    if t.tools:
        click.echo("")
        print_table(stored.tool_rows(t), stored.TOOL_COLUMNS, empty="no tool was called")
    if tokens:
        click.echo("")
        print_table(stored.token_rows(t, decode), stored.TOKEN_COLUMNS, empty="no tokens")
    click.echo("\n".join(["", *transcript(t, found[-1].task, decode)]))


@runs.command()
@click.argument("names", metavar="RUN RUN...", nargs=-1, required=True)
@runs_option
@json_option
def compare(names: tuple[str, ...], runs: Path, as_json: bool) -> None:
    """Put runs side by side: the settings that differ, success before and after with 95% intervals, steps and time.

    \b
    Example:
      sortie runs compare run-1 run-2
    """
    from sortie.core.run_folder import RunFolder
    from sortie.orchestrator.compare import compare as compare_runs

    if len(set(names)) < 2:
        raise UsageError("name at least two different runs to compare")
    found = compare_runs([RunFolder.open(name, runs) for name in names])
    if as_json:
        print_json(found.to_dict())
        return
    columns = ("setting", *found.results)
    rows = [{"setting": key, **{name: str(v) for name, v in row.items()}} for key, row in found.settings.items()]
    print_table(rows, columns, empty="no setting differs")
    click.echo("")
    results = [
        {"": key, **{name: _shown(result[key]) for name, result in found.results.items()}}
        for key in ("status", "steps", "wall_s")
    ]
    print_table([*results, *_score_rows(found.results)], ("", *found.results), empty="no result")


def _shown(value: Any) -> Any:
    return round(value, 1) if isinstance(value, float) else value


def _score_rows(results: dict[str, dict[str, Any]]) -> list[dict[str, Any]]:
    """One line per environment, before and after training."""
    rows = []
    for when in ("before", "after"):
        scores = {name: result[when] or {} for name, result in results.items()}
        for env in dict.fromkeys(env for of_run in scores.values() for env in of_run):
            rows.append({"": f"{when} {env}", **{name: _interval(of_run.get(env)) for name, of_run in scores.items()}})
    return rows


def _interval(score: dict[str, Any] | None) -> str | None:
    if score is None or score["mean"] is None:
        return None
    return f"{score['mean']:.3f} [{score['low']:.3f}, {score['high']:.3f}]"


@runs.command()
@click.argument("run")
@click.option("--env", "env_name", required=True, help="Environment with the changed reward; also module:attribute.")
@click.option("--step", type=click.IntRange(0), help="Only the rollouts of this step.")
@runs_option
@json_option
def replay(run: str, env_name: str, step: int | None, runs: Path, as_json: bool) -> None:
    """Score a run's stored rollouts anew with the rewards of an environment, without drawing a token.

    \b
    Example:
      sortie runs replay run-1 --env my_envs:shop --step 3
    """
    import asyncio

    from sortie.core.run_folder import RunFolder
    from sortie.orchestrator.replay import replay as rescore

    (env,) = build_envs([env_name], ())
    found = asyncio.run(rescore(RunFolder.open(run, runs).trajectories(step), env))
    if as_json:
        print_json(found.to_dict())
        return
    for name, needs in found.live.items():
        click.echo(f"reward {name!r} needs {needs}, gone with the rollout: its recorded value stands")
    rows = [asdict(r) for r in found.rollouts if r.before != r.after]
    print_table(rows, ("serial", "step", "phase", "id", "before", "after", "error"), empty="no reward changed")
    totals = found.totals()
    counts = f"{totals['changed']} of {totals['n']} rollouts of {found.env} changed, {totals['unscored']} not scored"
    click.echo(f"\n{counts}")
    for key in ("reward", "informative"):
        click.echo(f"{key:<12} {_mean(totals[key]['before'])} -> {_mean(totals[key]['after'])}")


def _mean(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def _print_scores(when: str, scores: dict[str, Any] | None) -> None:
    if scores:
        click.echo(f"\n{when} training, on held-out tasks:")
        print_table(score_table(scores), SCORE_COLUMNS, empty="nothing")
