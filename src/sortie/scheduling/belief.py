"""What EnvSched believes of every pair: discounted group results, and the model that spreads them over relations.

A result counts `discount ** age`, its age in policy versions: forgetting pulls a pair back to what its environment and
pattern say, and in the end to the prior. No success in few tries is therefore unknown, not impossible.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sortie.core.errors import ConfigError
from sortie.core.group import EnvironmentRecord, GroupResult, TaskRecord
from sortie.scheduling.choice import Bins
from sortie.scheduling.clusters import Clusters
from sortie.scheduling.keyed import uniform
from sortie.scheduling.ledger import scored
from sortie.scheduling.pairs import UNVISITED, Pairs
from sortie.scheduling.pattern import as_vectors, text_vectors
from sortie.scheduling.posterior import Places, Posterior, Prior, Sizes, fit, site, with_own
from sortie.scheduling.rewards import EnvironmentStats
from sortie.scheduling.signal import Outlook, outlook

UNKNOWN = 0
"""Pattern of pairs of whose kind none has been rolled out."""


@dataclass(frozen=True, slots=True)
class View:
    """The belief at one moment: the model, and each pair's bin."""

    posterior: Posterior
    bins: Bins
    places: Places
    """Of each bin."""
    visited: NDArray[np.int64]
    """Rows of the pairs with a site."""


