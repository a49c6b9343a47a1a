"""Price list, till and money changer as a model sees them. Docstrings are short: each token is in every prompt."""

from __future__ import annotations

from sortie.agents.tool import tool
from sortie.context.run_context import RunContext
from sortie.core.errors import ToolError
from sortie.envs.catalog.checkout.money import Money


@tool(inline=True)
def price(ctx: RunContext, item: str) -> str:
    """Price of one."""
    prices = ctx.task.data["prices"]
    if item not in prices:
        raise ToolError(f"no item {item[:20]!r}; there are: {', '.join(prices)}")
    return str(prices[item])


@tool(inline=True)
def times(amount: str, n: int) -> str:
    """Price of n."""
    return str(Money.of(amount).times(n))


@tool(inline=True)
def plus(a: str, b: str) -> str:
    """Add amounts."""
    return str(Money.of(a).plus(Money.of(b)))


@tool(inline=True)
def change(ctx: RunContext, amount: str, to: str) -> str:
    """Change currency."""
    return str(Money.of(amount).change(to, ctx.task.data["worth"]))


TOOLS = (price, times, plus, change)
