"""The working directory as a model sees it. Docstrings are short: each of their tokens is in every prompt."""

from __future__ import annotations

from sortie.agents.tool import tool
from sortie.context.run_context import RunContext
from sortie.envs.catalog.filesystem.tree import Tree

OK = "ok"


@tool
async def ls(ctx: RunContext, dir: str = "") -> str:
    """List."""
    return " ".join(await _tree(ctx).entries(dir))


@tool
async def read(ctx: RunContext, path: str) -> str:
    """Read."""
    return await _tree(ctx).read(path)


@tool
async def write(ctx: RunContext, path: str, text: str) -> str:
    """Write."""
    await _tree(ctx).write(path, text)
    return OK


@tool
async def mv(ctx: RunContext, path: str, to: str) -> str:
    """Move."""
    await _tree(ctx).move(path, to)
    return OK


@tool
async def rm(ctx: RunContext, path: str) -> str:
    """Delete."""
    await _tree(ctx).delete(path)
    return OK


TOOLS = (ls, read, write, mv, rm)


def _tree(ctx: RunContext) -> Tree:
    tree: Tree = ctx.state
    return tree
