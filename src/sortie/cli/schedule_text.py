"""The text of `sortie schedule explain`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from sortie.cli.output import table_lines
from sortie.orchestrator.schedule.factors import Brought, FactorReport
from sortie.orchestrator.schedule.report import ScheduleReport
from sortie.orchestrator.schedule.spent import mean
from sortie.orchestrator.schedule.steps import Calibration, StepReport
from sortie.orchestrator.schedule.tasks import TaskReport

ROWS = 16
"""Most rows of steps; more are put together."""
CLUSTERS = 10
"""Most hints and patterns shown, those with the most groups."""
TITLES = {
    "environment": "BY ENVIRONMENT",
    "hint": "BY HINT (tasks that look alike before they are tried)",
    "pattern": "BY PATTERN (tasks whose rollouts go alike)",
}


def lines(told: ScheduleReport) -> Iterator[str]:
    """Every line, section by section; of tasks that were asked for, only those."""
    yield from _head(told)
    for task in told.tasks:
        yield from ("", *_task(task))
    if told.tasks:
        return
    if told.steps:
        yield from _waste(told)
        yield from _steps(told)
        yield from _trust(told)
        yield from _factors(told)
        yield from _learning(told)
    yield from _next(told)
    yield from _untried(told)


def _head(told: ScheduleReport) -> Iterator[str]:
    yield f"{told.run}: tasks chosen by {told.scheduler}, {told.status} after {_count(told.steps, 'step')}"
    if told.rollouts:
        yield (
            f"{_count(told.groups, 'group')}, {_count(told.rollouts, 'rollout')}: "
            f"{told.wasted_share:.0%} of the rollouts taught nothing"
        )
        of = "" if told.untried_tasks is None else f" of {told.tried_tasks + told.untried_tasks}"
        yield f"{told.tried_tasks}{of} tasks were tried, {told.groups / told.tried_tasks:.1f} groups each"
    if told.unfinished:
        yield f"{_count(told.unfinished, 'rollout')} of a step that is not finished are not counted"
    for note in told.notes:
        yield f"note: {note}"


def _factors(told: ScheduleReport) -> Iterator[str]:
    thirds = any(factor.first for factor in told.factors)
    for kind, title in TITLES.items():
        found = [factor for factor in told.factors if factor.kind == kind]
        shown = found if kind == "environment" else [factor for factor in found if factor.whole.groups][:CLUSTERS]
        if shown:
            yield from ("", title)
            yield from table_lines([_factor_row(f, told, thirds=thirds) for f in shown])
        if len(found) > len(shown):
            yield f"(and {len(found) - len(shown)} more with fewer groups or none: --json has them all)"
    yield ""
    yield "success: mean reward; variance: of rewards within a group; informative: share of groups whose rewards differ"
    if thirds:
        yield "first -> last: the first and the last third of the steps"
    if told.predicts:
        yield "expects: what the scheduler now predicts for all tasks of the row, tried or not"
    if told.learning:
        yield "learned: how far training is believed to have moved their success, in logits (+1 takes 0.50 to 0.73)"


def _factor_row(factor: FactorReport, told: ScheduleReport, *, thirds: bool) -> dict[str, Any]:
    whole = factor.whole
    row: dict[str, Any] = {factor.kind: factor.name[:60]}
    if factor.kind != "environment":
        row["in"] = (
            ", ".join(factor.environments) if len(factor.environments) <= 2 else f"{len(factor.environments)} envs"
        )
    tasks = {} if factor.tasks is None or factor.kind == "pattern" else {"tasks": factor.tasks}
    row |= {**tasks, "tried": factor.tried, "groups": whole.groups, "rollouts": factor.rollouts}
    for name in ("success", "variance", "informative"):
        row[name] = getattr(whole, name)
        if thirds and name != "variance":
            row["first -> last" + " " * (name == "informative")] = _change(factor.first, factor.last, name)
    if told.predicts:
        row |= {"expects success": factor.predicted_success, "expects variance": factor.predicted_variance}
    if told.learning:
        row["learned"] = None if factor.learned is None else f"{factor.learned:+.2f}"
    return row


def _change(first: Brought | None, last: Brought | None, name: str) -> str | None:
    ends = [None if part is None else getattr(part, name) for part in (first, last)]
    if ends == [None, None]:
        return None
    return " -> ".join("none" if end is None else f"{end:.2f}" for end in ends)


def _waste(told: ScheduleReport) -> Iterator[str]:
    yield from ("", "WASTED ROLLOUTS, most costly first")
    if not told.wasted:
        yield "none: every rollout was in a group whose rewards differ"
        return
    yield from table_lines(
        [
            {
                "cause": waste.cause,
                "rollouts": waste.rollouts,
                "of all": f"{waste.share:.1%}",
                "tokens": waste.tokens,
                "meaning": waste.meaning,
            }
            for waste in told.wasted
        ]
    )


def _steps(told: ScheduleReport) -> Iterator[str]:
    yield from ("", "PREDICTED AND REALISED, step by step")
    size = -(-len(told.step_reports) // ROWS)
    parts = [told.step_reports[i : i + size] for i in range(0, len(told.step_reports), size)]
    yield from table_lines([_step_row(part, told.predicts) for part in parts])


def _step_row(part: Sequence[StepReport], predicts: bool) -> dict[str, Any]:
    first, last = part[0].step, part[-1].step
    row: dict[str, Any] = {"step": str(first) if first == last else f"{first}-{last}"}
    row["groups"] = sum(sum(step.groups.values()) for step in part)
    if predicts and any(step.predicted_informative is not None for step in part):
        row["informative predicted"] = mean(step.predicted_informative for step in part)
    row["informative came" if predicts else "informative"] = mean(step.informative for step in part)
    if predicts:
        row["variance predicted"] = mean(step.predicted_variance for step in part)
    row["variance came" if predicts else "variance"] = mean(step.variance for step in part)
    row["wasted"] = mean(step.wasted for step in part)
    row["coverage"] = part[-1].coverage
    counts: dict[str, int] = {}
    for step in part:
        for env, n in step.groups.items():
            counts[env] = counts.get(env, 0) + n
    ordered = sorted(counts.items(), key=lambda item: -item[1])
    more = f", +{len(ordered) - 3} envs" if len(ordered) > 3 else ""
    row["most groups"] = ", ".join(f"{env} {n}" for env, n in ordered[:3]) + more
    return row


def _trust(told: ScheduleReport) -> Iterator[str]:
    if not told.calibration:
        return
    yield from ("", "HOW FAR PREDICTIONS COULD BE TRUSTED (groups sorted by what was predicted, then cut into fifths)")
    yield from table_lines([_trust_row(one) for one in told.calibration])
    yield "each fifth: predicted > came; error: their mean distance; order: rank correlation, 1 perfect, 0 none"


def _trust_row(one: Calibration) -> dict[str, Any]:
    fifths = {f"fifth {i + 1}": f"{b.predicted:.2f} > {b.realised:.2f}" for i, b in enumerate(one.bins)}
    return {"predicted": one.what, "groups": one.groups, **fifths, "error": one.error, "order": one.rank_correlation}


def _learning(told: ScheduleReport) -> Iterator[str]:
    if not told.learning:
        return
    yield from (
        "",
        "HOW FAST IT LEARNS: logits of success that one group, half of it right, is believed to bring tasks",
    )
    scale = {name: told.group_gain[name] / value for name, (value, _) in told.learning.items() if value}
    words = {"environment": "of its environment", "hint": "of its hint", "pattern": "of its pattern", "anywhere": "all"}
    yield ", ".join(
        f"{words.get(name, name)} {told.group_gain[name]:+.3f} (sd {sd * scale.get(name, 1.0):.3f})"
        for name, (_, sd) in told.learning.items()
    )
    yield "they add up: a task of the same environment, hint and pattern gains all four"


def _task(task: TaskReport) -> Iterator[str]:
    yield f"TASK {task.key}: {task.text}"
    yield f"  at the last select: {task.why}"
    rewards = ", ".join("not scored" if reward is None else f"{reward:g}" for reward in task.last_rewards)
    yield f"  tried before: {_count(task.visits, 'group')}" + (
        f"; the last one's rewards: {rewards}" if rewards else ""
    )
    if task.value is None or task.expected_success is None:
        return
    cluster = [f"hint {task.hint}"] if task.hint else []
    cluster += [f"pattern {task.pattern}"] if task.pattern else ["no pattern yet"]
    yield f"  clusters: {'; '.join(cluster)}"
    yield (
        f"  expected then: success {task.expected_success:.3f} (90% between {task.low:.3f} and {task.high:.3f}), "
        f"variance {task.variance:.3f}, chance that a group is informative {task.chance:.3f}"
    )
    yield (
        f"  value {task.value:.3f} = (signal {task.signal:.3f} + doubt {task.spread:.3f} + little tried "
        f"{task.coverage:.3f}) / cost and tries {task.divisor:.3f}"
    )
    last = (
        "no place was given by value"
        if task.last_value is None
        else f"the last place by value went at {task.last_value:.3f}"
    )
    yield f"  rank {task.rank} of {task.candidates}; {last}"


def _next(told: ScheduleReport) -> Iterator[str]:
    if not told.next:
        return
    yield from ("", "NEXT: what would be chosen first now")
    yield from table_lines([_task_row(task, reason=_reason(task)) for task in told.next])


def _reason(task: TaskReport) -> str | None:
    if task.value is None:
        return None
    return task.why.removeprefix("not ").removeprefix("chosen").removeprefix(":").strip()


def _task_row(task: TaskReport, *, reason: str | None) -> dict[str, Any]:
    row: dict[str, Any] = {"task": task.key, "tried": task.visits}
    if task.value is not None:
        row |= {
            "success": f"{task.expected_success:.2f} [{task.low:.2f}, {task.high:.2f}]",
            "variance": task.variance,
            "value": task.value,
        }
    why = {} if reason is None else {"why": reason}
    return {**row, **why, "prompt": task.text[:40]}


def _untried(told: ScheduleReport) -> Iterator[str]:
    if not told.untried or told.untried_tasks is None:
        return
    alike = "; the largest lots, alike in all that is known" if told.untried[0].example else ""
    yield from ("", f"NEVER TRIED: {_count(told.untried_tasks, 'task')}{alike}")
    rows = []
    for lot in told.untried:
        row: dict[str, Any] = {"tasks": lot.tasks, "environment": lot.environment}
        if lot.example is not None:
            shown = _task_row(lot.example, reason=_reason(lot.example))
            del shown["tried"], shown["prompt"], shown["task"]
            row |= {"hint": lot.hint, **shown, "for example": lot.example.key}
        rows.append(row)
    yield from table_lines(rows)


def _count(n: int, noun: str) -> str:
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"
