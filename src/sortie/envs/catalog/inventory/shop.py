"""The state behind the shop's tools."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from sortie.context.run_context import RunContext
from sortie.core.errors import ToolError
from sortie.core.task import Task

STORES = ("east", "west")


@dataclass(slots=True)
class Shop:
    """What two stores hold, and what was reserved and ordered. Every change is all or nothing."""

    stock: dict[str, dict[str, int]]
    """Pieces by item and store."""
    reserved: dict[str, int] = field(default_factory=dict)
    """Pieces promised to customers, out of the stock of both stores."""
    ordered: dict[str, int] = field(default_factory=dict)
    """Pieces on their way from the supplier."""

    @classmethod
    def of(cls, stock: Mapping[str, Mapping[str, int]]) -> Shop:
        """A shop with a stock of its own, equal to this one."""
        return cls({item: dict(stores) for item, stores in stock.items()})

    def at(self, item: str) -> dict[str, int]:
        """Pieces of an item by store.

        Raises: ToolError naming the items there are.
        """
        if item not in self.stock:
            raise ToolError(f"no item {item!r}; there are: {', '.join(self.stock)}")
        return self.stock[item]

    def reserve(self, item: str, n: int) -> None:
        """Raises: ToolError if fewer than n are free."""
        free = sum(self.at(item).values()) - self.reserved.get(item, 0)
        self._check(n, free, f"{item} are free")
        self.reserved[item] = self.reserved.get(item, 0) + n

    def move(self, item: str, n: int, to: str) -> None:
        """Raises: ToolError if the other store has fewer than n."""
        stores, source = self.at(item), _other(to)
        self._check(n, stores[source], f"{item} are in {source}")
        stores[source] -= n
        stores[to] += n

    def order(self, item: str, n: int) -> None:
        """Raises: ToolError if n is not positive."""
        self.at(item)
        self._check(n, None, "")
        self.ordered[item] = self.ordered.get(item, 0) + n

    def snapshot(self) -> dict[str, Any]:
        """The whole state as plain data."""
        return {"stock": Shop.of(self.stock).stock, "reserved": dict(self.reserved), "ordered": dict(self.ordered)}

    def _check(self, n: int, most: int | None, where: str) -> None:
        if n < 1:
            raise ToolError("n must be at least 1")
        if most is not None and n > most:
            raise ToolError(f"only {most} {where}")


@contextmanager
def opened(task: Task, ctx: RunContext) -> Iterator[Shop]:
    """The shop as the task starts it, one per rollout."""
    yield Shop.of(task.data["stock"])


def _other(store: str) -> str:
    return STORES[1 - STORES.index(store)]
