"""Ready instances of one spec, counted.

`leased + starting + len(free)` never exceeds the capacity. `starting` counts every place whose instance is on its way
in or out: being started, reset or stopped. A start that fails gives its place back.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any, Generic, TypeVar

from sortie.core.errors import ResourceError, blame
from sortie.resources.lease import Lease
from sortie.resources.spec import ResourceSpec

T = TypeVar("T")
log = logging.getLogger("sortie")

TIDY_SECONDS = 60.0
"""How long a reset or a stop may take before the instance is given up, so that its place is not lost with it."""


class Pool(Generic[T]):
    """Places for instances of one spec. Never waits: the engine decides who gets a place."""

    def __init__(self, spec: ResourceSpec[T]) -> None:
        self.spec = spec
        self.free: list[T] = []
        """Instances ready to be leased."""
        self.leased = 0
        self.starting = 0
        self.failures = 0
        """Starts, resets and stops that raised."""

    @property
    def room(self) -> bool:
        """Whether one more lease can be granted now."""
        return self.leased + self.starting < self.spec.capacity

    def reserve(self, holder: str) -> Lease[T]:
        """Take a place, with a free instance in it if there is one. Only where there is room."""
        assert self.room
        lease = Lease(self.spec, holder)
        if self.free:
            self.leased += 1
            lease.instance, lease.started = self.free.pop(), True
        else:
            self.starting += 1
        return lease

    async def start(self, lease: Lease[T]) -> None:
        """Start the instance of a reserved place, unless it has one.

        Raises: ResourceError if the spec's start raised; the place stays reserved until it is given back.
        """
        if lease.started:
            return
        try:
            with blame(ResourceError, f"starting {self.spec.label}"):
                lease.instance = await self.spec.start()
        except Exception:
            self.failures += 1
            raise
        self.starting -= 1
        self.leased += 1
        lease.started = True

    def give_back(self, lease: Lease[T]) -> bool:
        """End a lease. True: its instance must go through `tidy`, and counts as starting until that is done."""
        if lease.returned:
            raise RuntimeError(f"the lease of {self.spec.label} by {lease.holder} was returned twice")
        lease.returned = True
        if not lease.started:
            self.starting -= 1
            return False
        self.leased -= 1
        self.starting += 1
        return True

    async def tidy(self, instance: Any, *, used: bool, keep: bool) -> None:
        """Make an instance ready for the next lease, or stop it. Failures are logged and counted, not raised."""
        try:
            if keep and (not used or await self._attempt("resetting", self.spec.reset(instance))):
                self.free.append(instance)
            else:
                await self._attempt("stopping", self.spec.stop(instance))
        finally:
            self.starting -= 1

    async def drain(self) -> None:
        """Stop every free instance."""
        while self.free:
            self.starting += 1
            await self.tidy(self.free.pop(), used=True, keep=False)

    async def _attempt(self, what: str, work: Any) -> bool:
        try:
            async with asyncio.timeout(TIDY_SECONDS):
                return bool(await work)
        except Exception as error:  # noqa: BLE001  # the lease is over: there is nobody left to tell but the log
            self.failures += 1
            log.warning("%s %s raised %s: %s", what, self.spec.label, type(error).__name__, error)
            return False
