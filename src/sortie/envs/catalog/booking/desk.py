"""The book behind the tools, and what it must hold in the end."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from sortie.agents.reward import reward
from sortie.context.run_context import RunContext
from sortie.core.errors import ToolError
from sortie.core.task import Task
from sortie.core.trajectory import Trajectory

DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
TIMES = range(5, 11)
"""Full hours of the evening."""
MOST = 9
"""Guests at one table."""


@dataclass(slots=True)
class Desk:
    """Who comes when. A call that is refused changes nothing."""

    free: Mapping[str, Sequence[int]]
    """Times left on days that are nearly full; on any other day every time is free."""
    booked: dict[str, tuple[str, int, int]] = field(default_factory=dict)
    """(day, time, guests) by name."""
    asked_again: bool = False
    """Whether the guest has said what changed."""

    def book(self, name: str, day: str, time: int, n: int) -> None:
        """Raises: ToolError naming what can be booked instead."""
        if name in self.booked:
            raise ToolError(f"{name} has a table; cancel it first")
        if day not in DAYS:
            raise ToolError(f"no day {day!r}; days: {', '.join(DAYS)}")
        if not 1 <= n <= MOST:
            raise ToolError(f"n must be 1 to {MOST}")
        times = self.free.get(day, TIMES)
        if time not in times:
            raise ToolError(f"full; free: {', '.join(map(str, times))}")
        self.booked[name] = (day, time, n)

    def cancel(self, name: str) -> None:
        """Raises: ToolError if there is nothing to cancel."""
        if self.booked.pop(name, None) is None:
            raise ToolError(f"{name} has no table")


@contextmanager
def opened(task: Task, ctx: RunContext) -> Iterator[Desk]:
    """An empty book, one per rollout."""
    yield Desk(free={day: tuple(times) for day, times in task.data["free"].items()})


@reward(inline=True)
def as_wished(state: Desk, goal: Mapping[str, Sequence[Any]], trajectory: Trajectory) -> float:
    """1 if the agent ended by itself and exactly the wished table is booked, else 0."""
    booked = {name: list(table) for name, table in state.booked.items()}
    wished = {name: list(table) for name, table in goal.items()}
    return float(trajectory.stop_reason.terminated and booked == wished)
