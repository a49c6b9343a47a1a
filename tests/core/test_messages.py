"""Messages as data."""

from __future__ import annotations

from sortie.core.messages import ToolCall, assistant, message_from_dict, message_to_dict, system, tool_result, user


def test_messages_come_back_from_the_openai_shape() -> None:
    call = ToolCall(name="calc", arguments={"x": 1}, id="c1")
    for message in (system("s"), user("u"), assistant("a", call), tool_result("4", "calc", "c1")):
        assert message_from_dict(message_to_dict(message)) == message


def test_absent_fields_are_left_out() -> None:
    assert message_to_dict(user("hi")) == {"role": "user", "content": "hi"}
