"""The state behind the shop's tools."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from sortie.context.run_context import RunContext
from sortie.core.errors import ToolError
from sortie.core.task import Task

SHOP, DEPOT = PLACES = ("shop", "depot")


@dataclass(slots=True)
class Inventory:
    """What lies in shop and depot, what was reserved and ordered. A call that is refused changes nothing."""

    stock: dict[str, dict[str, int]]
    """Pieces by item and place."""
    reserved: dict[str, int] = field(default_factory=dict)
    """Pieces promised to customers; they stay in the shop."""
    ordered: dict[str, int] = field(default_factory=dict)
    """Pieces on their way from the supplier."""

    @classmethod
    def of(cls, stock: Mapping[str, Mapping[str, int]]) -> Inventory:
        """An inventory with a stock of its own, equal to this one."""
        return cls({item: dict(places) for item, places in stock.items()})

    def at(self, item: str) -> dict[str, int]:
        """Pieces of an item by place.

        Raises: ToolError naming the items there are.
        """
        if item not in self.stock:
            raise ToolError(f"no item {item!r}; there are: {', '.join(self.stock)}")
        return self.stock[item]

    def reserve(self, item: str, n: int) -> None:
        """Raises: ToolError if fewer than n are free in the shop."""
        free = self.at(item)[SHOP] - self.reserved.get(item, 0)
        _check(n, free, f"{item} are free in the shop")
        self.reserved[item] = self.reserved.get(item, 0) + n

    def move(self, item: str, n: int) -> None:
        """From depot to shop. Raises: ToolError if the depot has fewer than n."""
        places = self.at(item)
        _check(n, places[DEPOT], f"{item} are in the depot")
        places[DEPOT] -= n
        places[SHOP] += n

    def order(self, item: str, n: int) -> None:
        """Raises: ToolError if there is no such item or n is not positive."""
        self.at(item)
        _check(n)
        self.ordered[item] = self.ordered.get(item, 0) + n

    def snapshot(self) -> dict[str, Any]:
        """The whole state as plain data."""
        return {"stock": Inventory.of(self.stock).stock, "reserved": dict(self.reserved), "ordered": dict(self.ordered)}


def _check(n: int, most: int | None = None, what: str = "") -> None:
    if n < 1:
        raise ToolError("n must be at least 1")
    if most is not None and n > most:
        raise ToolError(f"only {most} {what}")


@contextmanager
def opened(task: Task, ctx: RunContext) -> Iterator[Inventory]:
    """The inventory as the task starts it, one per rollout."""
    yield Inventory.of(task.data["stock"])
