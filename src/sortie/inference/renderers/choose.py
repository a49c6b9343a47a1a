"""Picks the renderer of a model folder."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from sortie.core.errors import UsageError
from sortie.core.messages import assistant, system, user
from sortie.core.registry import Registry
from sortie.core.tool_schema import ToolSchema
from sortie.inference.renderers.base import Renderer
from sortie.inference.renderers.generic import GenericRenderer
from sortie.inference.renderers.qwen import QwenRenderer
from sortie.inference.renderers.smollm import SmolLMRenderer
from sortie.inference.renderers.template import ChatTemplate
from sortie.models.folder import read_json
from sortie.models.tokenizer import ChatTokenizer, load_tokenizer

RENDERERS: Registry[Callable[[ChatTokenizer], Renderer]] = Registry("renderer")
RENDERERS.register("smollm")(SmolLMRenderer)
RENDERERS.register("qwen")(QwenRenderer)
RENDERERS.register("qwen-nothink")(lambda tokenizer: QwenRenderer(tokenizer, thinking=False))
RENDERERS.register("generic")(GenericRenderer)

_TALK = [system("s"), user("x"), assistant("y"), user("z")]
_TOOL = ToolSchema(name="probe_tool", description="d", parameters={"type": "object", "properties": {}})


def renderer_for(source: Path | str | ChatTokenizer, name: str = "auto", *, tools: bool = False) -> Renderer:
    """The renderer of a model folder or its tokenizer. With `auto`, it is the family that spells a conversation
    as the folder's template does, else `generic`; without a template, the folder's `model_type` decides.

    `tools=True` refuses at once a template that cannot carry tools.
    Raises: UnknownName for another name, UsageError if the folder has no tokenizer, no template, or no room for tools.
    """
    tokenizer = source if isinstance(source, ChatTokenizer) else load_tokenizer(source)
    if name == "auto":
        model_type = (
            "" if isinstance(source, ChatTokenizer) else read_json(Path(source) / "config.json").get("model_type")
        )
        name = _family(tokenizer, str(model_type))
    renderer = RENDERERS[name](tokenizer)
    if tools and isinstance(renderer, GenericRenderer):
        renderer.require_tools()
    return renderer


def _family(tokenizer: ChatTokenizer, model_type: str) -> str:
    """The first family that writes a short conversation just as the folder's own template does."""
    if tokenizer.token_to_id("<|im_start|>") is None or tokenizer.token_to_id("<|im_end|>") is None:
        return "generic"
    if tokenizer.chat_template is None:
        return "qwen" if model_type.startswith(("qwen2", "qwen3")) else "smollm"
    template = ChatTemplate(tokenizer.chat_template, bos_token=tokenizer.bos_token, eos_token=tokenizer.eos_token)
    # Stripped, because templates are; that choice is not part of the family.
    if _agree(template, QwenRenderer(tokenizer, history_thinking="strip"), [_TOOL]):
        return "qwen"
    if not _agree(template, SmolLMRenderer(tokenizer), []):
        return "generic"
    return "generic" if _TOOL.name in template.render(_TALK, [_TOOL], generate=True) else "smollm"


def _agree(template: ChatTemplate, renderer: Renderer, tools: list[ToolSchema]) -> bool:
    """Whether the two spell a conversation alike: with and without a system text, and with earlier turns."""
    try:
        return all(
            renderer.decode(renderer.render(talk, tools)) == template.render(talk, tools, generate=True)
            for talk in (_TALK, _TALK[1:])
        )
    except UsageError:  # a template that refuses a system text, say
        return False
