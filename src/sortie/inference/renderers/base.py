"""The contract between messages and tokens, per model family.

Tokens are the truth: the next prompt is always `previous ids + extend(...)`, never a re-rendering of text. Rendering a
conversation whole and growing it turn by turn give the same ids when the sampled text is spelled canonically.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from sortie.core.messages import Message
from sortie.core.tool_schema import ToolSchema


class Renderer(Protocol):
    """Renders prompts and parses replies of one model family."""

    @property
    def stop_ids(self) -> tuple[int, ...]:
        """Tokens that end an assistant turn."""
        ...

    def encode(self, text: str) -> list[int]:
        """Ids of plain text, without special tokens added around it."""
        ...

    def decode(self, token_ids: Sequence[int]) -> str:
        """Text of ids, special tokens spelled out."""
        ...

    def render(
        self, messages: Sequence[Message], tools: Sequence[ToolSchema] = (), *, generate: bool = True
    ) -> list[int]:
        """The whole conversation; with `generate`, up to and including the opening of the next assistant turn."""
        ...

    def extend(
        self,
        history: Sequence[Message],
        sampled: Sequence[int],
        new: Sequence[Message],
        tools: Sequence[ToolSchema] = (),
    ) -> list[int]:
        """Ids that follow `sampled`: whatever still closes that turn, then `new`, then the next assistant opening.

        `history` is the conversation up to and including the message parsed from `sampled`.
        Raises: PrefixBreak if the template would rewrite what `history` already put into tokens.
        """
        ...

    def parse(self, sampled: Sequence[int]) -> Message:
        """The assistant message that `sampled` spells. A call that cannot be read has its `error` set; never raises."""
        ...

    def spell(self, message: Message) -> list[int]:
        """The ids a model draws to say `message`, spelled canonically and ended: the inverse of `parse`."""
        ...
