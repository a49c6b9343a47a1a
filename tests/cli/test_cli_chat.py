"""A person talks to an agent whose tools are real."""

from __future__ import annotations

from collections.abc import Sequence

import sortie
from sortie.cli.chat import Talkative, Talker
from sortie.core.messages import Message, ToolCall
from sortie.core.trajectory import StopReason, Trajectory
from sortie.inference.renderers.messages import MessageRenderer


@sortie.tool(inline=True)
def shout(text: str) -> str:
    """Say `text` in capitals."""
    return text.upper()


ENV = sortie.Env("echo", tasks=[{"prompt": "never shown"}], tools=[shout], system="Be brief.")


async def talk(
    lines: Sequence[str], replies: Sequence[Message], limits: sortie.Limits | None = None
) -> tuple[Trajectory, list[str], sortie.ScriptedClient]:
    """What is on record, what the person read, and what the model was asked."""
    waiting, read = iter(lines), list[str]()

    def ask(prompt: str) -> str:
        try:
            return next(waiting)
        except StopIteration:
            raise EOFError from None

    renderer = MessageRenderer()
    client = sortie.ScriptedClient.from_texts(renderer, replies)
    engine = sortie.RolloutEngine(client, renderer, limits=limits)
    trajectory = await engine.run_one(Talkative.of(ENV, Talker(ask, read.append)), ENV.tasks("train")[0])
    return trajectory, read, client


async def test_the_agent_hears_the_person_in_place_of_the_task() -> None:
    trajectory, read, client = await talk(["hello"], [sortie.assistant("hi")])
    messages, tools = MessageRenderer().unpack(client.requests[0].prompt)
    assert [message["content"] for message in messages] == ["Be brief.", "hello"]
    assert [tool["function"]["name"] for tool in tools] == ["shout"]
    assert read == ["agent> hi", ""]
    assert trajectory.stop_reason is StopReason.ANSWERED


async def test_tool_calls_are_executed_and_shown() -> None:
    call = ToolCall(name="shout", arguments={"text": "hey"})
    _, read, _ = await talk(["louder"], [sortie.assistant("", call), sortie.assistant("done")])
    assert read == ["  calls shout(text='hey')", "  gets  HEY", "agent> done", ""]


async def test_an_agent_that_only_calls_tools_must_listen_again() -> None:
    call = ToolCall(name="shout", arguments={"text": "x"})
    _, read, client = await talk(["go"], [sortie.assistant("", call)] * 20)
    assert len(client.requests) == 8
    assert read[-1] == ""


async def test_a_turn_that_is_cut_is_shown_and_the_talk_goes_on() -> None:
    limits = sortie.Limits(turn_tokens=20, rollout_tokens=10**6)
    long, short = sortie.assistant("blah " * 100), sortie.assistant("ok")
    _, read, _ = await talk(["a", "b"], [long, short], limits)
    assert read[0].endswith(" (cut)")
    assert read[1:] == ["agent> ok", ""]


async def test_a_full_window_ends_the_talk_and_says_so() -> None:
    limits = sortie.Limits(window=150, turn_tokens=20)
    trajectory, read, _ = await talk(["word " * 200], [], limits)
    assert read == ["(the conversation fills the model's window: start a new one)"]
    assert trajectory.stop_reason is StopReason.WINDOW
