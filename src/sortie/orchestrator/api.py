"""`sortie.train`: one call, in a script or in a notebook cell."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any, TypeVar

from sortie.core.config import load, parse
from sortie.envs import Env
from sortie.orchestrator.config import RunConfig
from sortie.orchestrator.loop import train_run
from sortie.orchestrator.summary import Summary

T = TypeVar("T")


def train(
    what: RunConfig | Env | Sequence[Env] | str | Path,
    *,
    runs: str | Path = "runs",
    name: str | None = None,
    say: Callable[[str], None] = print,
    **settings: Any,
) -> Summary:
    """Train on environments, by a run file, or by a RunConfig, and wait for the end.

    `settings` are run-file keys: `model="smollm2-135m"`, `steps=20`, `rollouts={"groups": 4}`; a double underscore
    reaches into a section: `optim__lr=1e-4`. Works inside a running event loop, as in a notebook.
    Raises: ConfigError for a setting that does not exist, and whatever `train_run` raises.
    """
    envs: list[Env] | None = None
    if isinstance(what, (str, Path)):
        config = parse(RunConfig, _nested(load(RunConfig, Path(what)).model_dump(), settings), source="train()")
    elif isinstance(what, RunConfig):
        config = parse(RunConfig, _nested(what.model_dump(), settings), source="train()")
    else:
        envs = [what] if isinstance(what, Env) else list(what)
        tables = {"env": [{"name": env.name} for env in envs]}
        config = parse(RunConfig, _nested(tables, settings), source="train()")
    return run_blocking(train_run(config, envs=envs, runs=Path(runs), name=name, say=say))


def _nested(base: dict[str, Any], settings: dict[str, Any]) -> dict[str, Any]:
    """`base` with `a__b=1` put at `a: {b: 1}`."""
    for key, value in settings.items():
        *path, last = key.split("__")
        at = base
        for part in path:
            at = at.setdefault(part, {})
        at[last] = value
    return base


def run_blocking(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end, also where this thread already runs an event loop: then on a thread of its own."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    outcome: list[T] = []
    failure: list[BaseException] = []

    def target() -> None:
        try:
            outcome.append(asyncio.run(work))
        except BaseException as error:  # noqa: BLE001 - re-raised in the calling thread
            failure.append(error)

    thread = threading.Thread(target=target, name="sortie-train", daemon=True)
    thread.start()
    thread.join()
    if failure:
        raise failure[0]
    return outcome[0]
