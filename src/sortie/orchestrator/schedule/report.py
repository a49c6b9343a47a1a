"""`explain_run`: what a run's task scheduler predicted, spent and learned, and why it chose what it chose."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from sortie.core.errors import UnknownName, UsageError
from sortie.core.run_folder import RunFolder, Status
from sortie.envs import Env
from sortie.orchestrator.config import RunConfig
from sortie.orchestrator.schedule.factors import FactorReport, factor_reports
from sortie.orchestrator.schedule.rebuild import Rebuilt, rebuild
from sortie.orchestrator.schedule.spent import Spending, SpentGroup, spending
from sortie.orchestrator.schedule.steps import Calibration, StepReport, calibrations, step_reports
from sortie.orchestrator.schedule.tasks import Moment, TaskReport, Untried
from sortie.orchestrator.schedule.waste import Waste, fates, wasted
from sortie.scheduling import TaskScheduler
from sortie.scheduling.explain import Explaining, Explanation

SHOWN = 5
"""Tasks in each list of examples."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleReport:
    """All that can be said of a run's choice of tasks."""

    run: str
    scheduler: str
    status: Status
    steps: int
    """Finished steps."""
    groups: int
    rollouts: int
    unfinished: int
    """Rollouts of a step that was cut short or goes on; in no other figure."""
    predicts: bool
    """Whether the scheduler expects different things of different tasks."""
    notes: tuple[str, ...]
    """What could not be told, and why."""
    learning: dict[str, tuple[float, float]]
    """Logits of success gained per squared advantage in the same environment, hint, pattern, or anywhere: mean, sd."""
    group_gain: dict[str, float]
    """The same per group of the run's size with half of its rollouts right: the most one group can bring."""
    factors: tuple[FactorReport, ...]
    wasted: tuple[Waste, ...]
    step_reports: tuple[StepReport, ...]
    calibration: tuple[Calibration, ...]
    tasks: tuple[TaskReport, ...]
    """The tasks asked for, as of the last select."""
    next: tuple[TaskReport, ...]
    """What the next select takes first."""
    untried: tuple[Untried, ...]
    tried_tasks: int
    untried_tasks: int | None
    """Training tasks without a group; None where the tasks are not known."""

    @property
    def wasted_share(self) -> float:
        """Of all rollouts."""
        return sum(waste.share for waste in self.wasted)

    def to_dict(self) -> dict[str, Any]:
        """The same as JSON values."""
        return asdict(self) | {"wasted_share": self.wasted_share}


def explain_run(
    run: RunFolder | str | Path,
    *,
    env: str | None = None,
    tasks: Sequence[str] = (),
    runs: str | Path = "runs",
    envs: Sequence[Env] | None = None,
) -> ScheduleReport:
    """Explain a finished, running or interrupted run from its folder; nothing is sampled and nothing is written.

    `env` keeps to one environment; `tasks` are keys to account for; `envs` stand in for environments that were made in
    Python. What cannot be rebuilt is said in `notes`, and the rest is still told.
    Raises: UnknownName for a run or an environment that is not there, UsageError for such a task.
    """
    folder = run if isinstance(run, RunFolder) else RunFolder.open(run, Path(runs))
    config = RunConfig.from_toml(folder.config_text(), source=str(folder.path / "config.toml"))
    spent = spending(folder)
    built = rebuild(folder, config, envs)
    notes = [] if isinstance(built, Rebuilt) else [f"the scheduler's beliefs cannot be rebuilt ({built})"]
    rebuilt = built if isinstance(built, Rebuilt) else None
    if env is not None:
        known = {g.environment for g in spent.groups} | set(rebuilt.book.envs if rebuilt else ())
        if env not in known:
            raise UnknownName(f"environment in run {folder.name!r}", env, known)
    return _Told(folder, config, spent, rebuilt, notes, env).report(tasks)


