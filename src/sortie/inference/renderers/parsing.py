"""Reads tool calls out of what a model wrote. The one parser of training and evaluation.

A call is `<tool_call>{"name": .., "arguments": {..}}</tool_call>`, or the bare JSON object anywhere in the text. Calls
are JSON literals: nothing is ever evaluated. A malformed call becomes a ToolCall whose `error` says how to write it,
its text stays in the content, and the valid calls beside it are kept. Text without a call is content, unchanged.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import Any

from sortie.core.messages import Message, ToolCall

OPEN, CLOSE = "<tool_call>", "</tool_call>"
FORM = '{"name": "<tool>", "arguments": {...}}'

_START = re.compile(rf"{OPEN}|\{{")
_LOOKS_LIKE_A_CALL = re.compile(r'\{\s*"name"\s*:')
_NAME = re.compile(r'"name"\s*:\s*"([^"\\]{0,200})"')
_BLANK = re.compile(r"\s*")
_CLOSING = re.compile(rf"\s*{CLOSE}")


def parse_text(text: str) -> Message:
    """The assistant message that `text` spells. Never raises."""
    calls: list[ToolCall] = []
    content: list[str] = []
    at = 0
    while start := _START.search(text, at):
        content.append(text[at : start.start()])
        call, end = _tagged(text, start.end()) if start.group() == OPEN else _bare(text, start.start())
        if call is not None:
            calls.append(call)
        if call is None or call.error is not None:
            content.append(text[start.start() : end])
        at = end
    content.append(text[at:])
    if not calls:
        return Message(role="assistant", content=text)
    return Message(role="assistant", content="".join(content).strip(), tool_calls=tuple(calls))


def read_call(name: Any, arguments: Any, *, id: str = "") -> ToolCall:
    """A call from its two fields; `arguments` may be an object, or JSON text of one as the OpenAI wire has it."""
    if not isinstance(name, str) or not name:
        return ToolCall(name="", id=id, error=f'"name" must be the name of a tool: write {FORM}')
    if isinstance(arguments, str):
        try:
            arguments = _literal(arguments, 0)[0] if arguments.strip() else {}
        except ValueError as error:
            return ToolCall(name=name, id=id, error=_fix(name, f"the arguments are not valid JSON ({error})"))
    if not isinstance(arguments, dict):
        kind = type(arguments).__name__
        return ToolCall(name=name, id=id, error=_fix(name, f"the arguments must be one JSON object, not {kind}"))
    try:
        json.dumps([name, arguments], ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return ToolCall(name="", id=id, error=_fix("<tool>", "half of a surrogate pair is not text"))
    return ToolCall(name=name, arguments=arguments, id=id)


def spell_json(call: ToolCall) -> str:
    """The canonical JSON of a call, spaced as chat templates space it."""
    return json.dumps({"name": call.name, "arguments": dict(call.arguments)}, ensure_ascii=False)


def well_formed(message: Message) -> list[ToolCall]:
    """The calls to spell after the content; malformed ones are in the content already."""
    return [call for call in message.tool_calls if call.error is None]


def split_thinking(text: str, *, opened: bool = False) -> tuple[str | None, str]:
    """`(thinking, rest)` of a completion; `opened` says that the prompt ended inside the block.

    Thinking is None where there is no block. An opened block that never closes is all thinking.
    """
    if not opened:
        head = re.match(r"\s*<think>", text)
        if head is None:
            return None, text
        text = text[head.end() :]
    thinking, _, rest = text.partition("</think>")
    return thinking.strip("\n"), rest.lstrip("\n")


def _tagged(text: str, at: int) -> tuple[ToolCall, int]:
    """The call after an opening tag, and where it ends. Something is always wrong or right: never None."""
    start = _BLANK.match(text, at)
    assert start is not None
    try:
        value, end = _literal(text, start.end())
    except ValueError as error:
        end = _boundary(text, at)
        return _malformed(text[at:end], f"not valid JSON ({error})"), end
    closing = _CLOSING.match(text, end)
    end = closing.end() if closing else end
    if isinstance(value, dict) and "name" in value and _arguments_key(value):
        return read_call(value["name"], value[_arguments_key(value) or ""]), end
    return _malformed(text[at:end], 'no object with "name" and "arguments"'), end


def _bare(text: str, at: int) -> tuple[ToolCall | None, int]:
    """The call that starts with the brace at `at`, or None; and where what starts there ends."""
    try:
        value, end = _literal(text, at)
    except ValueError as error:
        end = _next_call(text, at + 1)
        if not _LOOKS_LIKE_A_CALL.match(text, at) or '"arguments"' not in text[at:end]:
            # Every brace of a text nested too deeply would fail the same slow way.
            return None, end if isinstance(error, _TooDeepError) else at + 1
        return _malformed(text[at:end], f"not valid JSON ({error})"), end
    key = _arguments_key(value)
    if key is None or "name" not in value:
        return None, end
    closing = _CLOSING.match(text, end)  # a small model often forgets the opening tag only
    return read_call(value["name"], value[key]), closing.end() if closing else end


def _arguments_key(value: Mapping[str, Any]) -> str | None:
    """`arguments`; or `parameters`, as Llama writes it, where the object holds nothing else (a tool's schema does)."""
    if "arguments" in value:
        return "arguments"
    return "parameters" if value.keys() == {"name", "parameters"} else None


def _boundary(text: str, at: int) -> int:
    """Where a malformed tagged call ends: after its closing tag, before the next opening tag, or with the text."""
    following = text.find(OPEN, at)
    limit = len(text) if following < 0 else following
    close = text.find(CLOSE, at, limit)
    return limit if close < 0 else close + len(CLOSE)


def _next_call(text: str, at: int) -> int:
    """Where a malformed bare call must end: before the next thing that looks like a call, or with the text."""
    ends = [text.find(OPEN, at)] + ([m.start()] if (m := _LOOKS_LIKE_A_CALL.search(text, at)) else [])
    return min((end for end in ends if end >= 0), default=len(text))


def _malformed(text: str, problem: str) -> ToolCall:
    found = _NAME.search(text)
    name = found.group(1) if found else ""
    return ToolCall(name=name, error=_fix(name or "<tool>", problem))


def _fix(name: str, problem: str) -> str:
    return f'{problem}; write {{"name": {json.dumps(name)}, "arguments": {{...}}}} with every quote and brace closed'


def _literal(text: str, at: int) -> tuple[Any, int]:
    """One JSON value at `at`, and where it ends.

    Raises: ValueError, in a few words.
    """
    try:
        return _DECODER.raw_decode(text, at)
    except json.JSONDecodeError as error:
        raise ValueError(f"{error.msg.lower()} at character {error.pos - at}") from None
    except RecursionError:
        raise _TooDeepError("nested too deeply") from None


class _TooDeepError(ValueError):
    """More nesting than Python's JSON reader follows."""


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text} is too large a number")
    return value


def _no_constant(text: str) -> Any:
    raise ValueError(f"{text} is not JSON")


# strict=False: a raw line break inside a string, which small models write in code, has one reading only.
_DECODER = json.JSONDecoder(strict=False, parse_float=_finite, parse_constant=_no_constant)