class Belief:
    """Pairs, environments, pattern clusters and the model over them."""

    def __init__(self, prior: Prior, *, discount: float, max_patterns: int, seed: int) -> None:
        self.pairs = Pairs()
        self.environments = EnvironmentStats()
        self.clock = 0
        self._prior, self._discount, self._seed = prior, discount, seed
        self._given = Clusters(max_patterns, standardise=True)
        self._text = Clusters(max_patterns)
        self._observed = Clusters(max_patterns)
        self._cells: dict[tuple[int, int], int] = {}
        self._view: View | None = None

    def add_environments(self, records: Sequence[EnvironmentRecord]) -> None:
        """Make environments known before their tasks are."""
        self._environment_rows([record.name for record in records])

    def add(self, records: Sequence[TaskRecord]) -> None:
        """Take up new tasks; known keys are left as they are.

        Raises: ConfigError if a cost is not above 0.
        """
        for record in records:
            if not record.cost > 0:
                raise ConfigError(f"task {record.key!r} costs {record.cost:g}; costs must be above 0")
        new = {record.key: record for record in records if record.key not in self.pairs.row}
        self._place(self.pairs.add(list(new.values())))
        self._view = None

    def remove(self, keys: Sequence[str]) -> None:
        """Drop tasks; what they taught about others stays. Unknown keys are ignored."""
        self.pairs.remove(keys)
        self._view = None

    def learn(self, results: Sequence[GroupResult]) -> list[float]:
        """Take in groups of known pairs; returns 1 or 0 for each scored group: did its rewards differ?"""
        usable = [result for result in results if result.key in self.pairs.row and scored(result)]
        if not usable:
            return []
        self._advance(max(result.version for result in usable))
        pairs, stats = self.pairs, self.environments
        rows = np.array([pairs.row[result.key] for result in usable])
        mean, var = self.logits(rows)
        weights = self._discount ** np.array([self.clock - result.version for result in usable], dtype=float)
        rewards = [
            stats.scale(row, scored(result))
            for row, result in zip(pairs.environment[rows].tolist(), usable, strict=True)
        ]
        sizes = np.array([len(group) for group in rewards], dtype=float)
        precision, linear = site(mean, var, np.array([sum(group) for group in rewards]), sizes)
        np.add.at(pairs.precision, rows, weights * precision)
        np.add.at(pairs.linear, rows, weights * linear)
        np.add.at(pairs.count, rows, weights)
        for row, group, weight in zip(pairs.environment[rows].tolist(), rewards, weights.tolist(), strict=True):
            stats.learn(row, group, weight)
        shown = [i for i, result in enumerate(usable) if result.features is not None]
        vectors = as_vectors([usable[i].features or () for i in shown])
        pairs.pattern[rows[shown]] = 1 + self._observed.assign(vectors)
        self._view = None
        return [float(min(group) < max(group)) for group in rewards]

    def logits(self, rows: NDArray[np.int64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Mean and variance of the logit of success of some pairs."""
        view, pairs = self.view(), self.pairs
        mean, var = view.posterior.of(view.places.take(view.bins.of_pair[rows]))
        return with_own(self._prior, mean, var, pairs.precision[rows], pairs.linear[rows])

    def outlook(self, n: int) -> Outlook:
        """What a group of n is expected to show, per pair. Pairs never visited share their bin's integrals."""
        view = self.view()
        mean, var = view.posterior.of(view.places)
        per_bin = outlook(mean, var + self._prior.pair**2, n)
        own = outlook(*self.logits(view.visited), n)
        columns = []
        for name in Outlook.__dataclass_fields__:
            column = getattr(per_bin, name)[view.bins.of_pair]
            column[view.visited] = getattr(own, name)
            columns.append(column)
        return Outlook(*columns)

    def view(self) -> View:
        """The model fitted to all that was learned; kept until something changes."""
        if self._view is None:
            self._view = self._fitted()
        return self._view

    def _fitted(self) -> View:
        pairs = self.pairs
        gone, gone_precision, gone_linear = self._departed()
        bins, places = self._bins()
        visited = np.flatnonzero(pairs.precision > 1e-9)
        posterior = fit(
            self._prior,
            self._sizes(),
            places.take(bins.of_pair[visited]).join(gone),
            np.append(pairs.precision[visited], gone_precision),
            np.append(pairs.linear[visited], gone_linear),
        )
        return View(posterior, bins, places, visited)

    def _bins(self) -> tuple[Bins, Places]:
        """Environment, hint and pattern of each pair. An unvisited one is taken to behave as most of its cell did."""
        pairs, patterns, cells = self.pairs, self._sizes().patterns, self._sizes().cells
        known = np.flatnonzero(pairs.pattern != UNVISITED)
        tally = np.bincount(pairs.cell[known] * patterns + pairs.pattern[known], pairs.count[known], cells * patterns)
        usual = tally.reshape(cells, patterns).argmax(axis=1)
        code = pairs.cell * patterns + np.where(pairs.pattern == UNVISITED, usual[pairs.cell], pairs.pattern)
        present = np.zeros(cells * patterns, dtype=bool)
        present[code] = True
        codes = np.flatnonzero(present)
        cell, pattern = codes // patterns, codes % patterns
        owner = np.array(list(self._cells), dtype=np.int64).reshape(-1, 2)[cell]
        of_pair = (np.cumsum(present) - 1)[code]
        return Bins(owner[:, 0], owner[:, 1], pattern, of_pair), Places(owner[:, 0], owner[:, 1], pattern, cell)

    def _sizes(self) -> Sizes:
        hints = 2 * max(len(self._given), len(self._text))
        return Sizes(len(self.environments), hints, 1 + len(self._observed), max(len(self._cells), 1))

    def _departed(self) -> tuple[Places, NDArray[np.float64], NDArray[np.float64]]:
        """Places and sites of removed pairs."""
        rows = self.pairs.departed.rows
        environment, hint, pattern = rows[:, :3].astype(np.int64).T
        cell = np.array([self._cell(*owner) for owner in zip(environment.tolist(), hint.tolist(), strict=True)], int)
        return Places(environment, hint, np.maximum(pattern, UNKNOWN), cell), rows[:, 3], rows[:, 4]

    def _cell(self, environment: int, hint: int) -> int:
        return self._cells.setdefault((environment, hint), len(self._cells))

    def _advance(self, version: int) -> None:
        if version > self.clock:
            factor = self._discount ** (version - self.clock)
            self.pairs.discount(factor)
            self.environments.discount(factor)
            self.clock, self._view = version, None

    def _environment_rows(self, names: Sequence[str]) -> list[int]:
        # Staggered first credits, so that many environments do not fall due in the same select.
        return self.environments.rows(names, lambda name: uniform(self._seed, "credit", name))

    def _place(self, first: int) -> None:
        """Set environment, hint and cell of the rows from `first` on."""
        pairs = self.pairs
        records = pairs.records[first:]
        pairs.environment[first:] = self._environment_rows([record.environment for record in records])
        given = [i for i, record in enumerate(records) if record.features is not None]
        told = [i for i, record in enumerate(records) if record.features is None]
        hints = np.zeros(len(records), dtype=np.int64)
        # Even numbers are clusters of given features, odd ones of texts.
        hints[given] = 2 * self._given.assign(as_vectors([records[i].features or () for i in given]))
        hints[told] = 2 * self._text.assign(text_vectors([records[i].text for i in told])) + 1
        pairs.hint[first:] = hints
        owners = zip(pairs.environment[first:].tolist(), hints.tolist(), strict=True)
        pairs.cell[first:] = [self._cell(*owner) for owner in owners]

    def state_dict(self) -> dict[str, Any]:
        """JSON values. Records are not in it."""
        return {
            "clock": self.clock,
            "pairs": self.pairs.state_dict(),
            "environments": self.environments.state_dict(),
            "clusters": [clusters.state_dict() for clusters in (self._given, self._text, self._observed)],
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take over a saved belief about the pairs that exist here."""
        self.clock = int(state["clock"])
        self.environments.load_state_dict(state["environments"])
        for clusters, saved in zip((self._given, self._text, self._observed), state["clusters"], strict=True):
            clusters.load_state_dict(saved)
        self.pairs.load_state_dict(state["pairs"])
        self._cells.clear()
        self._place(0)
        self._view = None
