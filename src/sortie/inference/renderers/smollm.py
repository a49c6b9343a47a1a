"""SmolLM2, and any ChatML model whose own template knows no tools: the tool prompting is ours.

It is short, because on a laptop CPU every prompt token costs: one line per tool, one line for the form of a call.
Calls are bare JSON and results a turn of the role `tool`, by measurement: SmolLM2-135M-Instruct, two worked examples,
one-step sums at temperature 1, 128 samples each. Bare JSON gave a right calculator call in 31%, `<tool_call>` tags in
18% at ten more tokens a call; results as a user's `<tool_response>` gave 30%, at ten more tokens a result.
"""

from __future__ import annotations

from collections.abc import Sequence

from sortie.core.messages import Message
from sortie.core.tool_schema import ToolSchema
from sortie.inference.renderers.chatml import ChatML
from sortie.inference.renderers.template import default_system
from sortie.models.tokenizer import ChatTokenizer


class SmolLMRenderer(ChatML):
    """Renderer of the SmolLM2 family."""

    name = "smollm"
    call_form = "{json}"

    def __init__(self, tokenizer: ChatTokenizer) -> None:
        super().__init__(tokenizer)
        self.default_system = default_system(tokenizer.chat_template)

    def system_text(self, given: str | None, tools: Sequence[ToolSchema]) -> str | None:
        """The given text and the tools; without either, what the model's template says."""
        if not tools:
            return self.default_system if given is None else given
        lines = [f"{tool.signature()}: {' '.join(tool.description.split())}" for tool in tools]
        form = self.call_form.format(json='{"name": ..., "arguments": {...}}')
        said = ["Tools:", *lines, f"To call one, reply {form}"]
        return "\n".join([given, *said] if given else said)

    def tool_turn(self, results: Sequence[Message]) -> list[int]:
        """Each result is a turn of the role `tool`."""
        return [token for result in results for token in self._turn("tool", result.content)]
