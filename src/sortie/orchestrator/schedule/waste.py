"""Which rollouts taught nothing, and why: each has one cause, so shares add up."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from sortie.core.trajectory import StopReason, Trajectory
from sortie.orchestrator.schedule.spent import SpentGroup

TAUGHT = "taught"
CAUSES = {
    "replaced": "its group was sent back for another one",
    "errored": "it could not be scored",
    "stale": "drawn from an older policy than its step's newest",
    "alone": "no sibling could be scored, so there was nothing to compare it with",
    "out of time": "all siblings scored alike, and it ran out of time",
    "truncated": "all siblings scored alike, and it was cut by another limit",
    "all solved": "all siblings scored the most there is: the task was too easy",
    "all failed": "all siblings scored the least there is: the task was too hard",
    "all alike": "all siblings scored the same, in between",
}
"""Tried in this order; a rollout in a group whose rewards differ taught, cut by a limit or not."""
EQUAL = ("out of time", "truncated", "all solved", "all failed", "all alike")
"""The causes at groups without variance."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Waste:
    """One cause."""

    cause: str
    meaning: str
    rollouts: int
    share: float
    """Of the run's rollouts."""
    tokens: int
    """Sampled for nothing."""


@dataclass(frozen=True, slots=True)
class Range:
    """Lowest and highest reward of an environment, at most 0 and at least the highest seen."""

    low: float
    high: float


def fates(groups: Sequence[SpentGroup]) -> list[list[str]]:
    """TAUGHT or a cause for each rollout of each group."""
    ranges, newest = _ranges(groups), _newest(groups)
    return [
        [_fate(group, t, ranges[group.environment], newest.get(group.step)) for t in group.rollouts] for group in groups
    ]


def wasted(groups: Sequence[SpentGroup], found: Sequence[Sequence[str]]) -> tuple[Waste, ...]:
    """Causes that occurred, most costly first; `found` are the groups' fates."""
    rollouts: Counter[str] = Counter()
    tokens: Counter[str] = Counter()
    for group, of_group in zip(groups, found, strict=True):
        for t, fate in zip(group.rollouts, of_group, strict=True):
            rollouts[fate] += 1
            tokens[fate] += t.sampled_tokens
    total = max(rollouts.total(), 1)
    made = [
        Waste(
            cause=cause, meaning=meaning, rollouts=rollouts[cause], share=rollouts[cause] / total, tokens=tokens[cause]
        )
        for cause, meaning in CAUSES.items()
        if rollouts[cause]
    ]
    return tuple(sorted(made, key=lambda waste: -waste.rollouts))


def _fate(group: SpentGroup, t: Trajectory, bounds: Range, newest: int | None) -> str:
    if group.replaced:
        return "replaced"
    if t.reward is None:
        return "errored"
    if newest is not None and any(number < newest for number in _versions(t)):
        return "stale"
    if group.informative:
        return TAUGHT
    if len(group.rewards) < 2:
        return "alone"
    if t.truncated:
        return "out of time" if t.stop_reason is StopReason.TIME else "truncated"
    if t.reward == bounds.high and bounds.high > bounds.low:
        return "all solved"
    return "all failed" if t.reward == bounds.low else "all alike"


def _ranges(groups: Sequence[SpentGroup]) -> dict[str, Range]:
    seen: dict[str, list[float]] = {}
    for group in groups:
        seen.setdefault(group.environment, [0.0]).extend(group.rewards)
    return {env: Range(min(rewards), max(rewards)) for env, rewards in seen.items()}


def _newest(groups: Sequence[SpentGroup]) -> dict[int, int]:
    newest: dict[int, int] = {}
    for group in groups:
        numbers = [number for t in group.rollouts for number in _versions(t)]
        if numbers:
            newest[group.step] = max(newest.get(group.step, 0), *numbers)
    return newest


def _versions(t: Trajectory) -> list[int]:
    return [node.version.number for node in t.nodes if node.version is not None]
