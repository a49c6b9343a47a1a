"""Lease resources to rollouts.

A set of leases is granted whole or not at all, so nobody waits while holding. A lease is granted once and returned
once, also when its holder is cancelled. Nobody is overtaken on a pool they wait for: requests are served in the queue's
order, and one that cannot be served yet keeps its pools from those behind it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Self

from sortie.core.errors import LeaseTimeout, ResourceError
from sortie.resources.lease import Lease, Leases
from sortie.resources.pool import Pool
from sortie.resources.queue import Claim, FairQueue
from sortie.resources.spec import ResourceSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolUsage:
    """One pool at one moment."""

    capacity: int
    leased: int
    free: int
    starting: int
    waiting: int
    failures: int


class ResourceEngine:
    """The one scheduling engine of the resource layer. Belongs to one event loop."""

    def __init__(self, weights: Mapping[str, float] | None = None) -> None:
        """`weights` are the shares of classes that wait for the same pool; 1 for those not named."""
        self._queue = FairQueue(weights or {})
        self._pools: dict[str, Pool[Any]] = {}
        self._chores: set[asyncio.Task[None]] = set()
        self._closed = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()

    @asynccontextmanager
    async def lease(
        self,
        *specs: ResourceSpec[Any],
        holder: str,
        deadline_s: float | None = None,
        klass: str = "default",
        priority: int = 0,
    ) -> AsyncIterator[Leases]:
        """Hold one instance of each different spec, all or none.

        `deadline_s` bounds waiting and starting together.
        Raises: LeaseTimeout; ResourceError if an instance did not start or the engine closed.
        """
        if not specs:
            yield Leases()
            return
        if self._closed:
            raise ResourceError("the resource engine is closed")
        claim = Claim({spec.key: self._pool(spec) for spec in specs}, holder, klass, priority)
        used = False
        try:
            await self._obtain(claim, deadline_s)
            used = True
            yield Leases(claim.leases)
        finally:  # synchronous from here on, so that a second cancellation cannot come between
            self._queue.discard(claim)
            for lease in claim.leases:
                self._give_back(lease, used)
            self._dispatch()

    def usage(self) -> dict[str, PoolUsage]:
        """Every pool by its spec's key."""
        waiting = self._queue.in_order()
        return {
            key: PoolUsage(
                capacity=pool.spec.capacity,
                leased=pool.leased,
                free=len(pool.free),
                starting=pool.starting,
                waiting=sum(key in claim.pools for claim in waiting),
                failures=pool.failures,
            )
            for key, pool in self._pools.items()
        }

    async def close(self) -> None:
        """Refuse new leases, wake everyone who waits with an error, stop free instances. Held ones stop on return."""
        self._closed = True
        for claim in self._queue.in_order():
            self._queue.discard(claim)
            claim.error = ResourceError("the resource engine closed while this rollout waited for its resources")
            claim.decided.set()
        for pool in self._pools.values():
            await pool.drain()
        while self._chores:
            await asyncio.gather(*self._chores)

    def _pool(self, spec: ResourceSpec[Any]) -> Pool[Any]:
        key = spec.key
        if key not in self._pools:
            self._pools[key] = Pool(spec)
        return self._pools[key]

    async def _obtain(self, claim: Claim, deadline_s: float | None) -> None:
        try:
            async with asyncio.timeout(deadline_s) as scope:
                self._queue.push(claim)
                self._dispatch()
                await claim.decided.wait()
                if claim.error is not None:
                    raise claim.error
                await self._start(claim)
        except TimeoutError:
            if not scope.expired():
                raise
            raise self._too_late(claim, deadline_s or 0.0) from None

    async def _start(self, claim: Claim) -> None:
        # Exceptions are gathered, not raised at once: every start must have ended before its place is given back.
        starts = [claim.pools[lease.spec.key].start(lease) for lease in claim.leases]
        for outcome in await asyncio.gather(*starts, return_exceptions=True):
            if isinstance(outcome, BaseException):
                raise outcome

    def _dispatch(self) -> None:
        blocked: set[str] = set()
        for claim in self._queue.in_order():
            if blocked.isdisjoint(claim.pools) and all(pool.room for pool in claim.pools.values()):
                self._queue.serve(claim)
                claim.leases = [pool.reserve(claim.holder) for pool in claim.pools.values()]
                claim.decided.set()
            else:
                blocked.update(claim.pools)

    def _give_back(self, lease: Lease[Any], used: bool) -> None:
        pool = self._pools[lease.spec.key]
        if pool.give_back(lease):
            chore = asyncio.get_running_loop().create_task(self._tidy(pool, lease.instance, used))
            self._chores.add(chore)
            chore.add_done_callback(self._chores.discard)

    async def _tidy(self, pool: Pool[Any], instance: Any, used: bool) -> None:
        await pool.tidy(instance, used=used, keep=not self._closed)
        self._dispatch()

    def _too_late(self, claim: Claim, waited_s: float) -> LeaseTimeout:
        missing = [pool for pool in claim.pools.values() if not claim.leases and not pool.room]
        unstarted = [claim.pools[lease.spec.key] for lease in claim.leases if not lease.started]
        pool = (missing or unstarted or list(claim.pools.values()))[0]
        return LeaseTimeout(
            f"no {pool.spec.label!r} within {waited_s:g} s ({pool.leased} leased, {pool.starting} starting, capacity "
            f"{pool.spec.capacity}); raise its capacity or lower rollouts.max_concurrent"
        )
