"""Who is next: arrival order within a class, weighted fair shares between classes.

Start-time fair queueing (Goyal, Vin & Cheng 1996): a class's requests get tags 1/weight apart, not before the tag last
served, and the smallest tag goes first. A class that was idle saves nothing up, and no request waits for ever.
"""

from __future__ import annotations

import asyncio
import bisect
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sortie.core.errors import ConfigError, ResourceError
from sortie.resources.lease import Lease
from sortie.resources.pool import Pool


@dataclass(slots=True, eq=False)
class Claim:
    """One request for a set of leases, all or none."""

    pools: Mapping[str, Pool[Any]]
    holder: str
    klass: str = "default"
    priority: int = 0
    """Within the class, higher goes first."""
    arrival: int = 0
    decided: asyncio.Event = field(default_factory=asyncio.Event)
    leases: list[Lease[Any]] = field(default_factory=list)
    error: ResourceError | None = None


@dataclass(slots=True)
class _Line:
    step: float
    claims: list[Claim] = field(default_factory=list)
    tags: list[float] = field(default_factory=list)
    """Ascending, one per claim: the i-th in line has the i-th tag, whoever that is."""
    next: float = 0.0


class FairQueue:
    """Waiting claims in the order in which they should be served."""

    def __init__(self, weights: Mapping[str, float]) -> None:
        """`weights` by class; 1 for those not named. Raises: ConfigError for a weight that is not positive."""
        for name, weight in weights.items():
            if not weight > 0:
                raise ConfigError(f"the weight of class {name!r} must be positive, got {weight}")
        self._weights = dict(weights)
        self._lines: dict[str, _Line] = {}
        self._now = 0.0
        self._arrivals = 0

    def __len__(self) -> int:
        return sum(len(line.claims) for line in self._lines.values())

    def push(self, claim: Claim) -> None:
        """Join the line of its class."""
        line = self._lines.setdefault(claim.klass, _Line(1 / self._weights.get(claim.klass, 1.0)))
        claim.arrival = self._arrivals
        self._arrivals += 1
        if not line.claims:
            line.next = max(line.next, self._now)
        line.tags.append(line.next)
        line.next += line.step
        bisect.insort(line.claims, claim, key=lambda c: (-c.priority, c.arrival))

    def serve(self, claim: Claim) -> None:
        """Leave the line, having been served: it uses up its tag."""
        line = self._lines[claim.klass]
        tag = line.tags.pop(line.claims.index(claim))
        line.claims.remove(claim)
        self._now = max(self._now, tag)

    def discard(self, claim: Claim) -> None:
        """Leave the line unserved, if still in it: those behind move up."""
        line = self._lines.get(claim.klass)
        if line is not None and claim in line.claims:
            line.claims.remove(claim)
            line.tags.pop()
            line.next -= line.step

    def in_order(self) -> list[Claim]:
        """Everyone waiting, the next to be served first."""
        tagged = [
            (tag, c.arrival, c) for line in self._lines.values() for tag, c in zip(line.tags, line.claims, strict=True)
        ]
        return [claim for _, _, claim in sorted(tagged, key=lambda entry: entry[:2])]
