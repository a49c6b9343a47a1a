from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from sortie.agents.react import ReAct
from sortie.agents.tool import tool
from sortie.context.limits import LimitReached, Limits
from sortie.context.run_context import Done, RunContext
from sortie.core.errors import EnvError, ResourceError
from sortie.core.messages import Message, ToolCall, assistant, system, user
from sortie.core.task import Task
from sortie.core.trajectory import StopReason
from toy import END, toy_context


def call(name: str, **arguments: Any) -> ToolCall:
    return ToolCall(name=name, arguments=arguments)


@tool(inline=True)
def double(x: int) -> int:
    """Double a number."""
    return 2 * x


async def run(ctx: RunContext, agent: ReAct | None = None) -> RunContext:
    await (agent or ReAct()).run(ctx.task, ctx)
    return ctx


def observations(ctx: RunContext) -> list[str]:
    return [m.content for m in ctx.main.messages if m.role == "tool"]


async def test_it_acts_observes_and_answers() -> None:
    ctx = await run(toy_context([assistant("let me see", call("double", x=21)), "42"], tools=[double]))
    assert [m.role for m in ctx.main.messages] == ["user", "assistant", "tool", "assistant"]
    assert observations(ctx) == ["42"], "a message with text and a call runs the call"
    assert (ctx.trajectory.answer, ctx.trajectory.stop_reason) == ("42", StopReason.ANSWERED)
    (record,) = ctx.trajectory.tools
    assert (record.name, record.arguments, record.output, record.error) == ("double", {"x": 21}, "42", False)


async def test_calls_of_one_turn_run_concurrently_and_answer_in_call_order() -> None:
    """Two tools that each wait for the other: serially, they would wait for ever. The first call ends last."""
    meeting, second_ended = asyncio.Barrier(2), asyncio.Event()

    @tool
    async def slow() -> str:
        """Wait."""
        await meeting.wait()
        await second_ended.wait()
        return "slow"

    @tool
    async def fast() -> str:
        """Wait."""
        await meeting.wait()
        second_ended.set()
        return "fast"

    ctx = toy_context([assistant("", call("slow"), call("fast")), "done"], tools=[slow, fast])
    await asyncio.wait_for(run(ctx), 10)
    assert observations(ctx) == ["slow", "fast"]
    assert [record.output for record in ctx.trajectory.tools] == ["slow", "fast"]


async def test_an_unreadable_call_is_an_observation_and_valid_ones_beside_it_run() -> None:
    """Pain C1, C2, C3."""
    broken = '<tool_call>{"name": "double", "arguments": {"x": }}</tool_call>'
    fine = '<tool_call>{"name": "double", "arguments": {"x": 2}}</tool_call>'
    ctx = await run(toy_context([broken + fine, "4"], tools=[double]))
    first, second = observations(ctx)
    assert first.startswith("error: this tool call could not be read: ")
    assert second == "4"
    assert ctx.trajectory.parse_errors == 1
    assert len(ctx.trajectory.tools) == 1, "what was never run is not recorded as run"


async def test_an_unknown_tool_is_an_observation_that_lists_the_right_ones() -> None:
    """Pain C5: a hallucinated tool never runs."""
    ctx = await run(toy_context([assistant("", call("rm", path="/")), "ok"], tools=[double]))
    assert observations(ctx) == ["error: there is no tool 'rm'; there is: double"]
    assert [record.error for record in ctx.trajectory.tools] == [True]


@pytest.mark.parametrize("text", ["__import__('os').abort()", '<tool_call>__import__("os").abort()</tool_call>'])
async def test_what_a_model_writes_is_never_evaluated(text: str) -> None:
    """Pain C4: a hostile call; were it evaluated, this process would be gone."""
    ctx = await run(toy_context([text, "ok"], tools=[double]))
    assert ctx.trajectory.stop_reason is StopReason.ANSWERED


@pytest.mark.parametrize("text", ["plain", "I call <tool_call>{}</tool_call>", '{"name": "rm", "arguments": {}}', "{"])
async def test_training_and_evaluation_read_the_same_message_from_the_same_ids(text: str) -> None:
    """Pain C5: one parser, whatever the temperature."""
    messages = []
    for temperature in (1.0, 0.0):
        ctx = toy_context(lambda request: [*map(ord, text), END], tools=[double])
        ctx.sampling = type(ctx.sampling)(
            client=ctx.sampling.client, renderer=ctx.sampling.renderer, key=ctx.sampling.key, temperature=temperature
        )
        messages.append(await ctx.sample([user("go")]))
        (node,) = [node for node in ctx.trajectory.nodes if node.kind == "sampled"]
        assert messages[-1] == ctx.sampling.renderer.parse(node.token_ids)
    assert messages[0] == messages[1]


