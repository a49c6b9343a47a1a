"""Single tasks: why each was or was not chosen at the last select, what would come next, and what was never tried."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from sortie.core.group import Assignment, TaskRecord
from sortie.orchestrator.schedule.spent import SpentGroup
from sortie.scheduling import TaskScheduler
from sortie.scheduling.choice import Reason
from sortie.scheduling.explain import Explaining, TaskView

MEANING: dict[Reason, str] = {
    "value": "for its value",
    "random": "by the random share, whatever its value",
    "owed": "because its environment was owed groups under its least share",
    "sampled": "drawn with the chance that its group is informative",
    "overflow": "although its environment was at its largest share, as the others had no tasks left",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskReport:
    """One task at one select, before any of its places was filled; values are None where the scheduler has none."""

    key: str
    environment: str
    text: str
    """Beginning of its prompt."""
    hint: str | None
    pattern: str | None
    chosen: bool
    why: str
    """One sentence."""
    visits: int
    """Groups so far."""
    last_rewards: tuple[float | None, ...]
    """Of its newest group."""
    expected_success: float | None = None
    low: float | None = None
    """Central 90% interval of success, as a share of the environment's range of rewards: lower end."""
    high: float | None = None
    variance: float | None = None
    """Expected, of scaled rewards."""
    chance: float | None = None
    """That the rewards of a group differ."""
    signal: float | None = None
    spread: float | None = None
    coverage: float | None = None
    divisor: float | None = None
    value: float | None = None
    """(signal + spread + coverage) / divisor."""
    rank: int | None = None
    """1: the most valuable."""
    candidates: int | None = None
    last_value: float | None = None
    """Least value among those that were chosen for theirs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Untried:
    """Tasks of one environment that nothing but their own rollouts would tell apart, none of them tried."""

    environment: str
    hint: str | None
    tasks: int
    example: TaskReport | None
    """What holds for all of them; None where the scheduler gives no reasons."""


class Moment:
    """One select of a scheduler: what it believed of every task, and what it took. Carries the select out."""

    def __init__(
        self,
        scheduler: TaskScheduler,
        records: Sequence[TaskRecord],
        groups: Sequence[SpentGroup],
        names: Mapping[tuple[str, int], str],
        *,
        places: int,
        group_size: int,
    ) -> None:
        """`groups` are those of earlier steps; `names` are of hints and patterns."""
        self.records = {record.key: record for record in records}
        self.names = names
        self.past: dict[str, list[SpentGroup]] = {}
        for group in groups:
            self.past.setdefault(group.key, []).append(group)
        views = scheduler.explain().tasks if isinstance(scheduler, Explaining) else ()
        self.taken: list[Assignment] = scheduler.select(places, group_size)
        keys = [assignment.key for assignment in self.taken]
        after = scheduler.views(keys) if isinstance(scheduler, Explaining) else ()
        self.reasons = {view.key: view.reason for view in after}
        self.views = {view.key: view for view in views}
        self.rank = {view.key: i + 1 for i, view in enumerate(sorted(views, key=lambda view: -view.value))}
        valued = [self.views[key].value for key in keys if self.reasons.get(key) == "value"]
        self.last_value = min(valued, default=None)
        self._same = Counter((view.environment, view.hint) for view in views if not view.visits)

    @property
    def chosen(self) -> list[str]:
        """Keys in the order they were taken."""
        return list(dict.fromkeys(assignment.key for assignment in self.taken))

    def report(self, key: str) -> TaskReport:
        """Of a task that is known."""
        record, view, past = self.records[key], self.views.get(key), self.past.get(key, [])
        base = TaskReport(
            key=key,
            environment=record.environment,
            text=" ".join(record.text.split())[:100],
            hint=None if view is None else self.names.get(("hint", view.hint)),
            pattern=None if view is None or view.pattern is None else self.names.get(("pattern", view.pattern)),
            chosen=key in self.chosen,
            why=self._why(key, view),
            visits=len(past),
            last_rewards=tuple(t.reward for t in past[-1].rollouts) if past else (),
        )
        if view is None:
            return base
        return replace(
            base,
            expected_success=view.mean,
            **{name: getattr(view, name) for name in ("low", "high", "variance", "chance", "signal", "spread")},
            **{name: getattr(view, name) for name in ("coverage", "divisor", "value")},
            rank=self.rank[key],
            candidates=len(self.views),
            last_value=self.last_value,
        )

    def _why(self, key: str, view: TaskView | None) -> str:
        if view is None:
            return ("chosen" if key in self.chosen else "not chosen") + "; this scheduler gives no reasons"
        reason = self.reasons.get(key)
        if reason is not None:
            return f"chosen {MEANING[reason]}"
        if key in self.chosen:
            return "chosen once more, as there were more places than tasks"
        if view.in_flight:
            return "not chosen: it was being rolled out already"
        if self.last_value is None:
            return "not chosen: no place was given by value"
        if view.value < self.last_value - 1e-9:
            least = f"{self.last_value:.3f}, the least that got a place by value"
            return f"not chosen: its value {view.value:.3f} was below {least}"
        places = [self.views[taken] for taken in self.chosen]
        of_env = sum(other.environment == view.environment for other in places)
        alike = sum((other.environment, other.hint) == (view.environment, view.hint) for other in places)
        same = self._same[view.environment, view.hint]
        if not view.visits and same > 1 and alike:
            return f"not chosen: as good as {same - 1} other untried ones, of which {alike} got a place by lot"
        if of_env:
            return (
                f"not chosen: {of_env} of {len(places)} places went to its environment, which is its largest share, or "
                "lowered its bonus for what is little tried"
            )
        return "not chosen: the places below its value went to tasks next in line in a better lot"

    def untried(self) -> list[Untried]:
        """Groups of like tasks never tried, the largest first."""
        if not self.views:
            left = Counter(r.environment for key, r in self.records.items() if key not in self.past)
            return [Untried(environment=env, hint=None, tasks=n, example=None) for env, n in left.most_common()]
        first: dict[tuple[str, int], str] = {}
        chosen = set(self.chosen)
        for view in self.views.values():
            if not view.visits and view.key not in chosen:
                first.setdefault((view.environment, view.hint), view.key)
        return [
            Untried(
                environment=env, hint=self.names.get(("hint", hint)), tasks=n, example=self.report(first[env, hint])
            )
            for (env, hint), n in self._same.most_common()
            if (env, hint) in first
        ]
