"""The shop's API as a model sees it. Docstrings are short: each of their tokens is in every prompt."""

from __future__ import annotations

from sortie.agents.tool import tool
from sortie.context.run_context import RunContext
from sortie.envs.catalog.inventory.shop import Inventory

OK = "ok"


@tool(inline=True)
def check(ctx: RunContext, item: str) -> str:
    """Look up stock."""
    return ", ".join(f"{place} {n}" for place, n in _inventory(ctx).at(item).items())


@tool(inline=True)
def order(ctx: RunContext, item: str, n: int) -> str:
    """Order n more."""
    _inventory(ctx).order(item, n)
    return OK


@tool(inline=True)
def move(ctx: RunContext, item: str, n: int) -> str:
    """Move n from depot to shop."""
    _inventory(ctx).move(item, n)
    return OK


@tool(inline=True)
def reserve(ctx: RunContext, item: str, n: int) -> str:
    """Reserve n."""
    _inventory(ctx).reserve(item, n)
    return OK


TOOLS = (check, order, move, reserve)


def _inventory(ctx: RunContext) -> Inventory:
    inventory: Inventory = ctx.state
    return inventory
