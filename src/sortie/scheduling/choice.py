"""Fill the places of one select: best value first, with a random share, a cap and a least share per environment."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Bins:
    """Pairs that share environment, hint and pattern: one entry per bin, one bin number per pair."""

    environment: Ints
    hint: Ints
    pattern: Ints
    of_pair: Ints

    def __len__(self) -> int:
        return len(self.environment)


@dataclass(frozen=True, slots=True)
class Coverage:
    """Groups per environment, hint and pattern: seen lately, in flight, or chosen just now."""

    environment: Floats
    hint: Floats
    pattern: Floats

    def bonus(self, bins: Bins) -> Floats:
        """1 / sqrt(1 + n), averaged over the three, per bin: 1 where nothing was seen (ours, after UCB's width)."""
        return (
            _width(self.environment)[bins.environment]
            + _width(self.hint)[bins.hint]
            + _width(self.pattern)[bins.pattern]
        ) / 3.0

    def note(self, bins: Bins, b: int) -> None:
        """One more group for bin `b`."""
        self.environment[bins.environment[b]] += 1
        self.hint[bins.hint[b]] += 1
        self.pattern[bins.pattern[b]] += 1


class Choice:
    """The places of one select, filled step by step from queues of candidates, one queue per bin."""

    def __init__(self, bins: Bins, coverage: Coverage, *, weight: float, cap: int) -> None:
        self.pairs: list[int] = []
        """Chosen so far."""
        self.taken = np.zeros(len(coverage.environment), dtype=np.int64)
        """How many of each environment."""
        self._bins, self._coverage, self._weight, self._cap = bins, coverage, weight, cap
        self.offer(np.zeros(0, dtype=np.int64), np.zeros(0))

    def offer(self, candidates: Ints, score: Floats) -> None:
        """Replace the queues: each of `candidates` may be chosen once; `score` has one entry per candidate."""
        own = self._bins.of_pair[candidates]
        span = np.ptp(score) + 1e-12 if len(score) else 1.0
        order = np.argsort(own + 0.5 * (score.max(initial=0.0) - score) / span)  # one key: bin, then best first
        self._queue, self._score, numbers = candidates[order], score[order], np.arange(len(self._bins))
        self._next = np.searchsorted(own[order], numbers)
        self._end = np.searchsorted(own[order], numbers, side="right")
        self._gone: set[int] = set()
        self._head = np.full(len(self._bins), -np.inf)
        filled = self._next < self._end
        self._head[filled] = self._score[self._next[filled]]

    def at_random(self, pairs: Ints) -> None:
        """Choose these candidates, unless their environment is at its cap."""
        for pair in pairs.tolist():
            b = int(self._bins.of_pair[pair])
            if self.taken[self._bins.environment[b]] < self._cap:
                self._take(pair, b)

    def best(self, number: int, environment: int | None = None) -> None:
        """Choose up to `number` candidates by score plus coverage bonus, perhaps of one environment only.

        The cap gives way when only capped environments have candidates left.
        """
        for _ in range(number):
            value = self._head + self._weight * self._coverage.bonus(self._bins)
            open_ = self.taken[self._bins.environment] < self._cap
            if environment is not None:
                open_ &= self._bins.environment == environment
            within = np.where(open_, value, -np.inf)
            b = int(within.argmax())
            if within[b] == -np.inf and environment is None:
                b = int(value.argmax())
                within = value
            if within[b] == -np.inf:
                return
            self._take(int(self._queue[self._next[b]]), b)

    def _take(self, pair: int, b: int) -> None:
        self.pairs.append(pair)
        self.taken[self._bins.environment[b]] += 1
        self._coverage.note(self._bins, b)
        self._gone.add(pair)
        at, end = int(self._next[b]), int(self._end[b])
        while at < end and int(self._queue[at]) in self._gone:
            at += 1
        self._next[b] = at
        self._head[b] = self._score[at] if at < end else -np.inf


def _width(count: Floats) -> Floats:
    return 1.0 / np.sqrt(1.0 + count)
