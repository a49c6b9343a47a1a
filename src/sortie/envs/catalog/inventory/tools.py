"""The shop's API as a model sees it. Docstrings are short: each of their tokens is in every prompt."""

from __future__ import annotations

from typing import Literal

from sortie.agents.tool import tool
from sortie.context.run_context import RunContext
from sortie.envs.catalog.inventory.shop import Shop

OK = "ok"


@tool(inline=True)
def check(ctx: RunContext, item: str) -> str:
    """Stock of an item."""
    return ", ".join(f"{store} {n}" for store, n in _shop(ctx).at(item).items())


@tool(inline=True)
def reserve(ctx: RunContext, item: str, n: int) -> str:
    """Reserve n."""
    _shop(ctx).reserve(item, n)
    return OK


@tool(inline=True)
def move(ctx: RunContext, item: str, n: int, to: Literal["east", "west"]) -> str:
    """Move n to a store."""
    _shop(ctx).move(item, n, to)
    return OK


@tool(inline=True)
def order(ctx: RunContext, item: str, n: int) -> str:
    """Order n more."""
    _shop(ctx).order(item, n)
    return OK


TOOLS = (check, reserve, move, order)


def _shop(ctx: RunContext) -> Shop:
    shop: Shop = ctx.state
    return shop
