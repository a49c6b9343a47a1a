"""What a run is made from, built and checked before anything expensive starts."""

from __future__ import annotations

from collections.abc import Sequence

from sortie.core.errors import ConfigError
from sortie.envs import Env
from sortie.orchestrator.config import RunConfig
from sortie.orchestrator.tasks import TaskBook
from sortie.scheduling import TaskScheduler, build


def build_envs(config: RunConfig) -> list[Env]:
    """The environments of the `[[env]]` tables.

    Raises: UnknownName or ConfigError for a wrong name or option.
    """
    from sortie import envs

    return [envs.build(table.name, **table.options) for table in config.env]


def build_scheduler(config: RunConfig, book: TaskBook) -> TaskScheduler:
    """The task scheduler over every training task.

    Raises: UnknownName or ConfigError for a wrong name or option.
    """
    return build(
        config.scheduler.name,
        book.records(),
        environments=book.environments(),
        seed=config.seed,
        **config.scheduler.options,
    )


def check(config: RunConfig, envs: Sequence[Env]) -> None:
    """Find what cannot work before the model is loaded.

    Raises: ConfigError, UnknownName or MissingExtra.
    """
    build_scheduler(config, TaskBook(envs))
    for env in envs:
        if not env.rubric.rewards:
            raise ConfigError(f"environment {env.name!r} has no reward, so nothing can be learned from it")
        if not len(env.tasks("heldout")):
            raise ConfigError(f"environment {env.name!r} has no held-out task to evaluate on; give it `heldout`")
    if config.rollouts.limits.turn_tokens >= config.rollouts.limits.window:
        raise ConfigError("rollouts.limits.turn_tokens must be below rollouts.limits.window, or no prompt fits")
    if config.tracker is not None:
        from sortie.orchestrator.tracker import require

        require(config.tracker)


def preview(config: RunConfig, envs: Sequence[Env]) -> list[str]:
    """What the run will do and cost, for the console; fetches the model if need be.

    Raises: UsageError if the model cannot be had.
    """
    from sortie.orchestrator.estimate import estimate

    tasks = ", ".join(f"{env.name} ({len(env.tasks('train'))} tasks)" for env in envs)
    r = config.rollouts
    return [
        f"{config.model}: {config.steps} steps of {r.groups} groups x {r.group_size} rollouts on {tasks}, "
        f"chosen by {config.scheduler.name}",
        *estimate(config, envs).lines(),
    ]
