"""EnvSched: spend rollouts where their rewards are expected to differ, and where too little is known.

What is believed of each pair: belief.py and gaussian.py. What it is worth: value.py. Which are taken: choice.py. The
whole is described in docs/envsched.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import compress
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from sortie.core.config import Config
from sortie.core.group import Assignment, EnvironmentRecord, Features, GroupResult, TaskRecord, Verdict
from sortie.scheduling.allocation import allocate, bounds
from sortie.scheduling.belief import Belief
from sortie.scheduling.choice import Choice, Pool, Reason
from sortie.scheduling.explain import Explanation, TaskView, factors_of, learning_of, tasks_of
from sortie.scheduling.factors import Floats, Ints
from sortie.scheduling.keyed import uniforms
from sortie.scheduling.ledger import Ledger, check_request
from sortie.scheduling.pairs import NONE
from sortie.scheduling.scheduler import Prediction
from sortie.scheduling.signal import Outlook, added_chance, outlook, quick_outlook
from sortie.scheduling.strengths import Strengths
from sortie.scheduling.value import Value, value_of

FEW = 1.5
"""Equal shares that an environment may always have: `cap` would leave few environments no choice."""


class EnvSchedConfig(Config):
    """Options of EnvSched."""

    signal: Literal["variance", "informative"] = "variance"
    """What is exploited: the expected reward variance, or the chance that a group's rewards differ."""
    spread: float = Field(0.5, ge=0)
    """Weight of the standard deviation of the signal."""
    coverage: float = Field(0.1, ge=0)
    """Weight of the bonus for what an environment and a hint were tried little lately."""
    stretch: float = Field(1.0, ge=1)
    """A group has between group_size / stretch (but 2) and group_size x stretch rollouts, more where they are worth
    more; 1: all are of the same size. Off by default: docs/envsched.md, "How many rollouts each"."""
    memory: float = Field(0.9, gt=0, le=1)
    """What a group counts for coverage and reward ranges after one more policy version."""
    random_share: float = Field(0.03, ge=0, le=1)
    """Share of the places given to tasks drawn uniformly."""
    sampled_share: float = Field(0.8, ge=0, le=1)
    """Share of the places given to tasks drawn with the chance that their group will be informative: what a refilling
    scheduler would keep, without its rollouts."""
    least_share: float = Field(0.1, ge=0, le=0.5)
    """Every environment gets at least this part of an equal share, over time."""
    surprise: float = Field(5.0, gt=0)
    """Log odds at which an environment, hint or pattern counts as changed: then results from before are dropped."""
    cap: float = Field(0.2, gt=0, le=1)
    """Largest share of one select for one environment, rounded down to groups but at least one, and never below 1.5
    equal shares; it gives way when the others have no tasks to offer."""
    repeat: float = Field(0.3, ge=0)
    """The value of a task rolled out n times is divided by 1 + repeat x n / (1 + mean n). What stays uncertain though
    trained on is luck, or beyond the model, and tasks not seen before teach what is general."""
    cost_exponent: float = Field(1.0, ge=0)
    """Values are divided by (cost / mean cost) to this power."""
    max_patterns: int = Field(64, ge=1, le=256)
    """Most pattern clusters of each origin: given features, text, rollouts."""
    trials: int = Field(4, ge=0, le=64)
    """Strengths tried per observe; 0 keeps those given."""
    strengths: Strengths = Strengths()
    """Where the fit of the model's hyper-parameters starts."""


