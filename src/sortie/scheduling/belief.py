"""What EnvSched believes of every pair: observations of single pairs, and the model that spreads them over relations.

Forgetting pulls a pair back to what its environment and pattern say, and in the end to the prior; no success in few
tries is therefore unknown, not impossible.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sortie.core.errors import ConfigError
from sortie.core.group import EnvironmentRecord, GroupResult, TaskRecord
from sortie.scheduling.changes import Changes
from sortie.scheduling.exposure import Exposure
from sortie.scheduling.factors import EXPOSURES, Factors, Floats, Ints
from sortie.scheduling.gaussian import Posterior, fit
from sortie.scheduling.graph import Graph, mixture
from sortie.scheduling.keyed import uniform
from sortie.scheduling.ledger import scored
from sortie.scheduling.pairs import NONE, Pairs
from sortie.scheduling.rewards import EnvironmentStats
from sortie.scheduling.shared import Reader
from sortie.scheduling.site import site
from sortie.scheduling.sites import Sites
from sortie.scheduling.strengths import Strengths, Tuner

CHANGED = 0.02
"""What a result is worth after its environment, hint or pattern changed."""


@dataclass(frozen=True, slots=True)
class View:
    """The belief at one moment."""

    posterior: Posterior
    reader: Reader
    expected: Floats
    """Mixture of patterns expected of each hint [H, Q]."""


class Belief:
    """Pairs, the graph they hang on, what was observed, and the model over it."""

    def __init__(
        self, strengths: Strengths, *, trials: int, max_patterns: int, memory: float, surprise: float, seed: int
    ) -> None:
        self.pairs = Pairs(seed)
        self.graph = Graph(max_patterns=max_patterns)
        self.environments = EnvironmentStats()
        self.sites = Sites()
        self.exposure = Exposure()
        self.changes = Changes(surprise)
        self.tuner = Tuner(strengths)
        self.counts = np.zeros(0), np.zeros(0)
        """Groups lately per hint [H] and pattern [Q]."""
        self.clock = 0
        self.changed = 0
        """Sudden changes detected so far."""
        self._trials, self._memory, self._seed = trials, memory, seed
        self._factors: Factors | None = None
        self._view: View | None = None

    def add_environments(self, records: Sequence[EnvironmentRecord]) -> None:
        """Make environments known before their tasks are."""
        self.graph.describe(records)
        self._grow()

    def add(self, records: Sequence[TaskRecord]) -> None:
        """Take up new tasks; known keys are left as they are.

        Raises: ConfigError if a cost is not above 0.
        """
        for record in records:
            if not record.cost > 0:
                raise ConfigError(f"task {record.key!r} costs {record.cost:g}; costs must be above 0")
        new = {record.key: record for record in records if record.key not in self.pairs.row}
        self._place(self.pairs.add(list(new.values())))

    def prepare(self) -> None:
        """Sort the pairs now rather than in the next select: a third of a second for a million."""
        self.pairs.bins  # noqa: B018 - made when first asked for, and kept

    def remove(self, keys: Sequence[str]) -> None:
        """Drop tasks; what they taught about others stays. Unknown keys are ignored."""
        now_at = self.pairs.remove(keys)
        here = self.sites.pair >= 0
        self.sites.pair[here] = now_at[self.sites.pair[here]]
        self._view = None

    def learn(self, results: Sequence[GroupResult]) -> list[float]:
        """Take in groups of known pairs; returns 1 or 0 for each scored group: did its rewards differ?"""
        usable = [result for result in results if result.key in self.pairs.row and scored(result)]
        if not usable:
            return []
        self._advance(max(result.version for result in usable))
        rows = np.array([self.pairs.row[result.key] for result in usable], dtype=np.int64)
        stats, environment = self.environments, self.pairs.environment[rows].astype(np.int64)
        rewards = [stats.scale(e, scored(result)) for e, result in zip(environment.tolist(), usable, strict=True)]
        pattern = self._behaved(rows, usable)
        for version in sorted({result.version for result in usable}):
            at = [i for i, result in enumerate(usable) if result.version == version]
            self._observe(rows[at], [rewards[i] for i in at], version)
        for e, group in zip(environment.tolist(), rewards, strict=True):
            stats.learn(e, group, 1.0)
        np.add.at(self.pairs.visits, rows, 1)
        hint = self.pairs.hint[rows].astype(np.int64)
        squares = np.array([sum((r - sum(group) / len(group)) ** 2 for r in group) for group in rewards])
        self.exposure.train(environment, hint, pattern, squares)
        np.add.at(self.counts[0], hint, 1.0)
        np.add.at(self.counts[1], pattern, 1.0)
        self._forget_faint()
        self._tune()
        return [float(min(group) < max(group)) for group in rewards]

    def logits(self, rows: Ints, version: int | None = None) -> tuple[Floats, Floats]:
        """Mean and variance of the logit of success of some pairs, now or for an earlier policy version."""
        pairs, sites, reader = self.pairs, self.sites, self.view().reader
        at = pairs.site[rows].astype(np.int64)
        seen = at != NONE
        mine = np.where(seen, at, 0)
        cell, hint = pairs.cell[rows].astype(np.int64), pairs.hint[rows].astype(np.int64)
        pattern = self._patterns(rows)
        precision, value, then = np.zeros(len(rows)), np.zeros(len(rows)), np.zeros((len(rows), EXPOSURES))
        if seen.any():
            precision = np.where(seen, sites.remaining(self.clock, self._forget)[mine], 0.0)
            value, then = sites.value[mine], sites.exposure[mine]
        exposure = self._exposures(pairs.environment[rows], hint, pattern, version)
        return reader.logits(reader.shared(cell, hint, pattern), exposure, precision, value, then)

    def gained(self, rows: Ints) -> Floats:
        """Logits that training so far is believed to have added to the success of some pairs."""
        posterior, hint = self.view().posterior, self.pairs.hint[rows].astype(np.int64)
        exposure = self._exposures(self.pairs.environment[rows], hint, self._patterns(rows))
        return np.asarray(exposure @ posterior.mean[posterior.factors.exposures])

    def _patterns(self, rows: Ints) -> Ints:
        """Pattern of some pairs; of those without observations, the number that stands for their hint's mixture."""
        pairs, sites = self.pairs, self.sites
        at, mixed = pairs.site[rows].astype(np.int64), self.graph.patterns + pairs.hint[rows].astype(np.int64)
        return np.where(at != NONE, sites.pattern[at], mixed) if len(sites) else mixed

    def of_sites(self) -> tuple[Floats, Floats]:
        """Mean and variance of the logits of the pairs with observations, in the order of `sites`."""
        sites, reader = self.sites, self.view().reader
        environment = self._cell_environments()[sites.cell]
        exposure = self._exposures(environment, sites.hint, sites.pattern)
        shared = reader.shared(sites.cell, sites.hint, sites.pattern)
        return reader.logits(shared, exposure, sites.remaining(self.clock, self._forget), sites.value, sites.exposure)

    def of_bins(self) -> tuple[Floats, Floats]:
        """Mean and variance of the logits of the pairs without observations, one per bin."""
        bins, reader = self.pairs.bins, self.view().reader
        pattern = self.graph.patterns + bins.hint
        exposure = self._exposures(bins.environment, bins.hint, pattern)
        nothing = np.zeros(len(bins))
        return reader.logits(reader.shared(bins.cell, bins.hint, pattern), exposure, nothing, nothing, exposure)

    def view(self) -> View:
        """The model fitted to all that was learned; kept until something changes."""
        if self._view is None:
            posterior = self._fit(self.tuner.strengths)
            sites, graph = self.sites, self.graph
            expected = mixture(sites.hint, sites.pattern, sites.groups, graph.hints, graph.patterns)
            self._view = View(posterior, Reader(posterior, expected), expected)
        return self._view

    @property
    def _forget(self) -> float:
        return self.tuner.strengths.forget

    def _fit(self, strengths: Strengths) -> Posterior:
        if self._factors is None:
            self._factors = self.graph.factors()
        return fit(strengths, self._factors, self.sites.observations(self.clock, strengths.forget))

    def _cell_environments(self) -> Ints:
        return self.view().posterior.factors.cell_environment

    def _exposures(self, environment: NDArray[Any], hint: Ints, pattern: Ints, version: int | None = None) -> Floats:
        """Training that pairs have gained from [N, 4]."""
        totals = self.exposure.at(version)
        of_pattern = self.view().reader.of_pattern(pattern, totals[2])
        return np.column_stack([totals[0][environment], totals[1][hint], of_pattern, np.full(len(hint), totals[3][0])])

    def _observe(self, rows: Ints, rewards: Sequence[Sequence[float]], version: int) -> None:
        """One observation per pair from the groups that one policy version rolled out.

        A graded reward of variance v p (1 - p) says as much as 1 / v binary ones.
        """
        pair, inverse = np.unique(rows, return_inverse=True)
        mean, var = self.logits(pair, version)
        weight = 1.0 / self.environments.spread[self.pairs.environment[pair]]
        total = np.bincount(inverse, [sum(group) for group in rewards])
        number = np.bincount(inverse, [float(len(group)) for group in rewards])
        precision, linear = site(mean, var, weight * total, weight * number)
        at = self.pairs.site[pair].astype(np.int64)
        exposure = self._exposures(self.pairs.environment[pair], self.sites.hint[at], self.sites.pattern[at], version)
        places = self.pairs.environment[pair].astype(np.int64), self.sites.hint[at], self.sites.pattern[at]
        posterior = self.view().posterior
        changed = self.changes.judge(posterior, places, exposure, mean, var, weight * total, weight * number)
        if any(len(kind) for kind in changed):
            self._forget_changed(changed)
        age = max(self.clock - version, 0)
        self.sites.add(
            at,
            precision * (1.0 - self._forget) ** age,
            linear / precision,
            exposure,
            clock=float(self.clock),
            forget=self._forget,
        )

    def _behaved(self, rows: Ints, results: Sequence[GroupResult]) -> Ints:
        """Open a row of observations where there is none, and note how rollouts behaved; returns patterns."""
        pairs, sites = self.pairs, self.sites
        new = np.unique(rows[pairs.site[rows] == NONE])
        pairs.site[new] = sites.open(new, pairs.cell[new].astype(np.int64), pairs.hint[new].astype(np.int64))
        at = pairs.site[rows].astype(np.int64)
        shown = [i for i, result in enumerate(results) if result.features is not None]
        if shown:
            known = self.graph.patterns
            sites.pattern[at[shown]] = self.graph.behaved([results[i].features or () for i in shown])
            if self.graph.patterns != known:
                self._grow()
        return sites.pattern[at]

    def _forget_changed(self, changed: Sequence[Ints]) -> None:
        """Most of what was seen at changed environments, hints and patterns is worth little."""
        sites = self.sites
        for place, kind in zip(
            (self._cell_environments()[sites.cell], sites.hint, sites.pattern), changed, strict=True
        ):
            sites.precision[np.isin(place, kind)] *= CHANGED
        self.changed += sum(len(kind) for kind in changed)

    def _forget_faint(self) -> None:
        dropped = self.sites.prune(self.clock, self._forget)
        if dropped is not None:
            self.pairs.site[dropped[dropped >= 0]] = NONE
            here = np.flatnonzero(self.sites.pair >= 0)
            self.pairs.site[self.sites.pair[here]] = here

    def _tune(self) -> None:
        """A few trials; fewer when each is dear."""
        factors = self._factors or self.graph.factors()
        dear = len(self.sites) > 20_000 or len(factors.cell_environment) * factors.dense**2 > 2e7
        trials = min(self._trials, 1) if dear else self._trials
        self.tuner.improve(lambda strengths: self._fit(strengths).log_evidence, trials)
        self._view = None

    def _advance(self, version: int) -> None:
        if version > self.clock:
            steps = version - self.clock
            self.environments.discount(self._memory**steps)
            for count in self.counts:
                count *= self._memory**steps
            self.sites.scatter *= (1.0 - self._forget) ** steps
            self.clock, self._view = version, None
            self.exposure.advance(version)

    def _grow(self) -> None:
        """Make room for new environments, hints and patterns."""
        graph = self.graph
        # Staggered first credits, so that many environments do not fall due in the same select.
        self.environments.rows(list(graph.environment_row), lambda name: uniform(self._seed, "credit", name))
        sizes = len(graph.environment_row), graph.hints, graph.patterns
        self.exposure.grow(*sizes)
        self.changes.grow(*sizes)
        hints, patterns = self.counts
        self.counts = (
            np.append(hints, np.zeros(graph.hints - len(hints))),
            np.append(patterns, np.zeros(graph.patterns - len(patterns))),
        )
        self._factors = self._view = None

    def _place(self, first: int) -> None:
        """Set environment, hint and cell of the rows from `first` on."""
        pairs = self.pairs
        placed = self.graph.place(pairs.records[first:])
        pairs.environment[first:], pairs.hint[first:], pairs.cell[first:] = placed
        pairs.moved()
        self._grow()

    def state_dict(self) -> dict[str, Any]:
        """JSON values. Records are not in it."""
        keys = [self.pairs.records[pair].key if pair >= 0 else None for pair in self.sites.pair.tolist()]
        return {
            "clock": self.clock,
            "pairs": self.pairs.state_dict(),
            "environments": self.environments.state_dict(),
            "graph": self.graph.state_dict(),
            "sites": {"keys": keys, **self.sites.state_dict()},
            "exposure": self.exposure.state_dict(),
            "changes": {"sums": self.changes.state_dict(), "number": self.changed},
            "tuner": self.tuner.state_dict(),
            "counts": [count.tolist() for count in self.counts],
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take over a saved belief about the pairs that exist here."""
        self.clock = int(state["clock"])
        self.environments.load_state_dict(state["environments"])
        self.graph.load_state_dict(state["graph"])
        self.pairs.load_state_dict(state["pairs"])
        pair = np.array([self.pairs.row.get(key, NONE) for key in state["sites"]["keys"]], dtype=np.int64)
        self.sites.load_state_dict(state["sites"], pair)
        here = np.flatnonzero(pair >= 0)
        self.pairs.site[pair[here]] = here
        self.exposure.load_state_dict(state["exposure"])
        self.changes.load_state_dict(state["changes"]["sums"])
        self.changed = int(state["changes"]["number"])
        self.tuner.load_state_dict(state["tuner"])
        hints, patterns = state["counts"]
        self.counts = np.array(hints, dtype=float), np.array(patterns, dtype=float)
        self._place(0)
