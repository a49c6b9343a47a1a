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

SCHEDULERS = {
    "bots": "rivals.bots:Bots",
    "dapo": "rivals.dapo:Dapo",
    "dump": "rivals.dump:Dump",
    "envsched": "envsched:EnvSched",
    "greso": "rivals.greso:Greso",
    "mopps": "rivals.mopps:Mopps",
    "sec": "rivals.sec:Sec",
    "uniform": "uniform:Uniform",
    "vcrl": "rivals.vcrl:Vcrl",
    "vip": "rivals.vip:Vip",
}
"""Name to module, within this package, and class."""

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
    module, _, attribute = SCHEDULERS[name].partition(":")
    scheduler = getattr(import_module(f"sortie.scheduling.{module}"), attribute)
    config = parse(scheduler.Config, options, source=f"scheduler {name!r}")
    made: TaskScheduler = scheduler(records, environments, seed, config)
    return made
