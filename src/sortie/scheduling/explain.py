"""What EnvSched can say about its choices, as plain records: `scheduler.explain()`. Nothing here is kept between calls.

A task's value is (signal + spread + coverage) / divisor; whether it was taken also depends on the random share, on what
its environment was owed, on its environment's cap, and on what is in flight: see `reason`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, runtime_checkable

import numpy as np

from sortie.core.group import Features
from sortie.scheduling.belief import Belief
from sortie.scheduling.choice import Reason, width
from sortie.scheduling.factors import Floats, Ints
from sortie.scheduling.gaussian import Posterior
from sortie.scheduling.pairs import NONE
from sortie.scheduling.signal import outlook
from sortie.scheduling.value import Value

Kind = Literal["environment", "hint", "pattern"]
Z90 = 1.6448536269514722
"""Half of a normal's central 90%, in standard deviations."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskView:
    """One task: what is believed of it, and what its score is made of."""

    key: str
    environment: str
    hint: int
    """Cluster of its given features or text."""
    pattern: int | None
    """Cluster of how its last rollouts behaved; None if none left features."""
    visits: int
    """Groups scored."""
    mean: float
    """Expected success, or expected reward as a share of the environment's range."""
    low: float
    """Central 90% interval of the success: lower end."""
    high: float
    variance: float
    """Expected variance of a (scaled) reward."""
    chance: float
    """Chance that the rewards of a group of `group_size` differ."""
    learned: float
    """Logits of success that training in its environment, hint, pattern and anywhere is believed to have brought it."""
    signal: float
    """Part of the score: expected signal, 1 at most for binary rewards."""
    spread: float
    """Part of the score: weighted standard deviation of the signal."""
    coverage: float
    """Part of the score: weighted bonus for an environment and a hint tried little lately."""
    divisor: float
    """Relative cost to the power of the exponent, and more for a task rolled out before."""
    value: float
    """(signal + spread + coverage) / divisor."""
    in_flight: bool
    reason: Reason | None
    """Why the last select chose it; None if it did not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FactorView:
    """One environment, hint or pattern."""

    kind: Kind
    name: str
    """Environment name, or number of the cluster."""
    tasks: int
    """Present tasks that hang on it; for a pattern, those whose last rollouts showed it."""
    visited: int
    """Of these, with at least one scored group."""
    groups: int
    """Groups scored on its present tasks."""
    recent: float
    """Groups lately: a group counts `memory` per policy version since."""
    effect: float
    """Logits by which it raises success."""
    effect_sd: float
    trained: float
    """Squared advantages trained on here: the size of the learner's steps."""
    learned: float
    """Logits of success that this is believed to have brought its tasks."""
    predicted_variance: float
    """Mean expected reward variance of its tasks."""
    realised_variance: float | None
    """Of recent groups; kept per environment only."""
    informative: float | None
    """Share of recent groups whose rewards differ; kept per environment only."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """The state of the scheduler."""

    strengths: dict[str, float]
    """Hyper-parameters as fitted."""
    learning: dict[str, tuple[float, float]]
    """Logits gained per squared advantage in the same environment, hint, pattern, or anywhere: mean and sd."""
    factors: tuple[FactorView, ...]
    tasks: tuple[TaskView, ...]


@runtime_checkable
class Explaining(Protocol):
    """A task scheduler that says what it believes, and why it chose."""

    def explain(self, keys: Sequence[str] | None = None, environment: str | None = None) -> Explanation: ...
    def views(self, keys: Sequence[str]) -> tuple[TaskView, ...]: ...
    def patterns_of(self, features: Sequence[Features]) -> list[int]: ...


def tasks_of(
    belief: Belief,
    rows: Ints,
    value: Value,
    coverage: float,
    group_size: int,
    busy: set[str],
    reasons: dict[str, Reason],
) -> tuple[TaskView, ...]:
    """Views of some pairs; `value` has one entry per row, `coverage` is the weight of the bonus."""
    pairs, stats, sites = belief.pairs, belief.environments, belief.sites
    mean, var = belief.logits(rows)
    look, sd, learned = outlook(mean, var, group_size), np.sqrt(var), belief.gained(rows)
    low, high = _sigmoid(mean - Z90 * sd), _sigmoid(mean + Z90 * sd)
    environment, hint = pairs.environment[rows], pairs.hint[rows]
    bonus = coverage * 0.5 * (width(stats.count)[environment] + width(belief.counts[0])[hint])
    names, views = list(stats.row), []
    for i, row in enumerate(rows.tolist()):
        key, at = pairs.records[row].key, int(pairs.site[row])
        views.append(
            TaskView(
                key=key,
                environment=names[int(environment[i])],
                hint=int(hint[i]),
                pattern=int(sites.pattern[at]) if at != NONE and sites.pattern[at] > 0 else None,
                visits=int(pairs.visits[row]),
                mean=float(look.mean[i]),
                low=float(low[i]),
                high=float(high[i]),
                variance=float(look.variance[i] * stats.spread[environment[i]]),
                chance=float(look.chance[i] * stats.differing[environment[i]]),
                learned=float(learned[i]),
                signal=float(value.signal[i]),
                spread=float(value.spread[i]),
                coverage=float(bonus[i]),
                divisor=float(value.divisor[i]),
                value=float((value.signal[i] + value.spread[i] + bonus[i]) / value.divisor[i]),
                in_flight=key in busy,
                reason=reasons.get(key),
            )
        )
    return tuple(views)


@dataclass(frozen=True, slots=True)
class _Column:
    """Factors of one kind: their names, the factor of each task (-1: none), and figures per factor."""

    kind: Kind
    names: Sequence[str]
    member: Ints
    recent: Floats
    effect: Floats
    effect_var: Floats
    trained: Floats
    slope: float


def factors_of(belief: Belief) -> tuple[FactorView, ...]:
    """Views of every environment, hint and pattern."""
    pairs = belief.pairs
    variance = np.zeros(0)
    if len(pairs):
        expected = outlook(*belief.logits(np.arange(len(pairs))), 2).variance
        variance = expected * belief.environments.spread[pairs.environment]
    return tuple(view for column in _columns(belief) for view in _views(belief, column, variance))


def _columns(belief: Belief) -> tuple[_Column, ...]:
    pairs, sites, counts = belief.pairs, belief.sites, belief.counts
    posterior, trained = belief.view().posterior, belief.exposure.at()
    factors, own = posterior.factors, posterior.environments
    slopes = posterior.mean[factors.exposures].tolist()
    pattern = np.full(len(pairs), -1)
    here = sites.pair >= 0
    pattern[sites.pair[here]] = sites.pattern[here]
    effect = own.offset - own.pull @ posterior.mean
    effect_var = own.variance + ((own.pull @ posterior.cov) * own.pull).sum(axis=1)
    names, environment = list(belief.environments.row), pairs.environment.astype(np.int64)
    hint, H, Q = pairs.hint.astype(np.int64), factors.hints, factors.patterns
    hints, patterns = _effects(posterior, factors.first_hint, H), _effects(posterior, factors.first_pattern, Q)
    recent = belief.environments.count
    return (
        _Column("environment", names, environment, recent, effect, effect_var, trained[0], slopes[0]),
        _Column("hint", _numbers(H), hint, counts[0], *hints, trained[1], slopes[1]),
        _Column("pattern", _numbers(Q), pattern, counts[1], *patterns, trained[2], slopes[2]),
    )


def _views(belief: Belief, column: _Column, variance: Floats) -> list[FactorView]:
    """Views of one kind; `variance` is expected of each task."""
    stats, size, at = belief.environments, len(column.names), column.member >= 0
    member, visits = column.member[at], belief.pairs.visits[at]
    tasks = np.bincount(member, minlength=size)
    visited, groups = np.bincount(member, visits > 0, size), np.bincount(member, visits, size)
    predicted = np.bincount(member, variance[at], size) / np.maximum(tasks, 1)
    views = []
    for i, name in enumerate(column.names):
        recent = float(column.recent[i])
        seen = column.kind == "environment" and recent > 1e-6
        views.append(
            FactorView(
                kind=column.kind,
                name=name,
                tasks=int(tasks[i]),
                visited=int(visited[i]),
                groups=int(groups[i]),
                recent=recent,
                effect=float(column.effect[i]),
                effect_sd=float(np.sqrt(max(column.effect_var[i], 0.0))),
                trained=float(column.trained[i]),
                learned=float(column.slope * column.trained[i]),
                predicted_variance=float(predicted[i]),
                realised_variance=float(stats.variance[i] / recent) if seen else None,
                informative=float(stats.informative[i] / recent) if seen else None,
            )
        )
    return views


def learning_of(belief: Belief) -> dict[str, tuple[float, float]]:
    """Coefficients of the exposures: mean and standard deviation."""
    posterior = belief.view().posterior
    slopes = posterior.factors.exposures
    mean, sd = posterior.mean[slopes], np.sqrt(np.diag(posterior.cov)[slopes])
    names = ("environment", "hint", "pattern", "anywhere")
    return {name: (float(m), float(s)) for name, m, s in zip(names, mean, sd, strict=True)}


def _effects(posterior: Posterior, first: int, number: int) -> tuple[Floats, Floats]:
    """Means and variances of some crossed factors."""
    at = slice(first, first + number)
    return posterior.mean[at], np.asarray(np.diag(posterior.cov)[at])


def _numbers(n: int) -> list[str]:
    return [str(i) for i in range(n)]


def _sigmoid(x: Floats) -> Floats:
    return np.asarray(np.exp(-np.logaddexp(0.0, -x)))
