"""The book as a model sees it. Docstrings are short: each of their tokens is in every prompt."""

from __future__ import annotations

from sortie.agents.tool import tool
from sortie.context.run_context import RunContext
from sortie.envs.catalog.booking.desk import Desk

OK = "ok"


@tool(inline=True)
def book(ctx: RunContext, name: str, day: str, time: int, n: int) -> str:
    """Book a table for n."""
    _desk(ctx).book(name, day, time, n)
    return OK


@tool(inline=True)
def cancel(ctx: RunContext, name: str) -> str:
    """Cancel it."""
    _desk(ctx).cancel(name)
    return OK


TOOLS = (book, cancel)


def _desk(ctx: RunContext) -> Desk:
    desk: Desk = ctx.state
    return desk
