"""Fill the places of one select: best value first, with a random share, a cap and a least share per environment."""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from sortie.scheduling.factors import Floats, Ints
from sortie.scheduling.pairs import NONE, Bins

Reason = Literal["value", "random", "sampled", "owed", "overflow"]
"""Why a task was chosen: for its value, by the random or the sampled share, by its environment's least share, or
although its environment was at its cap, as the others had no tasks left."""


@dataclass(frozen=True, slots=True)
class Pool:
    """Candidates: single pairs with observations, and the first of each bin without. One entry per candidate."""

    pair: Ints
    environment: Ints
    hint: Ints
    bin: Ints
    """Bin that the pair stands for, NONE for a single pair."""
    value: Floats
    """All of the value that does not change while choosing."""
    weight: Floats
    """Of the coverage bonus."""

    def __len__(self) -> int:
        return len(self.pair)


class Choice:
    """The places of one select.

    Bonuses only fall while choosing, so a candidate whose value is still the best after being brought up to date is the
    best of all: lazy greedy (Minoux 1978).
    """

    def __init__(
        self, pool: Pool, bins: Bins, blocked: NDArray[np.bool_], counts: tuple[Floats, Floats], cap: int
    ) -> None:
        self.pairs: list[int] = []
        """Chosen so far."""
        self.reasons: list[Reason] = []
        self.taken = np.zeros(len(counts[0]), dtype=np.int64)
        """How many of each environment."""
        self._pool, self._bins, self._blocked, self._cap = pool, bins, blocked, cap
        self._environment, self._hint = counts[0].copy(), counts[1].copy()
        self._heads = pool.pair.copy()
        # A bin stands for its members without observations: the others are candidates of their own, at their own value.
        self._queued = blocked.copy()
        self._queued[pool.pair[pool.bin == NONE]] = True

    def take(self, pairs: Ints, environments: Ints, hints: Ints, reason: Reason) -> None:
        """Choose these, unless their environment is at its cap."""
        for pair, environment, hint in zip(pairs.tolist(), environments.tolist(), hints.tolist(), strict=True):
            if self.taken[environment] < self._cap and not self._blocked[pair]:
                self._take(pair, environment, hint, reason)

    def best(self, number: int, among: NDArray[np.bool_] | None = None, *, reason: Reason = "value") -> None:
        """Choose up to `number` candidates by value, perhaps only `among` some of the pool.

        The cap gives way when only capped environments have candidates left.
        """
        left = np.arange(len(self._pool)) if among is None else np.flatnonzero(among)
        now = self._now(left)
        wide = 4 * number + 64
        goal = len(self.pairs) + number
        if len(left) > wide:
            top = np.argpartition(-now, wide)[:wide]
            capped = self._run(left[top], now[top], goal, reason, cap=True)
            if len(self.pairs) < goal:
                rest = np.delete(np.arange(len(left)), top)
                capped += self._run(left[rest], self._now(left[rest]), goal, reason, cap=True)
        else:
            capped = self._run(left, now, goal, reason, cap=True)
        if capped and len(self.pairs) < goal and among is None:
            over = np.array(capped, dtype=np.int64)
            self._run(over, self._now(over), goal, "overflow", cap=False)

    def _run(self, candidates: Ints, now: Floats, goal: int, reason: Reason, *, cap: bool) -> list[int]:
        """Choose among candidates till the goal; returns those left out for the cap."""
        heap = list(zip((-now).tolist(), candidates.tolist(), strict=True))
        heapq.heapify(heap)
        capped: list[int] = []
        pool = self._pool
        while heap and len(self.pairs) < goal:
            claimed, i = heapq.heappop(heap)
            environment, hint = int(pool.environment[i]), int(pool.hint[i])
            if cap and self.taken[environment] >= self._cap:
                capped.append(i)
                continue
            if not self._ready(i):
                continue
            value = -float(pool.value[i] + pool.weight[i] * self._bonus(environment, hint))
            if heap and value > heap[0][0] and value > claimed:
                heapq.heappush(heap, (value, i))
                continue
            self._take(int(self._heads[i]), environment, hint, reason)
            if pool.bin[i] != NONE:
                heapq.heappush(heap, (value, i))
        return capped

    def _ready(self, i: int) -> bool:
        """Whether candidate i still has a pair to offer; a bin moves on to its next."""
        if self._heads[i] != NONE and self._blocked[self._heads[i]]:
            b = int(self._pool.bin[i])
            self._heads[i] = NONE if b == NONE else self._bins.following(b, self._queued)
        return bool(self._heads[i] != NONE)

    def _now(self, candidates: Ints) -> Floats:
        """Values with the present counts."""
        pool = self._pool
        bonus = 0.5 * (
            width(self._environment)[pool.environment[candidates]] + width(self._hint)[pool.hint[candidates]]
        )
        return np.asarray(pool.value[candidates] + pool.weight[candidates] * bonus)

    def _bonus(self, environment: int, hint: int) -> float:
        return 0.5 * float((1.0 + self._environment[environment]) ** -0.5 + (1.0 + self._hint[hint]) ** -0.5)

    def _take(self, pair: int, environment: int, hint: int, reason: Reason) -> None:
        self.pairs.append(pair)
        self.reasons.append(reason)
        self._blocked[pair] = self._queued[pair] = True
        self.taken[environment] += 1
        self._environment[environment] += 1
        self._hint[hint] += 1


def width(count: Floats) -> Floats:
    """1 / sqrt(1 + n): 1 where nothing was seen (ours, after the width of UCB)."""
    return np.asarray(1.0 / np.sqrt(1.0 + count))
