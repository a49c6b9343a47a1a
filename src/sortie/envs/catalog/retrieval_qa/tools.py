"""The corpus as a model sees it. Docstrings are short: each of their tokens is in every prompt."""

from __future__ import annotations

from sortie.agents.tool import tool
from sortie.context.run_context import RunContext
from sortie.envs.catalog.retrieval_qa.library import Library


@tool(inline=True)
def search(ctx: RunContext, words: str) -> str:
    """Find documents."""
    return "\n".join(f"{n} {title}" for n, title in _library(ctx).search(words)) or "nothing found"


@tool(inline=True)
def read(ctx: RunContext, n: int) -> str:
    """Read document n."""
    return _library(ctx).read(n)


TOOLS = (search, read)


def _library(ctx: RunContext) -> Library:
    library: Library = ctx.state
    return library
