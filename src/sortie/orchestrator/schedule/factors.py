"""Per environment, hint and pattern: what was spent, what it brought, and what is predicted of it now."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from sortie.core.group import TaskRecord
from sortie.orchestrator.schedule.names import hint_names, pattern_names
from sortie.orchestrator.schedule.spent import SpentGroup, mean
from sortie.scheduling import TaskScheduler
from sortie.scheduling.explain import Explaining, Explanation, Kind
from sortie.scheduling.pattern import group_features

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Brought:
    """What some groups brought."""

    groups: int
    success: float | None
    """Mean reward of their rollouts."""
    variance: float | None
    """Mean unbiased variance within a group."""
    informative: float | None
    """Share of groups whose rewards differ."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FactorReport:
    """One environment, hint (cluster of tasks by what is given) or pattern (cluster of rollouts by how they went)."""

    kind: Kind
    name: str
    number: int | None
    """Of the cluster, in the scheduler; None for environments."""
    environments: tuple[str, ...]
    """Where its tasks or groups are."""
    tasks: int | None
    """Training tasks; of a pattern, those whose last group showed it; None where the scheduler cannot be rebuilt."""
    tried: int
    """Tasks with at least one group."""
    rollouts: int
    predicted_success: float | None
    """Mean over its tasks now; None where the scheduler predicts nothing or cannot be rebuilt."""
    predicted_variance: float | None
    whole: Brought
    """Over all finished steps."""
    first: Brought | None
    """The first third of the steps; None in runs of fewer than three."""
    last: Brought | None
    learned: float | None
    """Mean logits of success that training is believed to have brought its tasks; None without a model of that."""


@dataclass(frozen=True, slots=True)
class Placed:
    """Groups and tasks by factor."""

    groups: Mapping[int, Sequence[SpentGroup]]
    tasks: Mapping[int, Sequence[str]]


def factor_reports(
    groups: Sequence[SpentGroup],
    steps: Sequence[int],
    records: Sequence[TaskRecord] | None,
    scheduler: TaskScheduler | None,
    explained: Explanation | None,
    *,
    predicts: bool,
) -> tuple[FactorReport, ...]:
    """Environments, then hints and patterns where the scheduler has them; the most groups first."""
    keys = [record.key for record in records or ()]
    prediction = scheduler.predict(keys) if scheduler is not None and predicts and keys else None
    means = (
        {}
        if prediction is None
        else dict(zip(keys, zip(prediction.mean, prediction.variance, strict=True), strict=True))
    )
    learned = {view.key: view.learned for view in explained.tasks} if explained else {}
    reports = []
    for kind, names, placed in _kinds(groups, records, scheduler, explained):
        for factor, name in names.items():
            of_factor, its_tasks = placed.groups.get(factor, ()), placed.tasks.get(factor, ())
            predicted = [means[key] for key in its_tasks if key in means]
            reports.append(
                FactorReport(
                    kind=kind,
                    name=name,
                    number=None if kind == "environment" else factor,
                    environments=_where(of_factor, its_tasks),
                    tasks=None if records is None else len(its_tasks),
                    tried=len({group.key for group in of_factor}),
                    rollouts=sum(len(group.rollouts) for group in of_factor),
                    predicted_success=mean(m for m, _ in predicted),
                    predicted_variance=mean(v for _, v in predicted),
                    whole=brought(of_factor),
                    first=_third(of_factor, steps, last=False),
                    last=_third(of_factor, steps, last=True),
                    learned=mean(learned.get(key) for key in its_tasks),
                )
            )
    order = ("environment", "hint", "pattern")
    return tuple(sorted(reports, key=lambda r: (order.index(r.kind), -r.whole.groups, r.name)))


def brought(groups: Sequence[SpentGroup]) -> Brought:
    """Over these groups."""
    return Brought(
        groups=len(groups),
        success=mean(reward for group in groups for reward in group.rewards),
        variance=mean(group.variance for group in groups),
        informative=mean(float(group.informative) for group in groups),
    )


def _third(groups: Sequence[SpentGroup], steps: Sequence[int], *, last: bool) -> Brought | None:
    if len(steps) < 3:
        return None
    size = math.ceil(len(steps) / 3)
    chosen = set(steps[-size:] if last else steps[:size])
    return brought([group for group in groups if group.step in chosen])


def _kinds(
    groups: Sequence[SpentGroup],
    records: Sequence[TaskRecord] | None,
    scheduler: TaskScheduler | None,
    explained: Explanation | None,
) -> list[tuple[Kind, dict[int, str], Placed]]:
    names = list(dict.fromkeys([*(r.environment for r in records or ()), *(g.environment for g in groups)]))
    row = {name: i for i, name in enumerate(names)}
    by_env = Placed(
        _split(groups, [row[g.environment] for g in groups]),
        _split([r.key for r in records or ()], [row[r.environment] for r in records or ()]),
    )
    kinds: list[tuple[Kind, dict[int, str], Placed]] = [("environment", dict(enumerate(names)), by_env)]
    if explained is None or not isinstance(scheduler, Explaining):
        return kinds
    hint = {view.key: view.hint for view in explained.tasks}
    known = [record for record in records or () if record.key in hint]
    tasks = [view.key for view in explained.tasks]
    here = [group for group in groups if group.key in hint]
    by_hint = Placed(_split(here, [hint[g.key] for g in here]), _split(tasks, [hint[key] for key in tasks]))
    kinds.append(("hint", hint_names(_split(known, [hint[r.key] for r in known])), by_hint))
    scored = [group for group in groups if group.rewards]
    at = scheduler.patterns_of([group_features(group.rollouts) for group in scored])
    showed = [(view.key, view.pattern) for view in explained.tasks if view.pattern is not None]
    by_pattern = Placed(_split(scored, at), _split([key for key, _ in showed], [p for _, p in showed]))
    rollouts = {p: [t for group in of for t in group.rollouts] for p, of in by_pattern.groups.items()}
    kinds.append(("pattern", pattern_names(rollouts), by_pattern))
    return kinds


def _split(things: Sequence[T], places: Sequence[int]) -> dict[int, list[T]]:
    out: dict[int, list[T]] = {}
    for thing, place in zip(things, places, strict=True):
        out.setdefault(place, []).append(thing)
    return out


def _where(groups: Sequence[SpentGroup], keys: Sequence[str]) -> tuple[str, ...]:
    return tuple(sorted({group.environment for group in groups} | {key.partition("/")[0] for key in keys}))
