"""Chat messages and tool calls, as data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Role = Literal["system", "user", "assistant", "tool"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """One call the model wrote. A malformed call keeps `error` and reaches the model as an observation."""

    name: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    id: str = ""
    """Unique within one message; empty where the wire format has none."""
    error: str | None = None
    """Why the text could not be read as a call; None for a well-formed one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One message of a conversation. For role 'tool', `name` is the tool and `tool_call_id` the call it answers."""

    role: Role
    content: str
    tool_calls: tuple[ToolCall, ...] = ()
    name: str | None = None
    tool_call_id: str | None = None
    thinking: str | None = None
    """Reasoning text that the chat template keeps apart from `content`."""


def system(content: str) -> Message:
    """A system message."""
    return Message(role="system", content=content)


def user(content: str) -> Message:
    """A user message."""
    return Message(role="user", content=content)


def assistant(content: str = "", *calls: ToolCall) -> Message:
    """An assistant message, with its tool calls."""
    return Message(role="assistant", content=content, tool_calls=calls)


def tool_result(content: str, name: str, call_id: str | None = None) -> Message:
    """What a tool returned, as the model will read it."""
    return Message(role="tool", content=content, name=name, tool_call_id=call_id)


def message_to_dict(message: Message) -> dict[str, Any]:
    """The message in the OpenAI chat shape; absent fields are left out."""
    out: dict[str, Any] = {"role": message.role, "content": message.content}
    if message.tool_calls:
        out["tool_calls"] = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": dict(call.arguments)}}
            for call in message.tool_calls
        ]
    for key in ("name", "tool_call_id", "thinking"):
        value = getattr(message, key)
        if value is not None:
            out[key] = value
    return out


def message_from_dict(data: Mapping[str, Any]) -> Message:
    """The inverse of `message_to_dict`."""
    calls = tuple(
        ToolCall(id=c.get("id", ""), name=c["function"]["name"], arguments=c["function"]["arguments"])
        for c in data.get("tool_calls", ())
    )
    return Message(
        role=data["role"],
        content=data.get("content") or "",
        tool_calls=calls,
        name=data.get("name"),
        tool_call_id=data.get("tool_call_id"),
        thinking=data.get("thinking"),
    )
