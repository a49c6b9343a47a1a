"""What several commands share: which model to open, and which environments to build."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from sortie.core.errors import UsageError

if TYPE_CHECKING:
    from sortie.envs import Env
    from sortie.orchestrator.config import RunConfig
    from sortie.orchestrator.session import Session

F = TypeVar("F", bound=Callable[..., Any])

runs_option = click.option(
    "--runs", type=click.Path(path_type=Path), default=Path("runs"), help="Folder of runs.  [default: runs]"
)
levels_option = click.option(
    "--level", "levels", type=int, multiple=True, help="Only tasks of this difficulty grade; may be repeated."
)


def model_options(command: F) -> F:
    """Add --model, --run, --runs and --base-url."""
    options = (
        click.option("--model", help="A name from `sortie model list`, a folder, a hub id, or openai:NAME."),
        click.option("--run", help="Use the adapter that this run trained, on its model."),
        runs_option,
        click.option("--base-url", help="Address of an OpenAI-compatible server, ending in /v1."),
    )
    for option in reversed(options):
        command = option(command)
    return command


@asynccontextmanager
async def opened(model: str | None, run: str | None, runs: Path, base_url: str | None) -> AsyncIterator[Session]:
    """The model to sample from: of a run, or by name.

    Raises: UsageError if neither or a contradiction is given, UnknownName if there is no such run or model.
    """
    from sortie.core.run_folder import RunFolder
    from sortie.orchestrator.session import open_session

    if run is None:
        if model is None:
            raise UsageError("which model? give --model NAME (see `sortie model list`) or --run NAME")
        async with open_session(model, base_url=base_url) as session:
            yield session
        return
    folder = RunFolder.open(run, runs)
    config = config_of(folder)
    if model not in (None, config.model):
        raise UsageError(f"run {folder.name!r} trained {config.model!r}: leave --model out, or leave --run out")
    async with open_session(
        config.model,
        run=folder,
        dtype=config.dtype,
        device=config.device,
        threads=config.threads,
        renderer=config.renderer,
        base_url=base_url,
        engine=config.engine,
    ) as session:
        yield session


def config_of(folder: Any) -> RunConfig:
    """The resolved settings of a run.

    Raises: UsageError if it was stopped before they were written.
    """
    from sortie.orchestrator.config import RunConfig

    return RunConfig.from_toml(folder.config_text(), source=str(folder.path / "config.toml"))


def build_envs(names: Sequence[str], levels: Sequence[int]) -> list[Env]:
    """The named environments, of those levels where any are given.

    Raises: UnknownName, ConfigError if an environment has no levels.
    """
    from sortie import envs

    options: dict[str, Any] = {"levels": list(levels)} if levels else {}
    return [envs.build(name, **options) for name in names]
