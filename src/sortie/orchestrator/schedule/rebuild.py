"""The task scheduler of a run as it stood after any of its steps, rebuilt from settings, tasks and checkpoint."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sortie.core.errors import SortieError, UsageError
from sortie.core.run_folder import RunFolder
from sortie.envs import Env
from sortie.orchestrator.config import RunConfig
from sortie.orchestrator.setup import build_envs, build_scheduler
from sortie.orchestrator.tasks import TaskBook
from sortie.scheduling import TaskScheduler


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """Two moments of a run's scheduler. Neither is the run's own: asking them to select changes nothing on disk."""

    book: TaskBook
    now: TaskScheduler
    """After the newest committed step."""
    before: TaskScheduler | None
    """As that step's tasks were chosen; None before the first step, or where that state is gone."""


def rebuild(folder: RunFolder, config: RunConfig, envs: Sequence[Env] | None) -> Rebuilt | str:
    """The scheduler; or why it cannot be had, in words."""
    try:
        book = TaskBook(build_envs(config) if envs is None else list(envs))
        step = folder.committed_step()
        now = _at(folder, config, book, step)
    except (SortieError, ImportError, KeyError, ValueError, TypeError) as error:
        return f"{type(error).__name__}: {' '.join(str(error).split())}"
    before = None
    if step > 0:
        try:
            before = _at(folder, config, book, step - 1)
        except (UsageError, KeyError, ValueError, TypeError):
            before = None  # its file was removed, or written by an older version: only that moment is lost
    return Rebuilt(book, now, before)


def _at(folder: RunFolder, config: RunConfig, book: TaskBook, step: int) -> TaskScheduler:
    scheduler = build_scheduler(config, book)
    if step > 0:
        scheduler.load_state_dict(folder.read_state(step)["scheduler"])
    return scheduler