async def test_the_last_turns_calls_still_run_before_the_turn_limit() -> None:
    """State that a tool changes is graded: a call that was made counts."""
    ctx = toy_context([assistant("", call("double", x=1))] * 2, tools=[double])
    with pytest.raises(LimitReached) as caught:
        await run(ctx, ReAct(max_turns=2))
    assert caught.value.reason is StopReason.TURN_LIMIT
    assert [record.output for record in ctx.trajectory.tools] == ["2", "2"]


async def test_a_tool_may_end_the_rollout() -> None:
    """Pain B1: no limit is checked once it is done."""

    @tool(inline=True)
    def submit(ctx: RunContext, answer: str) -> str:
        """Hand in the answer."""
        ctx.finish(answer)
        return "thank you"

    ctx = await run(toy_context([assistant("", call("submit", answer="7"))], tools=[submit]), ReAct(max_turns=1))
    assert (ctx.trajectory.answer, ctx.trajectory.stop_reason) == ("7", StopReason.ANSWERED)


async def test_an_environment_that_responds_has_the_next_word() -> None:
    async def respond(ctx: RunContext, message: Message) -> str | Done | None:
        return "warmer" if message.content == "1" else Done("two")

    ctx = await run(toy_context(["1", "2"], respond=respond))
    assert [m.content for m in ctx.main.messages] == ["question", "1", "warmer", "2"]
    assert (ctx.trajectory.answer, ctx.trajectory.stop_reason) == ("two", StopReason.ENV_DONE)


async def test_done_without_an_answer_keeps_what_the_agent_wrote_and_none_ends_as_answered() -> None:
    ctx = await run(toy_context(["1"], respond=lambda ctx, message: Done()))
    assert (ctx.trajectory.answer, ctx.trajectory.stop_reason) == ("1", StopReason.ENV_DONE)
    ctx = await run(toy_context(["1"], respond=lambda ctx, message: None))
    assert (ctx.trajectory.answer, ctx.trajectory.stop_reason) == ("1", StopReason.ANSWERED)


async def test_a_respond_that_raises_is_the_environments_error() -> None:
    def respond(ctx: RunContext, message: Message) -> str:
        raise KeyError("user")

    with pytest.raises(EnvError, match="respond of environment 'toy' raised KeyError"):
        await run(toy_context(["1"], respond=respond))


async def test_an_infrastructure_failure_cancels_the_other_calls_of_its_turn() -> None:
    cancelled = asyncio.Event()

    @tool
    async def waits() -> str:
        """Wait."""
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()
        raise AssertionError

    @tool
    async def breaks() -> str:
        """Break."""
        raise ResourceError("sandbox gone")

    ctx = toy_context([assistant("", call("waits"), call("breaks"))], tools=[waits, breaks])
    with pytest.raises(ResourceError, match="sandbox gone"):
        await run(ctx)
    assert cancelled.is_set()
    assert [record.name for record in ctx.trajectory.tools] == ["waits", "breaks"]


SHOT = (user("1+1?"), assistant("", call("double", x=1)), assistant("2"))


async def test_it_opens_with_system_message_examples_and_task_in_that_order() -> None:
    ctx = toy_context(system="from the environment", examples=[SHOT])
    assert ReAct().opening(ctx.task, ctx) == [system("from the environment"), *SHOT, user("question")]
    own = ReAct(system="own", examples=((user("a"), assistant("b")),))
    assert own.opening(ctx.task, ctx) == [system("own"), user("a"), assistant("b"), user("question")]
    assert ReAct().opening(ctx.task, toy_context()) == [user("question")]


async def test_a_system_message_of_the_task_takes_the_place_of_the_environments() -> None:
    ctx = toy_context(system="ours", examples=[SHOT])
    task = Task(env="toy", prompt=(system("the task's"), user("go on")))
    assert ReAct().opening(task, ctx) == [system("the task's"), *SHOT, user("go on")]


async def test_a_cut_turn_ends_it_with_the_limits_name() -> None:
    ctx = toy_context(["a long answer"], limits=Limits(turn_tokens=3))
    with pytest.raises(LimitReached) as caught:
        await run(ctx)
    assert caught.value.reason is StopReason.TURN_TOKENS
    assert ctx.trajectory.answer is None


def test_react_is_a_configuration() -> None:
    assert json.loads(ReAct(max_turns=2).model_dump_json())["max_turns"] == 2
    with pytest.raises(ValueError, match="max_turn"):
        ReAct(max_turn=2)  # type: ignore[call-arg]
