"""Qwen2.5 and Qwen3, as their public chat templates have them, thinking included.

Three habits of thinking, read off the folder's template: `none` (Qwen2.5, the 2507 Instruct models), `optional` (Qwen3:
the model opens its own block, or the prompt holds an empty one when thinking is off) and `always` (the 2507 Thinking
models: the prompt ends with the opening tag).

The templates drop the thinking of earlier turns when a new question comes. By default it is kept, so that prompts only
ever grow; with `history_thinking="strip"` it is dropped, and `extend` raises PrefixBreak where that rewrites history.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from sortie.core.errors import PrefixBreak, UsageError
from sortie.core.messages import Message
from sortie.core.tool_schema import ToolSchema
from sortie.inference.renderers.chatml import ChatML
from sortie.inference.renderers.parsing import parse_text, split_thinking
from sortie.inference.renderers.template import ChatTemplate, default_system
from sortie.models.tokenizer import ChatTokenizer

Habit = Literal["none", "optional", "always"]

EMPTY_BLOCK = "<think>\n\n</think>\n\n"
# The wording below is what these models were trained on.
TOOLS_HEAD = (
    "# Tools\n\nYou may call one or more functions to assist with the user query.\n\n"
    "You are provided with function signatures within <tools></tools> XML tags:\n<tools>"
)
TOOLS_FOOT = (
    "\n</tools>\n\nFor each function call, return a json object with function name and arguments within "
    '<tool_call></tool_call> XML tags:\n<tool_call>\n{"name": <function-name>, "arguments": <args-json-object>}\n'
    "</tool_call>"
)


class QwenRenderer(ChatML):
    """Renderer of the Qwen2.5 and Qwen3 families."""

    name = "qwen"
    call_form = "<tool_call>\n{json}\n</tool_call>"

    def __init__(
        self, tokenizer: ChatTokenizer, *, thinking: bool = True, history_thinking: Literal["keep", "strip"] = "keep"
    ) -> None:
        """`thinking=False` closes the block in the prompt, where the model lets one choose."""
        super().__init__(tokenizer)
        self.habit = _habit(tokenizer.chat_template)
        self.default_system = default_system(tokenizer.chat_template)
        self.history_thinking = history_thinking
        if self.habit == "always" and not thinking:
            raise UsageError("this model always thinks: its prompt opens the block; use thinking=true")
        self.thinking = thinking and self.habit != "none"

    def header(self) -> str:
        """What follows the assistant's role in a prompt."""
        if self.habit == "always":
            return "<think>\n"
        return EMPTY_BLOCK if self.habit == "optional" and not self.thinking else ""

    def system_text(self, given: str | None, tools: Sequence[ToolSchema]) -> str | None:
        """The given text or the family's default, then the tools as JSON lines."""
        text = self.default_system if given is None else given
        if not tools:
            return text
        lines = "".join("\n" + json.dumps(tool.to_openai(), ensure_ascii=False) for tool in tools)
        return ("" if text is None else f"{text}\n\n") + TOOLS_HEAD + lines + TOOLS_FOOT

    def tool_turn(self, results: Sequence[Message]) -> list[int]:
        """Adjacent results share one user turn."""
        return self._turn(
            "user", "\n".join(f"<tool_response>\n{result.content}\n</tool_response>" for result in results)
        )

    def body(self, message: Message) -> str:
        """The turn after the prompt's header: thinking, content, calls."""
        said = super().body(message)
        if self.habit == "always":
            return f"{message.thinking or ''}\n</think>\n\n{said}"
        if message.thinking is None or self.header():
            return said
        return f"<think>\n{message.thinking}\n</think>\n\n{said}"

    def parse(self, sampled: Sequence[int]) -> Message:
        """Thinking is told apart, with its opening tag in the completion or in the prompt."""
        text = self._text(sampled)
        if self.habit == "none" or self.header() == EMPTY_BLOCK:
            return super().parse(sampled)
        thinking, rest = split_thinking(text, opened=self.habit == "always")
        if self.habit == "always":
            thinking = thinking or None  # the block is there whether or not the model used it
        return replace(parse_text(rest), thinking=thinking)

    def extend(
        self,
        history: Sequence[Message],
        sampled: Sequence[int],
        new: Sequence[Message],
        tools: Sequence[ToolSchema] = (),
    ) -> list[int]:
        """As every ChatML family.

        Raises: PrefixBreak if earlier thinking is stripped, some is in `history`, and `new` asks a new question.
        """
        if self.history_thinking == "strip" and any(message.role == "user" for message in new):
            recent = history[_last_question(history) + 1 :]
            if any(m.role == "assistant" and (m.thinking is not None or self.header()) for m in recent):
                raise PrefixBreak("a new question drops the thinking of the turns before it from a Qwen prompt")
        return super().extend(history, sampled, new, tools)

    def _turns(self, messages: Sequence[Message]) -> list[int]:
        if self.history_thinking == "keep":
            return super()._turns(messages)
        question = _last_question(messages)
        ids: list[int] = []
        at = 0
        for i, message in enumerate(messages):
            if message.role == "assistant" and i < question:
                ids += super()._turns(messages[at:i]) + self._turn("assistant", super().body(message))
                at = i + 1
        return ids + super()._turns(messages[at:])


def _last_question(messages: Sequence[Message]) -> int:
    """Index of the last user message; -1: none."""
    return max((i for i, message in enumerate(messages) if message.role == "user"), default=-1)


def _habit(source: str | None) -> Habit:
    if source is None or "<think>" not in source:
        return "none"
    prompt = ChatTemplate(source).render([Message(role="user", content="x")], generate=True)
    return "always" if prompt.endswith("<think>\n") else "optional"
