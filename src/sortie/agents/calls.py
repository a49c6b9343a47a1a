"""Carry out the tool calls of one turn."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence

from sortie.context.run_context import RunContext
from sortie.context.tools import ToolOutcome
from sortie.core.messages import Message, ToolCall, tool_result
from sortie.core.trajectory import ToolRecord


async def run_calls(ctx: RunContext, calls: Sequence[ToolCall]) -> list[Message]:
    """Run the calls concurrently; one observation each, in the order of the calls, whatever went wrong.

    Raises: the first infrastructure error of any call, the others being cancelled.
    """
    try:
        async with asyncio.TaskGroup() as scope:
            tasks = [scope.create_task(_run_call(ctx, call)) for call in calls]
    except BaseExceptionGroup as errors:
        raise _first(errors) from None
    return [task.result() for task in tasks]


async def _run_call(ctx: RunContext, call: ToolCall) -> Message:
    if call.error is not None:
        text = f"error: this tool call could not be read: {call.error}"
        return tool_result(text, call.name or "unknown", call.id or None)
    # On record before it runs, so that a call which never comes back is seen, and in call order.
    record = ToolRecord(name=call.name, arguments=dict(call.arguments), output="", error=True)
    ctx.trajectory.tools.append(record)
    started = time.monotonic()
    try:
        outcome = await _outcome(ctx, call)
        record.output, record.error = outcome.text, outcome.error
    finally:
        record.seconds = time.monotonic() - started
    return tool_result(outcome.text, call.name, call.id or None)


async def _outcome(ctx: RunContext, call: ToolCall) -> ToolOutcome:
    tool = ctx.tools.get(call.name)
    if tool is None:
        known = ", ".join(ctx.tools) or "none"
        return ToolOutcome(f"error: there is no tool {call.name!r}; there is: {known}", error=True)
    return await tool.call(ctx, call.arguments)


def _first(errors: BaseExceptionGroup[BaseException]) -> BaseException:
    error: BaseException = errors
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
