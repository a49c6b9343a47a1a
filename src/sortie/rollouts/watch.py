"""Which rollouts are in flight, and what they are at: so that a run that stands still says where.

While anything is in flight, a timer looks whether a rollout has ended lately; if none has, a warning names the oldest
ones, the phase each is in and what it did last. A rollout that waits for a slot is not in flight.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from sortie.core.trajectory import ToolRecord, Trajectory

log = logging.getLogger("sortie")

STALL_S = 120.0
"""Seconds without an ended rollout after which the oldest in flight are named; then after twice as long, and so on."""
SHOWN = 5
"""Rollouts that one warning lists."""


@dataclass(slots=True, kw_only=True)
class InFlight:
    """One attempt that has begun and not ended."""

    trajectory: Trajectory
    since: float
    """When it began, by the watch's clock."""
    phase: str = "waiting for its leases"
    phase_since: float = 0.0

    def line(self, now: float) -> str:
        """Who it is, where it stands, and what it did last."""
        t = self.trajectory
        attempt = f", attempt {t.attempts}" if t.attempts > 1 else ""
        return (
            f"{t.id} ({t.env}{attempt}): {self.phase} for {now - self.phase_since:.0f} s, "
            f"in flight for {now - self.since:.0f} s; last: {last_event(t)}"
        )


_current: ContextVar[tuple[InFlight, Callable[[], float]] | None] = ContextVar("sortie_in_flight", default=None)


def mark(phase: str) -> None:
    """Say that the rollout this code runs for has entered a phase; outside of a watched rollout, nothing happens."""
    found = _current.get()
    if found is not None:
        flight, clock = found
        flight.phase, flight.phase_since = phase, clock()


def last_event(trajectory: Trajectory) -> str:
    """What its record says last: a tool that has not come back, a tool that has, a turn, or nothing yet."""
    pending = [call.name for call in trajectory.tools if _pending(call)]
    if pending:
        return f"tool {', '.join(pending)} called and not back"
    if not trajectory.turns:
        return "nothing drawn yet"
    done = f"turn {trajectory.turns} drawn"
    return f"{done}, tool {trajectory.tools[-1].name} back" if trajectory.tools else done


def _pending(call: ToolRecord) -> bool:
    """A call goes on record before it runs; its time is entered when it is over, however it ended."""
    return call.seconds == 0.0 and not call.output


class Watch:
    """The rollouts in flight of one engine."""

    def __init__(self, stall_s: float = STALL_S, clock: Callable[[], float] = time.monotonic) -> None:
        self.stall_s = stall_s
        self.ended = 0
        """Attempts that have ended."""
        self._clock = clock
        self._flights: dict[int, InFlight] = {}
        self._quiet_since = clock()
        self._patience = stall_s
        self._timer: asyncio.TimerHandle | None = None

    @contextmanager
    def following(self, trajectory: Trajectory) -> Iterator[None]:
        """Keep an attempt on the list while it runs; `mark` inside, and in tasks started inside, is about it."""
        now = self._clock()
        if not self._flights:
            self._quiet_since = now
        flight = InFlight(trajectory=trajectory, since=now, phase_since=now)
        self._flights[id(flight)] = flight
        self._arm()
        token = _current.set((flight, self._clock))
        try:
            yield
        finally:
            _current.reset(token)
            del self._flights[id(flight)]
            self.ended += 1
            self._quiet_since, self._patience = self._clock(), self.stall_s
            if not self._flights and self._timer is not None:
                self._timer.cancel()
                self._timer = None

    @property
    def in_flight(self) -> list[InFlight]:
        """The oldest first."""
        return sorted(self._flights.values(), key=lambda flight: flight.since)

    def stalled(self) -> list[str]:
        """One line on how long nothing has ended, and one for each of the oldest in flight; empty if all is well."""
        now = self._clock()
        if not self._flights or now - self._quiet_since < self._patience:
            return []
        flights = self.in_flight
        more = [f"and {len(flights) - SHOWN} more"] if len(flights) > SHOWN else []
        head = f"no rollout has ended for {now - self._quiet_since:.0f} s; {len(flights)} in flight, the oldest:"
        return [head, *(flight.line(now) for flight in flights[:SHOWN]), *more]

    def _arm(self) -> None:
        if self._timer is None:
            left = self._quiet_since + self._patience - self._clock()
            self._timer = asyncio.get_running_loop().call_later(max(left, 0.01), self._look)

    def _look(self) -> None:
        self._timer = None
        lines = self.stalled()
        if lines:
            self._patience *= 2
            log.warning("%s", "\n  ".join(lines))
        if self._flights:
            self._arm()