class EnvSched:
    """A TaskScheduler that predicts reward variance from environments and patterns before spending rollouts."""

    Config = EnvSchedConfig

    def __init__(
        self,
        records: Sequence[TaskRecord],
        environments: Sequence[EnvironmentRecord] = (),
        seed: int = 0,
        config: EnvSchedConfig | None = None,
    ) -> None:
        self._config = config or EnvSchedConfig()
        self._seed = seed
        self._selects = 0
        self._ledger = Ledger()
        self._last: dict[str, float] = {}
        self._reasons: dict[str, Reason] = {}
        self._group_size = 8
        self._belief = Belief(
            self._config.strengths,
            trials=self._config.trials,
            max_patterns=self._config.max_patterns,
            memory=self._config.memory,
            surprise=self._config.surprise,
            seed=seed,
        )
        self._belief.add_environments(environments)
        self._belief.add(records)
        self._belief.prepare()

    def select(self, groups: int, group_size: int) -> list[Assignment]:
        """The most valuable tasks; those in flight only when no others are left."""
        belief, config = self._belief, self._config
        pairs, stats = belief.pairs, belief.environments
        check_request(groups, group_size, len(pairs))
        blocked = np.zeros(len(pairs), dtype=bool)
        busy = np.array([pairs.row[key] for key in self._ledger.busy], dtype=np.int64)
        blocked[busy] = True
        free = len(pairs) - len(busy)
        pool = self._pool(group_size, blocked)
        counts = stats.count.copy(), belief.counts[0].copy()
        np.add.at(counts[0], pairs.environment[busy], 1.0)
        np.add.at(counts[1], pairs.hint[busy], 1.0)
        present = np.zeros(len(stats), dtype=bool)
        present[pairs.bins.environment] = True
        stats.credit[present] += groups * config.least_share / present.sum()
        largest = min(1.0, max(config.cap, FEW / present.sum()))
        cap = max(1, int(largest * groups))
        choice = Choice(pool, pairs.bins, blocked, counts, cap)
        self._group_size = group_size
        self._fill(choice, pool, min(groups, free))
        stats.credit = np.maximum(stats.credit - choice.taken, 0.0)
        chosen = choice.pairs + self._again(groups - len(choice.pairs), busy, group_size)
        self._selects += 1
        self._reasons = {pairs.records[i].key: why for i, why in zip(choice.pairs, choice.reasons, strict=True)}
        rows = np.array(chosen, dtype=np.int64)
        sizes = self._sizes(rows, group_size)
        self._note(rows, sizes)
        return [
            self._ledger.issue([pairs.records[i].key], size)[0] for i, size in zip(chosen, sizes.tolist(), strict=True)
        ]

    def observe(self, results: Sequence[GroupResult]) -> list[Verdict]:
        """Learn from every group that counts; keep them all."""
        informative = self._belief.learn(list(compress(results, self._ledger.settle(results))))
        if informative:
            self._last["informative_share"] = sum(informative) / len(informative)
        return ["keep"] * len(results)

    def predict(self, keys: Sequence[str]) -> Prediction:
        """In units of the reward, by the range each environment has shown."""
        rows = self._rows(keys)
        stats, env = self._belief.environments, self._belief.pairs.environment[rows]
        look = outlook(*self._belief.logits(rows), 2)
        low, width = stats.low[env], (stats.high - stats.low)[env]
        return Prediction(
            mean=tuple((low + width * look.mean).tolist()),
            std=tuple((width * look.mean_sd).tolist()),
            variance=tuple((width**2 * stats.spread[env] * look.variance).tolist()),
        )

    def explain(self, keys: Sequence[str] | None = None, environment: str | None = None) -> Explanation:
        """What is believed, spent and learned per environment, hint and pattern; and the parts of some tasks' values.

        Tasks are those of `keys`, else those of `environment`, else all.
        Raises: KeyError for a key or an environment that is not known.
        """
        belief, pairs = self._belief, self._belief.pairs
        rows = np.arange(len(pairs)) if keys is None else self._rows(keys)
        if keys is None and environment is not None:
            if environment not in belief.environments.row:
                raise KeyError(f"no environment {environment!r} in this scheduler")
            rows = np.flatnonzero(pairs.environment == belief.environments.row[environment])
        return Explanation(
            strengths={name: float(x) for name, x in belief.tuner.strengths.model_dump().items()},
            learning=learning_of(belief),
            factors=factors_of(belief),
            tasks=self._views(rows),
        )

    def views(self, keys: Sequence[str]) -> tuple[TaskView, ...]:
        """Only the tasks of `explain`, at no cost that grows with the number of tasks."""
        return self._views(self._rows(keys))

    def patterns_of(self, features: Sequence[Features]) -> list[int]:
        """Numbers of the pattern clusters that rollouts with these features are nearest to; nothing is learned."""
        return self._belief.graph.patterns_of(features)

    def add(self, records: Sequence[TaskRecord]) -> None:
        """Take up new tasks; known keys are left as they are."""
        self._belief.add(records)

    def remove(self, keys: Sequence[str]) -> None:
        """Drop tasks; unknown keys are ignored, and results still in flight will not count."""
        self._belief.remove(keys)
        self._ledger.forget(keys)

    def state_dict(self) -> dict[str, Any]:
        """JSON values. Records are not in it: build with the run's current tasks, then load."""
        return {
            "selects": self._selects,
            "ledger": self._ledger.state_dict(),
            "belief": self._belief.state_dict(),
            "last": dict(self._last),
            "reasons": dict(self._reasons),
            "group_size": self._group_size,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue a saved run; tasks it did not know are taken up as new."""
        self._selects = int(state["selects"])
        self._belief.load_state_dict(state["belief"])
        self._ledger.load_state_dict(state["ledger"])
        self._ledger.forget([key for key in self._ledger.busy if key not in self._belief.pairs.row])
        self._last = dict(state["last"])
        self._reasons, self._group_size = dict(state["reasons"]), int(state["group_size"])

    def metrics(self) -> dict[str, float]:
        """Predictions for the last select, what the last results showed, coverage, strengths, groups per environment.

        `coverage` is the share of bins (one hint in one environment) with a visited task; shares are of recent groups.
        """
        pairs, stats = self._belief.pairs, self._belief.environments
        visited = pairs.visits > 0
        seen = np.bincount(pairs.bins.of_pair, visited, len(pairs.bins)) if len(pairs) else np.zeros(1)
        total = max(float(stats.count.sum()), 1e-9)
        fitted = self._belief.tuner.strengths.model_dump()
        return {
            "predicted_informative_share": 0.0,
            "predicted_variance": 0.0,
            "informative_share": 0.0,
            **self._last,
            "coverage": float((seen > 0).mean()),
            "visited": float(visited.mean()) if len(pairs) else 0.0,
            "in_flight": float(len(self._ledger)),
            "changes": float(self._belief.changed),
            **{f"strength/{name}": float(value) for name, value in fitted.items()},
            **{f"share/{name}": float(stats.count[i]) / total for name, i in stats.row.items()},
        }

    def _views(self, rows: Ints) -> tuple[TaskView, ...]:
        """With values as `select` computes them, so that they can be compared with the last place's."""
        belief, n = self._belief, self._group_size
        look = quick_outlook(*belief.logits(rows), n)
        value = self._value(look, rows, belief.pairs.environment[rows].astype(np.int64))
        return tasks_of(belief, rows, value, self._config.coverage, n, set(self._ledger.busy), self._reasons)

    def _rows(self, keys: Sequence[str]) -> Ints:
        for key in keys:
            if key not in self._belief.pairs.row:
                raise KeyError(f"no task {key!r} in this scheduler")
        return np.array([self._belief.pairs.row[key] for key in keys], dtype=np.int64)

    def _pool(self, group_size: int, blocked: NDArray[np.bool_]) -> Pool:
        """Every pair with observations that is free, and the first free pair of each bin without."""
        belief = self._belief
        pairs, bins, sites = belief.pairs, belief.pairs.bins, belief.sites
        seen = np.flatnonzero((sites.pair >= 0) & ~blocked[np.maximum(sites.pair, 0)]) if len(sites) else _none()
        without = blocked.copy()
        without[sites.pair[sites.pair >= 0]] = True
        heads = bins.heads(without)
        open_ = np.flatnonzero(heads != NONE)
        (site_mean, site_var), (bin_mean, bin_var) = belief.of_sites(), belief.of_bins()
        look = quick_outlook(
            np.append(site_mean[seen], bin_mean[open_]), np.append(site_var[seen], bin_var[open_]), group_size
        )
        pair = np.append(sites.pair[seen], heads[open_])
        environment = pairs.environment[pair].astype(np.int64)
        value = self._value(look, pair, environment)
        noise = uniforms(pairs.hashes[pair], self._seed, "select", self._selects)
        return Pool(
            pair=pair,
            environment=environment,
            hint=pairs.hint[pair].astype(np.int64),
            bin=np.append(np.full(len(seen), NONE), open_),
            value=value.fixed + 1e-9 * noise,  # ties are broken by key, not by row
            weight=self._config.coverage / value.divisor,
        )

    def _value(self, look: Outlook, pair: Ints, environment: Ints) -> Value:
        config, stats = self._config, self._belief.environments
        divisor = self._divisor(pair) * self._tries(pair)
        return value_of(look, environment, stats, kind=config.signal, spread=config.spread, divisor=divisor)

    def _tries(self, pair: Ints) -> Floats:
        """What a task's value is divided by for having been rolled out before."""
        visits = self._belief.pairs.visits
        return np.asarray(1.0 + self._config.repeat * visits[pair] / (1.0 + visits.mean()))

    def _divisor(self, pair: Ints) -> Floats:
        cost = self._belief.pairs.cost
        return np.asarray((cost[pair] / max(float(cost.mean()), 1e-12)).astype(float) ** self._config.cost_exponent)

    def _fill(self, choice: Choice, pool: Pool, number: int) -> None:
        """Choose `number` candidates: at random, sampled, what environments are owed, then the best."""
        if not number:  # every task is in flight
            return
        stats = self._belief.environments
        slots = uniforms(np.arange(number, dtype=np.uint64), self._seed, "random", self._selects)
        drawn = int((slots < self._config.random_share).sum())
        self._take(choice, self._drawn(4 * drawn, "draw"), drawn, "random")
        sampled = min(number, drawn + round(self._config.sampled_share * number))
        self._take(choice, self._thinned(16 * number), sampled, "sampled")
        owed = stats.credit - choice.taken >= 1.0
        for environment in np.flatnonzero(owed)[np.argsort(-stats.credit[owed], kind="stable")][: max(1, number // 2)]:
            if len(choice.pairs) < number:
                choice.best(1, pool.environment == environment, reason="owed")
        choice.best(number - len(choice.pairs))

    def _drawn(self, number: int, purpose: str) -> Ints:
        """So many tasks drawn uniformly; fewer where one was drawn twice."""
        pairs = self._belief.pairs
        places = uniforms(np.arange(number, dtype=np.uint64), self._seed, purpose, self._selects)
        rows = pairs.bins.by_hash[(places * len(pairs)).astype(np.int64)].tolist()
        return np.array(list(dict.fromkeys(rows)), dtype=np.int64)

    def _thinned(self, number: int) -> Ints:
        """Of so many tasks drawn uniformly, each with the chance that its group will be informative; less where it was
        tried, or costs more than others."""
        if not self._config.sampled_share:
            return _none()
        rows, pairs = self._drawn(number, "sample"), self._belief.pairs
        look = quick_outlook(*self._belief.logits(rows), self._group_size)
        divisor = self._divisor(rows)
        less = divisor.min() / divisor / self._tries(rows)
        chance = look.chance * self._belief.environments.differing[pairs.environment[rows]] * less
        kept: Ints = rows[uniforms(pairs.hashes[rows], self._seed, "keep", self._selects) < chance]
        return kept

    def _take(self, choice: Choice, rows: Ints, goal: int, reason: Reason) -> None:
        """Choose these in order until `goal` places are filled."""
        pairs = self._belief.pairs
        for at in rows[:, None]:
            if len(choice.pairs) >= goal:
                return
            choice.take(at, pairs.environment[at], pairs.hint[at], reason)

    def _again(self, number: int, busy: Ints, group_size: int) -> list[int]:
        """Tasks in flight, when no others are left, then every task once more, by value."""
        if number <= 0:
            return []
        pairs = self._belief.pairs
        everyone = np.arange(len(pairs))
        look = quick_outlook(*self._belief.logits(everyone), group_size)
        value = self._value(look, everyone, pairs.environment.astype(np.int64)).fixed
        value = value + 1e-9 * uniforms(pairs.hashes, self._seed, "again", self._selects)
        order = np.argsort(-value)
        first = order[np.isin(order, busy)][:number]
        return [int(row) for row in np.append(first, np.resize(order, number - len(first)))]

    def _sizes(self, rows: Ints, group_size: int) -> Ints:
        """Rollouts for each of the chosen pairs."""
        least, most = bounds(group_size, self._config.stretch)
        if most == least:
            return np.full(len(rows), group_size)
        logits, env = self._belief.logits(rows), self._belief.pairs.environment[rows].astype(np.int64)
        if self._config.signal == "variance":
            value = self._value(quick_outlook(*logits, group_size), rows, env)
            worth = np.repeat(value.fixed[:, None], most - least, axis=1)
        else:
            scale = self._belief.environments.differing[env] / self._divisor(rows)
            worth = scale[:, None] * added_chance(*logits, least, most)
        return allocate(worth, group_size, least)

    def _note(self, rows: Ints, sizes: Ints) -> None:
        stats, env = self._belief.environments, self._belief.pairs.environment[rows]
        look = outlook(*self._belief.logits(rows), sizes)
        self._last["predicted_informative_share"] = float((look.chance * stats.differing[env]).mean())
        self._last["predicted_variance"] = float((look.variance * stats.spread[env]).mean())


def _none() -> Ints:
    return np.zeros(0, dtype=np.int64)
