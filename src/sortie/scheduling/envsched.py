"""EnvSched: spend rollouts where their rewards are expected to differ, and where too little is known (first form).

The value of a pair is ours: expected learning signal + posterior spread of that signal + coverage, where coverage
shrinks with the discounted counts of its environment, hint, pattern and the pair itself, all in units of the largest
possible signal, and divided by a power of the relative cost. A share of the places is drawn at random.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from sortie.core.config import Config
from sortie.core.group import Assignment, EnvironmentRecord, GroupResult, TaskRecord, Verdict
from sortie.scheduling.belief import Belief
from sortie.scheduling.choice import Choice, Coverage
from sortie.scheduling.keyed import uniforms
from sortie.scheduling.ledger import Ledger, check_request
from sortie.scheduling.posterior import Prior, sum_at
from sortie.scheduling.scheduler import Prediction
from sortie.scheduling.signal import Outlook


class EnvSchedConfig(Config):
    """Options of EnvSched."""

    signal: Literal["variance", "informative"] = "variance"
    """What is exploited: the expected reward variance, or the chance that a group's rewards differ."""
    discount: float = Field(0.8, gt=0, le=1)
    """What a result is worth after one more policy version: low follows a fast learner, high remembers more."""
    spread: float = Field(0.3, ge=0)
    """Weight of the standard deviation of the signal."""
    coverage: float = Field(0.3, ge=0)
    """Weight of the counts' bonus."""
    random_share: float = Field(0.05, ge=0, le=1)
    """Share of the places given to tasks drawn uniformly."""
    least_share: float = Field(0.2, ge=0, le=0.5)
    """Every environment gets at least this part of an equal share, over time."""
    cap: float = Field(0.75, gt=0, le=1)
    """Largest share of one select for one environment, rounded down to groups but at least one; it gives way when the
    others have no tasks to offer."""
    cost_exponent: float = Field(0.5, ge=0)
    """Values are divided by (cost / mean cost) to this power."""
    max_patterns: int = Field(32, ge=1, le=256)
    """Most pattern clusters of each origin: given features, text, rollouts."""
    prior: Prior = Prior()


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
        self._belief = Belief(
            self._config.prior, discount=self._config.discount, max_patterns=self._config.max_patterns, seed=seed
        )
        self._belief.add_environments(environments)
        self._belief.add(records)

    def select(self, groups: int, group_size: int) -> list[Assignment]:
        """The most valuable tasks; those in flight only when no others are left."""
        pairs, stats, config = self._belief.pairs, self._belief.environments, self._config
        check_request(groups, group_size, len(pairs))
        noise = uniforms(pairs.hashes, self._seed, "select", self._selects)
        outlook = self._belief.outlook(group_size)
        score = self._score(outlook) + 1e-9 * noise  # ties are broken by key, not by row
        present = np.bincount(pairs.environment, minlength=len(stats)) > 0
        stats.credit[present] += groups * config.least_share / present.sum()
        cap = max(1, int(config.cap * groups)) if present.sum() > 1 else groups
        coverage = self._coverage()
        choice = Choice(self._belief.view().bins, coverage, weight=0.75 * config.coverage, cap=cap)
        for candidates, number in self._rounds(groups):
            choice.offer(candidates, score[candidates])
            self._fill(choice, candidates, noise, number)
        stats.credit = np.maximum(stats.credit - choice.taken, 0.0)
        self._selects += 1
        self._note(outlook, choice)
        return self._ledger.issue([pairs.records[i].key for i in choice.pairs], group_size)

    def observe(self, results: Sequence[GroupResult]) -> list[Verdict]:
        """Learn from every group that counts; keep them all."""
        informative = self._belief.learn([result for result in results if self._ledger.settle(result)])
        if informative:
            self._last["informative_share"] = sum(informative) / len(informative)
        return ["keep"] * len(results)

    def predict(self, keys: Sequence[str]) -> Prediction:
        """In units of the reward, by the range each environment has shown."""
        belief = self._belief
        for key in keys:
            if key not in belief.pairs.row:
                raise KeyError(f"no task {key!r} in this scheduler")
        rows = np.array([belief.pairs.row[key] for key in keys], dtype=np.int64)
        env, outlook = belief.pairs.environment[rows], belief.outlook(2)
        low, width = belief.environments.low[env], (belief.environments.high - belief.environments.low)[env]
        return Prediction(
            mean=tuple((low + width * outlook.mean[rows]).tolist()),
            std=tuple((width * outlook.mean_sd[rows]).tolist()),
            variance=tuple((width**2 * belief.environments.spread[env] * outlook.variance[rows]).tolist()),
        )

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
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue a saved run; tasks it did not know are taken up as new."""
        self._selects = int(state["selects"])
        self._belief.load_state_dict(state["belief"])
        self._ledger.load_state_dict(state["ledger"])
        self._ledger.forget([key for key in self._ledger.busy if key not in self._belief.pairs.row])
        self._last = dict(state["last"])

    def metrics(self) -> dict[str, float]:
        """Predictions for the last select, what the last results showed, coverage, and groups per environment.

        `coverage` is the share of cells (one hint in one environment) seen lately; shares are of discounted groups.
        """
        pairs, stats = self._belief.pairs, self._belief.environments
        seen = np.bincount(pairs.cell, pairs.count)[np.unique(pairs.cell)] if len(pairs) else np.zeros(1)
        total = max(float(stats.count.sum()), 1e-9)
        return {
            "predicted_informative_share": 0.0,
            "predicted_variance": 0.0,
            "informative_share": 0.0,
            **self._last,
            "coverage": float((seen > 0.5).mean()),
            "visited": float((pairs.count > 0).mean()) if len(pairs) else 0.0,
            "in_flight": float(len(self._ledger)),
            **{f"share/{name}": float(stats.count[i]) / total for name, i in stats.row.items()},
        }

    def _score(self, outlook: Outlook) -> NDArray[np.float64]:
        """Each pair's part of the value; what it shares with its bin is added while choosing."""
        pairs, stats, config = self._belief.pairs, self._belief.environments, self._config
        if config.signal == "variance":
            scale = 4.0 * stats.spread[pairs.environment]  # 1 for binary rewards at p = 1/2
            signal, spread = outlook.variance * scale, outlook.variance_sd * scale
        else:
            scale = stats.differing[pairs.environment]
            signal, spread = outlook.chance * scale, outlook.chance_sd * scale
        value = signal + config.spread * spread + 0.25 * config.coverage / np.sqrt(1.0 + pairs.count)
        relative_cost = pairs.cost / pairs.cost.mean()
        return np.asarray(value / relative_cost**config.cost_exponent)

    def _coverage(self) -> Coverage:
        """Discounted groups seen, plus those in flight."""
        belief, bins = self._belief, self._belief.view().bins
        busy = np.zeros(len(belief.pairs))
        busy[self._busy_rows()] = 1.0
        per_bin = sum_at(bins.of_pair, belief.pairs.count + busy, len(bins))
        sizes = belief.view().posterior.sizes
        return Coverage(
            environment=sum_at(bins.environment, per_bin, sizes.environments),
            hint=sum_at(bins.hint, per_bin, sizes.hints),
            pattern=sum_at(bins.pattern, per_bin, sizes.patterns),
        )

    def _busy_rows(self) -> list[int]:
        return [self._belief.pairs.row[key] for key in self._ledger.busy]

    def _rounds(self, groups: int) -> Iterator[tuple[NDArray[np.int64], int]]:
        """Candidates and places: tasks not in flight, then those in flight, then every task again and again."""
        free = np.ones(len(self._belief.pairs), dtype=bool)
        free[self._busy_rows()] = False
        for candidates in (np.flatnonzero(free), np.flatnonzero(~free)):
            number = min(groups, len(candidates))
            if number:
                yield candidates, number
            groups -= number
        while groups:
            number = min(groups, len(free))
            yield np.arange(len(free)), number
            groups -= number

    def _fill(self, choice: Choice, candidates: NDArray[np.int64], noise: NDArray[np.float64], number: int) -> None:
        """Choose `number` candidates: the random share, what environments are owed, then the best."""
        stats, start = self._belief.environments, len(choice.pairs)
        slots = uniforms(np.arange(number, dtype=np.uint64), self._seed, "random", self._selects, start)
        drawn = int((slots < self._config.random_share).sum())
        if drawn:
            lowest = np.argpartition(noise[candidates], drawn - 1)[:drawn]
            choice.at_random(candidates[lowest[np.argsort(noise[candidates][lowest])]])
        owed = np.argsort(-stats.credit, kind="stable")
        for environment in owed[: max(1, number // 2)].tolist():
            full = len(choice.pairs) - start >= number
            if not full and stats.credit[environment] - choice.taken[environment] >= 1.0:
                choice.best(1, environment)
        choice.best(number - (len(choice.pairs) - start))

    def _note(self, outlook: Outlook, choice: Choice) -> None:
        env = self._belief.pairs.environment[choice.pairs]
        stats = self._belief.environments
        self._last["predicted_informative_share"] = float((outlook.chance[choice.pairs] * stats.differing[env]).mean())
        self._last["predicted_variance"] = float((outlook.variance[choice.pairs] * stats.spread[env]).mean())
