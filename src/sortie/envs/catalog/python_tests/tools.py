"""Writing the function and trying it, as a model sees them. Docstrings are short: they are in every prompt."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from sortie.agents.tool import tool
from sortie.context.run_context import RunContext
from sortie.core.errors import ToolError
from sortie.core.task import Task
from sortie.envs.catalog.python_tests.judge import SANDBOX

LONGEST = 10_000
"""Characters of a solution."""
SHOWN = 400
"""Characters of output the model gets to read: the last ones, where an error stands."""


@tool(inline=True)
def write(ctx: RunContext, code: str) -> str:
    """Save f."""
    if len(code) > LONGEST:
        raise ToolError(f"the code is longer than {LONGEST} characters")
    versions: list[str] = ctx.state
    versions.append(code)
    return "ok"


@tool(needs=SANDBOX)
async def run(ctx: RunContext, code: str) -> str:
    """Run code after f."""
    if len(code) > LONGEST:
        raise ToolError(f"the code is longer than {LONGEST} characters")
    ran = await ctx.lease(SANDBOX).python("\n".join([*ctx.state[-1:], code]))
    said = f"{ran.output}\n{ran.killed_reason or ''}".strip()
    return said[-SHOWN:] or f"exit code {ran.exit_code}"


TOOLS = (write, run)


@contextmanager
def opened(task: Task, ctx: RunContext) -> Iterator[list[str]]:
    """The versions of the solution, oldest first; one list per rollout."""
    yield []
