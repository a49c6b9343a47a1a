"""ChatML, the turn format that SmolLM2 and Qwen share: `<|im_start|>role\\n...<|im_end|>\\n`.

Control tokens enter as ids and everything else as plain text, so no user or tool can end a turn by spelling a control
token. The text a model continues is encoded apart from the header before it: growing a conversation by sampled tokens
and rendering it whole give the same ids.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar

from sortie.core.errors import UsageError
from sortie.core.messages import Message
from sortie.core.tool_schema import ToolSchema
from sortie.inference.renderers.parsing import parse_text, spell_json, well_formed
from sortie.models.tokenizer import ChatTokenizer


class ChatML(ABC):
    """What the ChatML families have in common. A family gives its system text, call spelling and tool results."""

    name: ClassVar[str]
    call_form: ClassVar[str]
    """How one call is spelled, with `{json}` where the call's JSON goes."""

    def __init__(self, tokenizer: ChatTokenizer) -> None:
        start, end = tokenizer.token_to_id("<|im_start|>"), tokenizer.token_to_id("<|im_end|>")
        if start is None or end is None:
            raise UsageError(
                f"the {self.name!r} renderer needs <|im_start|> and <|im_end|> in the vocabulary; "
                "use renderer 'generic' for this model"
            )
        self.tokenizer = tokenizer
        self._start, self._end = start, end
        self._newline = self.encode("\n")

    @property
    def stop_ids(self) -> tuple[int, ...]:
        """End of turn first, then whatever else the model folder names as an end."""
        return tuple(dict.fromkeys((self._end, *self.tokenizer.eos_ids)))

    def encode(self, text: str) -> list[int]:
        """Ids of plain text; control tokens spelled in it stay text."""
        return self.tokenizer.encode(text, specials=False)

    def decode(self, token_ids: Sequence[int]) -> str:
        """Text of ids, control tokens spelled out."""
        return self.tokenizer.decode(token_ids)

    def render(
        self, messages: Sequence[Message], tools: Sequence[ToolSchema] = (), *, generate: bool = True
    ) -> list[int]:
        """The whole conversation. A leading system message is merged with what the tools need said."""
        leading = bool(messages) and messages[0].role == "system"
        system = self.system_text(messages[0].content if leading else None, tools)
        ids = [] if system is None else self._turn("system", system)
        return ids + self._turns(messages[leading:]) + (self._opening() if generate else [])

    def extend(
        self,
        history: Sequence[Message],
        sampled: Sequence[int],
        new: Sequence[Message],
        tools: Sequence[ToolSchema] = (),
    ) -> list[int]:
        """The rest of the sampled turn (its end token if it was cut, its line break always), `new`, an opening."""
        closed = bool(sampled) and sampled[-1] == self._end
        closing = self._newline if closed else [self._end, *self._newline]
        return closing + self._turns(new) + self._opening()

    def spell(self, message: Message) -> list[int]:
        """The ids a model draws to say `message`, end token included."""
        return [*self.encode(self.body(message)), self._end]

    def parse(self, sampled: Sequence[int]) -> Message:
        """The message that `sampled` spells; never raises."""
        return parse_text(self._text(sampled))

    def body(self, message: Message) -> str:
        """Text of an assistant turn as the model writes it."""
        calls = [self.call_form.format(json=spell_json(call)) for call in well_formed(message)]
        return "\n".join(([message.content] if message.content or not calls else []) + calls)

    @abstractmethod
    def system_text(self, given: str | None, tools: Sequence[ToolSchema]) -> str | None:
        """Content of the system turn; None: no system turn."""

    @abstractmethod
    def tool_turn(self, results: Sequence[Message]) -> list[int]:
        """One run of adjacent tool results."""

    def header(self) -> str:
        """What the prompt puts between the assistant's role and the model's first token."""
        return ""

    def _text(self, sampled: Sequence[int]) -> str:
        ended = bool(sampled) and sampled[-1] in self.stop_ids
        return self.decode(sampled[:-1] if ended else sampled)

    def _turns(self, messages: Sequence[Message]) -> list[int]:
        ids: list[int] = []
        at = 0
        while at < len(messages):
            message, after = messages[at], at + 1
            if message.role == "assistant":
                ids += [*self._opening(), *self.spell(message), *self._newline]
            elif message.role == "tool":
                while after < len(messages) and messages[after].role == "tool":
                    after += 1
                ids += self.tool_turn(messages[at:after])
            else:
                ids += self._turn(message.role, message.content)
            at = after
        return ids

    def _turn(self, role: str, content: str) -> list[int]:
        return [self._start, *self.encode(f"{role}\n{content}"), self._end, *self._newline]

    def _opening(self) -> list[int]:
        return [self._start, *self.encode("assistant\n"), *self.encode(self.header())]