class _Told:
    """The parts of a report, made from the same few things."""

    def __init__(
        self,
        folder: RunFolder,
        config: RunConfig,
        spent: Spending,
        rebuilt: Rebuilt | None,
        notes: list[str],
        env: str | None,
    ) -> None:
        self.folder, self.config, self.spent, self.rebuilt, self.notes = folder, config, spent, rebuilt, notes
        self.env = env
        every = fates(spent.groups)
        kept = [i for i, group in enumerate(spent.groups) if env in (None, group.environment)]
        self.groups, self.fates = [spent.groups[i] for i in kept], [every[i] for i in kept]
        self.scheduler: TaskScheduler | None = rebuilt.now if rebuilt else None
        records = rebuilt.book.records() if rebuilt else []
        self.every_record = records
        self.records = [record for record in records if env in (None, record.environment)]
        self.explained: Explanation | None = None
        if isinstance(self.scheduler, Explaining):
            self.explained = self.scheduler.explain(environment=env)
        self.predicts = self._predicts()

    def report(self, wanted: Sequence[str]) -> ScheduleReport:
        groups, config = self.groups, self.config
        logged = self.env is None and not self.spent.recorded
        steps = step_reports(groups, self.fates, self.folder.metrics(), from_metrics=logged)
        rebuilt = self.rebuilt
        factors = factor_reports(
            groups,
            self.spent.steps,
            self.records if rebuilt else None,
            self.scheduler,
            self.explained,
            predicts=self.predicts,
        )
        self._note_what_is_missing()
        tasks, coming, untried = self._tasks(wanted, factors)
        learning = self.explained.learning if self.explained else {}
        tried = {group.key for group in groups}
        return ScheduleReport(
            run=self.folder.name,
            scheduler=config.scheduler.name,
            status=self.folder.info().status,
            steps=len(self.spent.steps),
            groups=len(groups),
            rollouts=sum(len(group.rollouts) for group in groups),
            unfinished=self.spent.unfinished,
            predicts=self.predicts,
            notes=tuple(self.notes),
            learning=learning,
            group_gain={name: mean * config.rollouts.group_size / 4 for name, (mean, _) in learning.items()},
            factors=factors,
            wasted=wasted(groups, self.fates),
            step_reports=steps if self.predicts else tuple(_silent(step) for step in steps),
            calibration=calibrations(groups) if self.predicts else (),
            tasks=tasks,
            next=coming,
            untried=untried,
            tried_tasks=len(tried),
            untried_tasks=sum(r.key not in tried for r in self.records) if rebuilt else None,
        )

    def _predicts(self) -> bool:
        if isinstance(self.scheduler, Explaining):
            return True
        if self.scheduler is not None and self.every_record:
            said = self.scheduler.predict([record.key for record in self.every_record])
            return any(max(column) - min(column) > 1e-9 for column in (said.mean, said.variance))
        said_then = [group.expected for group in self.spent.groups if group.expected is not None]
        return any(expected.chance is not None for expected in said_then)

    def _note_what_is_missing(self) -> None:
        if not self.spent.steps:
            self.notes.append("no step has finished yet, so nothing can be counted")
        elif not self.predicts and self.scheduler is not None:
            self.notes.append(
                f"{self.config.scheduler.name} predicts nothing: it expects the same of every task, so only what was "
                "spent and what it brought can be shown"
            )
        elif not self.spent.recorded:
            self.notes.append(
                "this run kept no predictions per group (it is older than groups.jsonl), so there is no calibration"
                + (", and replaced groups are counted under why they taught nothing" if self._replaced() else "")
            )

    def _replaced(self) -> bool:
        return any(line.get("replaced") for line in self.folder.metrics())

    def _tasks(
        self, wanted: Sequence[str], factors: Sequence[FactorReport]
    ) -> tuple[tuple[TaskReport, ...], tuple[TaskReport, ...], tuple[Untried, ...]]:
        """Those asked for, what comes next, and what was never tried."""
        if self.rebuilt is None:
            if wanted:
                raise UsageError(f"no task of run {self.folder.name!r} can be accounted for: {self.notes[0]}")
            return (), (), ()
        names = {(f.kind, f.number): f.name for f in factors if f.number is not None}
        keys = [find_task(key, self.rebuilt.book.tasks) for key in wanted]
        last = self.spent.steps[-1] if self.spent.steps else 0
        earlier = [group for group in self.spent.groups if group.step < last]
        following = self._moment(self.rebuilt.now, self.spent.groups, names)
        then = self.rebuilt.before
        before = None if then is None else self._moment(then, earlier, names)
        if keys and before is None:
            self.notes.append("the state before the last select is not there: tasks are shown as of the next one")
        at = before or following
        if before is not None and self.spent.steps and self._differs(before, last):
            self.notes.append(
                f"choosing the tasks of step {last} anew gave others than the run took: code or settings changed "
                "since, so reasons are approximate"
            )
        coming = [key for key in following.chosen if self.env in (None, following.records[key].environment)]
        untried = [u for u in at.untried() if self.env in (None, u.environment)]
        return (
            tuple(at.report(key) for key in keys),
            tuple(following.report(key) for key in coming[:SHOWN]),
            tuple(untried[:SHOWN]),
        )

    def _moment(
        self, scheduler: TaskScheduler, groups: Sequence[SpentGroup], names: dict[tuple[Any, int], str]
    ) -> Moment:
        rollouts = self.config.rollouts
        return Moment(
            scheduler, self.every_record, groups, names, places=rollouts.groups, group_size=rollouts.group_size
        )

    def _differs(self, moment: Moment, step: int) -> bool:
        taken = {group.key for group in self.spent.groups if group.step == step}
        return not set(moment.chosen) <= taken


def _silent(step: StepReport) -> StepReport:
    """Without predictions that say the same of every task."""
    return replace(step, predicted_informative=None, predicted_variance=None)


def find_task(wanted: str, keys: Collection[str]) -> str:
    """The key that is `wanted`, or the only one that begins with it.

    Raises: UsageError naming the nearest, or how many there are.
    """
    if wanted in keys:
        return wanted
    found = [key for key in keys if key.startswith(wanted)]
    if len(found) == 1:
        return found[0]
    if found:
        raise UsageError(
            f"{len(found)} tasks begin with {wanted!r}, such as {found[0]} and {found[1]}: give more of it"
        )
    close = difflib.get_close_matches(wanted, list(keys), n=1, cutoff=0.0)
    hint = f"; the nearest is {close[0]}" if close else ""
    raise UsageError(f"no training task {wanted!r} in this run{hint} (keys: `sortie runs show RUN --rollouts`)")
