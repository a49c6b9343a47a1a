"""Which tasks next, and how many rollouts each.

scheduler = build("envsched", records, seed=0)
assignments = scheduler.select(groups=6, group_size=8)
scheduler.observe([GroupResult(key=a.key, assignment=a.id, rewards=...) for a in assignments])
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sortie.core.group import Assignment, EnvironmentRecord, GroupResult, TaskRecord, Verdict
from sortie.scheduling.scheduler import Prediction, TaskScheduler

SCHEDULERS = {"envsched": "EnvSched", "uniform": "Uniform"}
"""Name, which is also the module's, to class."""

__all__ = [
    "SCHEDULERS",
    "Assignment",
    "EnvironmentRecord",
    "GroupResult",
    "Prediction",
    "TaskRecord",
    "TaskScheduler",
    "Verdict",
    "build",
]


def build(
    name: str,
    records: Sequence[TaskRecord],
    *,
    environments: Sequence[EnvironmentRecord] = (),
    seed: int = 0,
    **options: Any,
) -> TaskScheduler:
    """Make the scheduler called `name`; `options` are the fields of its Config.

    Raises: UnknownName, listing the names; ConfigError for an option that is unknown or out of range.
    """
    from importlib import import_module

    from sortie.core.config import parse
    from sortie.core.errors import UnknownName

    if name not in SCHEDULERS:
        raise UnknownName("scheduler", name, SCHEDULERS)
    scheduler = getattr(import_module(f"sortie.scheduling.{name}"), SCHEDULERS[name])
    config = parse(scheduler.Config, options, source=f"scheduler {name!r}")
    made: TaskScheduler = scheduler(records, environments, seed, config)
    return made
