"""A model family small enough to read: one token per character, one per role. Shared by the tests of several layers."""

from __future__ import annotations

import json
from collections.abc import Sequence

from sortie.core.errors import PrefixBreak
from sortie.core.messages import Message
from sortie.core.tool_schema import ToolSchema
from sortie.inference.renderers.parsing import parse_text

END = 1
NEWLINE = 10
ROLES = {"system": 2, "user": 3, "assistant": 4, "tool": 5}
_FIRST_CHARACTER = 9


class ToyRenderer:
    """`<role>text<end>\\n` per message. `breaks_at` names a message count at which history is declared rewritten."""

    stop_ids = (END,)

    def __init__(self, breaks_at: int | None = None) -> None:
        self.breaks_at = breaks_at

    def encode(self, text: str) -> list[int]:
        return [ord(c) for c in text]

    def decode(self, token_ids: Sequence[int]) -> str:
        return "".join(chr(t) if t >= _FIRST_CHARACTER else f"<{t}>" for t in token_ids)

    def render(
        self, messages: Sequence[Message], tools: Sequence[ToolSchema] = (), *, generate: bool = True
    ) -> list[int]:
        ids = self.encode("".join(tool.signature() + "\n" for tool in tools))
        for message in messages:
            ids += [ROLES[message.role], *self._body(message), END, NEWLINE]
        return [*ids, ROLES["assistant"]] if generate else ids

    def extend(
        self,
        history: Sequence[Message],
        sampled: Sequence[int],
        new: Sequence[Message],
        tools: Sequence[ToolSchema] = (),
    ) -> list[int]:
        if self.breaks_at is not None and len(history) >= self.breaks_at:
            raise PrefixBreak("the toy template rewrote history")
        closing = [NEWLINE] if sampled and sampled[-1] == END else [END, NEWLINE]
        return [*closing, *self.render(new)]

    def parse(self, sampled: Sequence[int]) -> Message:
        return parse_text("".join(chr(t) for t in sampled if t >= _FIRST_CHARACTER))

    def spell(self, message: Message) -> list[int]:
        return [*self._body(message), END]

    def _body(self, message: Message) -> list[int]:
        calls = [json.dumps({"name": c.name, "arguments": dict(c.arguments)}) for c in message.tool_calls]
        return self.encode(message.content + "".join(f"<tool_call>{call}</tool_call>" for call in calls))
