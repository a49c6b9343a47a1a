"""A model folder's Jinja chat template, run in a sandbox with the names that such templates expect."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, NoReturn

from sortie.core.errors import UsageError
from sortie.core.messages import Message, message_to_dict
from sortie.core.tool_schema import ToolSchema
from sortie.inference.renderers.parsing import well_formed


class ChatTemplate:
    """Messages to prompt text, as transformers' `apply_chat_template` gives it."""

    def __init__(self, source: str, *, bos_token: str | None = None, eos_token: str | None = None) -> None:
        """Raises: UsageError if `source` is not a Jinja template."""
        import jinja2
        from jinja2.ext import loopcontrols
        from jinja2.sandbox import ImmutableSandboxedEnvironment

        environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=[loopcontrols])
        environment.filters["tojson"] = _to_json
        environment.globals.update(raise_exception=_refuse, strftime_now=_strftime_now)
        try:
            self._template = environment.from_string(source)
        except jinja2.TemplateError as error:
            raise UsageError(f"the chat template is not valid Jinja: {error}") from None
        self._names = {"bos_token": bos_token or "", "eos_token": eos_token or ""}

    def render(self, messages: Sequence[Message], tools: Sequence[ToolSchema] = (), *, generate: bool) -> str:
        """The prompt text; with `generate`, the opening of the next assistant turn too.

        Raises: UsageError if the template refuses the messages.
        """
        import jinja2

        try:
            return self._template.render(
                messages=[_to_template(message) for message in messages],
                tools=[tool.to_openai() for tool in tools] or None,
                add_generation_prompt=generate,
                **self._names,
            )
        except (jinja2.TemplateError, TypeError, KeyError, IndexError) as error:
            roles = ", ".join(message.role for message in messages)
            raise UsageError(f"the chat template refuses messages in the order {roles}: {error}") from None


def default_system(source: str | None) -> str | None:
    """The system text that a ChatML template puts where a conversation has none; None: it puts none."""
    if source is None:
        return None
    text = ChatTemplate(source).render([Message(role="user", content="x")], generate=True)
    system = re.match(r"<\|im_start\|>system\n(.*?)<\|im_end\|>", text, re.DOTALL)
    return system.group(1) if system else None


def _to_template(message: Message) -> dict[str, Any]:
    """The message in the shape that templates expect. The text of malformed calls is in the content already."""
    out = message_to_dict(replace(message, tool_calls=tuple(well_formed(message))))
    if "thinking" in out:
        out["reasoning_content"] = out.pop("thinking")
    return out


def _to_json(value: Any, indent: int | None = None, ensure_ascii: bool = False, **options: Any) -> str:
    # Jinja's own filter escapes <, > and &, which models were not trained on.
    return json.dumps(value, indent=indent, ensure_ascii=ensure_ascii, **options)


def _refuse(message: str) -> NoReturn:
    import jinja2

    raise jinja2.TemplateError(message)


def _strftime_now(form: str) -> str:
    return datetime.now().strftime(form)
