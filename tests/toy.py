"""A model family small enough to read: one token per character, one per role. Shared by the tests of several layers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from typing import Any

from sortie.context.limits import Limits
from sortie.context.run_context import RunContext
from sortie.context.seeds import RolloutKey
from sortie.context.thread import Sampling
from sortie.context.tools import ToolLike
from sortie.context.window import ContextWindow
from sortie.core.errors import PrefixBreak
from sortie.core.messages import Message
from sortie.core.task import Task
from sortie.core.tool_schema import ToolSchema
from sortie.core.trajectory import Trajectory
from sortie.inference.renderers.parsing import parse_text
from sortie.inference.scripted import ScriptedClient

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


def toy_context(
    replies: Any = (),
    *,
    tools: Sequence[ToolLike] = (),
    limits: Limits | None = None,
    data: Mapping[str, Any] | None = None,
    **fields: Any,
) -> RunContext:
    """A RunContext over a ScriptedClient, which is `ctx.sampling.client`. Call it inside a running loop."""
    renderer, limits = ToyRenderer(), limits or Limits()
    task = Task(env="toy", prompt="question", data=data or {})
    key = RolloutKey(run_seed=0, task_key=task.key, visit=0, member=0)
    return RunContext(
        rollout_id=key.id,
        task=task,
        env_name="toy",
        member=0,
        trajectory=Trajectory(id=key.id, task_key=task.key, env="toy"),
        sampling=Sampling(client=ScriptedClient(replies, renderer=renderer), renderer=renderer, key=key),
        limits=limits,
        window=ContextWindow(limits),
        deadline=asyncio.get_running_loop().time() + limits.seconds,
        tools={tool.name: tool for tool in tools},
        **fields,
    )
