"""A rollout's own copy of a database, in memory, which an agent can read and do nothing else with.

What a statement may do is decided when it is prepared, by an authorizer that knows what is allowed rather than what is
not. Its work is bounded in steps of SQLite's virtual machine, not in seconds, so that a query ends alike everywhere.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from itertools import count
from typing import Any

from sortie.context.run_context import RunContext
from sortie.core.errors import ToolError
from sortie.core.task import Task

ROWS = 10
"""Rows of a result that are shown."""

CHARACTERS = 300
"""Characters of a result that are shown."""

STEPS = 100_000
"""Steps of the virtual machine that one query may take; a join of two tables takes some hundreds."""

_EVERY = 1000
"""Steps between two looks at the budget."""

_LIMITS = {
    sqlite3.SQLITE_LIMIT_LENGTH: 1000,  # bytes of one value, so that no function can fill the memory
    sqlite3.SQLITE_LIMIT_SQL_LENGTH: 500,
    sqlite3.SQLITE_LIMIT_EXPR_DEPTH: 50,
    sqlite3.SQLITE_LIMIT_COMPOUND_SELECT: 5,
    sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH: 50,
    sqlite3.SQLITE_LIMIT_ATTACHED: 0,
}
_ACTIONS = frozenset({sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ})
_PRAGMAS = frozenset({"table_info"})
# None of these is random, asks the machine for anything, or makes text out of nothing.
# fmt: off
_FUNCTIONS = frozenset({
    "abs", "avg", "coalesce", "count", "group_concat", "ifnull", "length", "like", "lower", "max", "min", "nullif",
    "rank", "round", "row_number", "substr", "sum", "total", "upper",
})
# fmt: on


@contextmanager
def opened(task: Task, ctx: RunContext) -> Iterator[sqlite3.Connection]:
    """The task's database, one per rollout, closed to changes."""
    with closing(sqlite3.connect(":memory:", isolation_level=None, cached_statements=0)) as connection:
        _fill(connection, task.data["db"])
        connection.execute("pragma query_only=on")
        for category, limit in _LIMITS.items():
            connection.setlimit(category, limit)
        connection.set_authorizer(_authorize)
        yield connection


def run(connection: sqlite3.Connection, sql: str) -> str:
    """The first rows of a select, one per line.

    Raises: ToolError telling the model what to write instead.
    """
    ticks = count(1)
    connection.set_progress_handler(lambda: next(ticks) * _EVERY > STEPS, _EVERY)
    try:
        with closing(connection.cursor()) as cursor:
            rows = cursor.execute(sql).fetchmany(ROWS + 1)
            selected = cursor.description is not None
    except (sqlite3.Error, sqlite3.Warning) as error:
        raise ToolError(_said(str(error))) from None
    if not selected:
        raise ToolError("write one select")
    return _shown(rows)


def _fill(connection: sqlite3.Connection, tables: Mapping[str, Any]) -> None:
    for name, table in tables.items():
        connection.execute(f"create table {name} ({', '.join(table['columns'])})")
        marks = ", ".join("?" for _ in table["columns"])
        connection.executemany(f"insert into {name} values ({marks})", table["rows"])


def _authorize(action: int, first: str | None, second: str | None, *_: str | None) -> int:
    allowed = (
        action in _ACTIONS
        or (action == sqlite3.SQLITE_FUNCTION and second in _FUNCTIONS)
        or (action == sqlite3.SQLITE_PRAGMA and first in _PRAGMAS)
    )
    return sqlite3.SQLITE_OK if allowed else sqlite3.SQLITE_DENY


def _said(error: str) -> str:
    if error == "interrupted":
        return "this query is too much work; ask for less"
    return "only a plain select is allowed" if error in ("not authorized", "authorization denied") else error


def _shown(rows: list[tuple[Any, ...]]) -> str:
    lines = [", ".join("null" if cell is None else str(cell) for cell in row) for row in rows[:ROWS]]
    text = "\n".join(lines)
    cut = len(rows) > ROWS or len(text) > CHARACTERS
    return (text[:CHARACTERS] + "\n... there is more" if cut else text) or "no rows"
