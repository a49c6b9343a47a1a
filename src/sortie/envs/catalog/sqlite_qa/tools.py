"""The database as a model sees it. Docstrings are short: each of their tokens is in every prompt.

All run on the event loop: SQLite ties a connection to its thread, and a query's work is bounded.
"""

from __future__ import annotations

from sortie.agents.tool import tool
from sortie.context.run_context import RunContext
from sortie.core.errors import ToolError
from sortie.envs.catalog.sqlite_qa.database import run


@tool(name="list", inline=True)
def list_tables(ctx: RunContext) -> str:
    """List tables."""
    return ", ".join(ctx.task.data["db"])


@tool(inline=True)
def describe(ctx: RunContext, table: str) -> str:
    """List columns."""
    tables = ctx.task.data["db"]
    if table not in tables:
        raise ToolError(f"no table {table[:20]!r}; there are: {', '.join(tables)}")
    return ", ".join(tables[table]["columns"])


@tool(inline=True)
def query(ctx: RunContext, sql: str) -> str:
    """Run a select."""
    return run(ctx.state, sql)


TOOLS = (list_tables, describe, query)
