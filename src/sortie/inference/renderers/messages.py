"""Conversations as ids for models that take messages, not tokens: a chat server being evaluated.

Each message is one line of JSON. Three UTF-8 bytes make one id, near the length of a real token, so that limits
counted in ids keep about their meaning. The client decodes a prompt back into the messages and tools it holds. Rows
made of these ids are never trained: such a server gives no logprobs of them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from sortie.core.messages import Message, ToolCall, message_to_dict
from sortie.core.tool_schema import ToolSchema
from sortie.inference.renderers.parsing import parse_text, read_call, well_formed

_WIDTH = 3
_PAD = b"\0"  # JSON text never holds it


class MessageRenderer:
    """A Renderer whose ids are packed JSON. Everything round-trips exactly."""

    name = "messages"
    stop_ids: tuple[int, ...] = ()

    def encode(self, text: str) -> list[int]:
        """Ids of any text without NUL characters."""
        data = text.encode()
        data += _PAD * (-len(data) % _WIDTH)
        return [int.from_bytes(data[i : i + _WIDTH], "big") for i in range(0, len(data), _WIDTH)]

    def decode(self, token_ids: Sequence[int]) -> str:
        """The inverse of `encode`, for any concatenation of its results."""
        data = b"".join(token.to_bytes(_WIDTH, "big") for token in token_ids)
        return data.replace(_PAD, b"").decode(errors="replace")

    def render(
        self, messages: Sequence[Message], tools: Sequence[ToolSchema] = (), *, generate: bool = True
    ) -> list[int]:
        """One line for the tools, one for each message; a chat server opens the next turn itself."""
        lines = [{"tools": [tool.to_openai() for tool in tools]}] if tools else []
        return self._lines([*lines, *map(_to_wire, messages)])

    def extend(
        self,
        history: Sequence[Message],
        sampled: Sequence[int],
        new: Sequence[Message],
        tools: Sequence[ToolSchema] = (),
    ) -> list[int]:
        """The lines of `new`; a sampled line is always complete."""
        return self._lines(list(map(_to_wire, new)))

    def spell(self, message: Message) -> list[int]:
        """The line that a server's answer of `message` becomes."""
        return self.spell_wire(_to_wire(message))

    def spell_wire(self, message: Mapping[str, Any]) -> list[int]:
        """The line of one message in the OpenAI shape."""
        return self._lines([message])

    def parse(self, sampled: Sequence[int]) -> Message:
        """The answer in `sampled`: the server's own calls, or calls that its model wrote as text."""
        text = self.decode(sampled)
        try:
            wire = json.loads(text)
        except ValueError:
            return parse_text(text)
        if not isinstance(wire, dict) or wire.get("role") != "assistant":
            return parse_text(text)  # not a line of ours: a scripted text
        content, calls = wire.get("content") or "", wire.get("tool_calls") or ()
        if not calls:
            return parse_text(content)
        return Message(role="assistant", content=content, tool_calls=tuple(map(_read, calls)))

    def unpack(self, prompt: Sequence[int]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        """`(messages, tools)` in the OpenAI shape, as the ids of a prompt hold them."""
        lines = [json.loads(line) for line in self.decode(prompt).splitlines()]
        tools = lines.pop(0)["tools"] if lines and "tools" in lines[0] else []
        return _with_ids(lines), tools

    def _lines(self, values: Sequence[Mapping[str, Any]]) -> list[int]:
        # ASCII JSON: no character that splitlines() knows beside our own line break.
        return [token for value in values for token in self.encode(json.dumps(value) + "\n")]


def _to_wire(message: Message) -> dict[str, Any]:
    out = message_to_dict(replace(message, tool_calls=tuple(well_formed(message))))
    out.pop("thinking", None)
    for call in out.get("tool_calls", ()):
        call["function"]["arguments"] = json.dumps(call["function"]["arguments"])
    if message.role != "tool":
        out.pop("tool_call_id", None)
    return out


def _read(wire: Mapping[str, Any]) -> ToolCall:
    function = wire.get("function") or {}
    return read_call(function.get("name"), function.get("arguments", ""), id=wire.get("id") or "")


def _with_ids(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Gives ids to calls and results that have none, in order; a result that answers no call becomes a user's text."""
    waiting: list[str] = []
    for number, message in enumerate(messages):
        if message["role"] == "tool":
            answers = message.get("tool_call_id") or next(iter(waiting), None)
            if answers in waiting:
                waiting.remove(answers)
                message["tool_call_id"] = answers
            else:  # the call was written as text, or could not be read
                content = f"<tool_response>{message['content']}</tool_response>"
                messages[number] = {"role": "user", "content": content}
        else:
            waiting = []
            for i, call in enumerate(message.get("tool_calls") or ()):
                call["id"] = call.get("id") or f"call_{number}_{i}"
                waiting.append(call["id"])
    return messages
