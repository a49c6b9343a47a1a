"""An environment with its tools taken away: what does the model know by itself?"""

from __future__ import annotations

import copy

from sortie.core.messages import Message
from sortie.envs.env import Env


def without_tools(env: Env) -> Env:
    """The same tasks, rewards and set-up, for an agent that has no tool; worked examples keep question and answer."""
    bare = copy.copy(env)
    bare.tools = ()
    bare.examples = tuple(_without_calls(example) for example in env.examples)
    return bare


def _without_calls(example: tuple[Message, ...]) -> tuple[Message, ...]:
    return tuple(message for message in example if message.role != "tool" and not message.tool_calls)
