"""Any chat template. What is added to a conversation is the template's own text, after a verified prefix.

A template may rewrite history (drop thinking, move the system text): then the new text does not start with the old,
and PrefixBreak is raised instead of guessing by length. A template may also lose tools or calls, or spell calls in a
way our parser does not read: a probe finds out at start-up.

The template mixes control tokens and content in one text, so a user who spells a control token writes one here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sortie.core.errors import PrefixBreak, UsageError
from sortie.core.messages import Message, ToolCall, assistant, tool_result, user
from sortie.core.tool_schema import ToolSchema
from sortie.inference.renderers.parsing import parse_text, split_thinking
from sortie.inference.renderers.template import ChatTemplate
from sortie.models.tokenizer import ChatTokenizer

_PROBE_TOOL = ToolSchema(
    name="probe_tool",
    description="probe_description",
    parameters={"type": "object", "properties": {"probe_key": {"type": "string"}}, "required": ["probe_key"]},
)
_PROBE_CALL = ToolCall(name="probe_tool", arguments={"probe_key": "probe_value"}, id="probe1234")


class GenericRenderer:
    """Renderer of any folder that has a chat template."""

    name = "generic"

    def __init__(self, tokenizer: ChatTokenizer) -> None:
        """Raises: UsageError if the folder has no template, no end token, or one that the template never writes."""
        if tokenizer.chat_template is None:
            raise UsageError(
                "this model folder has no chat template: give it a chat_template.jinja, or use an -Instruct model"
            )
        self.tokenizer = tokenizer
        self.template = ChatTemplate(
            tokenizer.chat_template, bos_token=tokenizer.bos_token, eos_token=tokenizer.eos_token
        )
        question = [user("x")]
        opening = self.template.render(question, generate=True)
        self._opened = opening.rstrip().endswith("<think>")
        try:
            turn = self._after(opening, self.template.render([*question, assistant("probe_text")], generate=False))
        except PrefixBreak as error:
            raise UsageError(f"the chat template cannot be sampled from turn by turn: {error}") from None
        self._stop = self._find_stop(turn)
        self.tool_problem = self._probe_tools()
        """Why tools cannot be used with this template, in one line; None: they can."""

    @property
    def stop_ids(self) -> tuple[int, ...]:
        """The end token that the template writes first, then what else the folder names as an end."""
        return tuple(dict.fromkeys((self._stop, *self.tokenizer.eos_ids)))

    def encode(self, text: str) -> list[int]:
        """Ids of plain text; control tokens spelled in it stay text."""
        return self.tokenizer.encode(text, specials=False)

    def decode(self, token_ids: Sequence[int]) -> str:
        """Text of ids, control tokens spelled out."""
        return self.tokenizer.decode(token_ids)

    def render(
        self, messages: Sequence[Message], tools: Sequence[ToolSchema] = (), *, generate: bool = True
    ) -> list[int]:
        """The whole conversation, encoded apart where the model's own turns begin.

        Raises: UsageError if tools are wanted and the template cannot carry them, or it refuses the messages.
        """
        if tools:
            self.require_tools()
        text = self.template.render(messages, tools, generate=generate)
        ids: list[int] = []
        at = 0
        for i, message in enumerate(messages):
            if message.role == "assistant":
                opening = self.template.render(messages[:i], tools, generate=True) if i else ""
                if at < len(opening) and text.startswith(opening):
                    ids += self._encode(text[at : len(opening)], ids)
                    at = len(opening)
        return ids + self._encode(text[at:], ids)

    def extend(
        self,
        history: Sequence[Message],
        sampled: Sequence[int],
        new: Sequence[Message],
        tools: Sequence[ToolSchema] = (),
    ) -> list[int]:
        """What the template writes after the sampled turn's text.

        Raises: PrefixBreak if the template renders the history differently now that `new` follows.
        """
        opening = self.template.render(history[:-1], tools, generate=True)
        closed = self.template.render(history, tools, generate=False)
        full = self.template.render([*history, *new], tools, generate=True)
        turn = self._after(opening, closed)
        rest = self._after(closed, full)
        stop = self.decode([self._stop])
        separator = turn.rpartition(stop)[2]
        ended = bool(sampled) and sampled[-1] == self._stop
        return ([] if ended else [self._stop]) + self._encode(separator + rest, [self._stop])

    def spell(self, message: Message) -> list[int]:
        """The ids a model draws to say `message`, end token included."""
        question = [user("x")]
        opening = self.template.render(question, generate=True)
        turn = self._after(opening, self.template.render([*question, message], generate=False))
        stop = self.decode([self._stop])
        return [*self.tokenizer.encode(turn[: turn.rindex(stop)]), self._stop]

    def parse(self, sampled: Sequence[int]) -> Message:
        """The message that `sampled` spells; never raises."""
        ended = bool(sampled) and sampled[-1] in self.stop_ids
        text = self.decode(sampled[:-1] if ended else sampled)
        thinking, rest = split_thinking(text, opened=self._opened)
        return replace(parse_text(rest), thinking=thinking)

    def require_tools(self) -> None:
        """Raises: UsageError if this template cannot carry tools."""
        if self.tool_problem is not None:
            raise UsageError(
                f"this model's chat template cannot be used with tools: {self.tool_problem}; "
                "give the folder another chat_template.jinja or choose a model trained for tools"
            )

    def _encode(self, text: str, before: Sequence[int]) -> list[int]:
        """Ids of `text` where the ids `before` precede it.

        Some tokenizers write the start of a text differently; a control token in front makes it a continuation.
        """
        if not text or not before or before[-1] != self._stop:
            return self.tokenizer.encode(text)
        ids = self.tokenizer.encode(self.decode([self._stop]) + text)
        return ids[1:] if ids[:1] == [self._stop] else self.tokenizer.encode(text)

    def _after(self, old: str, new: str) -> str:
        if not new.startswith(old):
            at = next((i for i, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), min(len(old), len(new)))
            raise PrefixBreak(
                f"the chat template rewrites history: {old[at : at + 40]!r} became {new[at : at + 40]!r} "
                f"at character {at}"
            )
        return new[len(old) :]

    def _find_stop(self, turn: str) -> int:
        """The end token that the template writes after an assistant's text."""
        tail = turn.partition("probe_text")[2]
        ends = [token for token in self.tokenizer.encode(tail) if token in self.tokenizer.eos_ids]
        if not ends:
            raise UsageError(
                f"the chat template ends an assistant turn with {tail!r}, which holds none of the folder's end tokens: "
                "set eos_token_id in its generation_config.json"
            )
        return ends[0]

    def _probe_tools(self) -> str | None:
        """Renders tools, a call and its result, and looks for each in the text."""
        asked, call = user("x"), assistant("", _PROBE_CALL)
        result = tool_result("probe_result", name="probe_tool", call_id=_PROBE_CALL.id)
        try:
            prompt = self.template.render([asked], [_PROBE_TOOL], generate=True)
            called = self.template.render([asked, call], [_PROBE_TOOL], generate=False)
            answered = self.template.render([asked, call, result], [_PROBE_TOOL], generate=True)
            spelled = self.spell(call)
        except (UsageError, PrefixBreak, ValueError) as error:
            return str(error)
        if any(word not in prompt for word in ("probe_tool", "probe_key")):
            return "it leaves the tools out of the prompt"
        if "probe_value" not in called:
            return "it leaves the assistant's calls out of the history"
        if "probe_result" not in answered:
            return "it leaves tool results out of the history"
        read = self.parse(spelled).tool_calls
        if [(c.name, dict(c.arguments), c.error) for c in read] != [("probe_tool", {"probe_key": "probe_value"}, None)]:
            return "it spells calls in a way that is neither <tool_call> tags nor bare JSON"
        return None
