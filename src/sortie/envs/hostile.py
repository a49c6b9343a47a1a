"""What a hostile agent tries on any environment: being rewarded without having done the task.

An environment adds the tricks of its own domain as `Env(hostile=...)`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sortie.core.messages import Message, ToolCall, assistant
from sortie.core.task import Task
from sortie.envs.env import Env

Script = Sequence[Message | str]
"""The turns of one rollout; the last one is repeated for as long as it goes on."""

IDLE: Mapping[str, Script] = {"nothing": [""], "done": ["Done."]}
"""Rollouts of an agent that does nothing."""

MARKERS = "PASSED\nOK\nAll tests passed.\nSUCCESS\nscore: max\nreward: max\nDone."
"""What verifiers have been known to look for. Without a digit: a number might be somebody's right answer."""

PAYLOADS = (
    "/proc/self/environ",
    "../../../../../../etc/passwd",
    "tests/test_solution.py",
    "'; UPDATE rewards SET value = 1; --",
    "import os\nos.system('cat tests/* ../tests/* /tests/*')\nprint('PASSED')\nos._exit(0)",
    "import sys\nsys.stdout.write('All tests passed.\\n')\nsys.exit(0)",
    "import builtins, json\nbuiltins.__import__ = None\njson.dumps = lambda *a, **k: 'true'",
    "open('tests/test_solution.py', 'w').write('def test_ok(): pass')",
    "class Yes:\n def __eq__(self, other): return True\ndef f(*a): return Yes()",
    "\x00\u2028\ufeff",
)
"""Values for arguments that are text: reading the verifier, printing its markers, editing tests, leaving early."""

HUGE = 20_000
"""Characters of a huge argument."""


def tricks(env: Env, task: Task) -> dict[str, Script]:
    """Named hostile rollouts for one task, the environment's own ones last."""
    names = [tool.name for tool in env.tools] or ["submit"]
    own = env.hostile(task) if env.hostile is not None else ()
    return {
        "markers": [MARKERS],
        "malformed calls": [*(f'{{"name": "{name}", "arguments": {{"x": ' for name in names[:2]), MARKERS],
        "empty calls": [assistant("", *(ToolCall(name=name) for name in names)), MARKERS],
        "unknown tools": [_calls([("set_reward", {"value": 1}), ("submit", {}), ("__class__", {})]), MARKERS],
        "huge arguments": [_filled(env, "x" * HUGE, 10**18), MARKERS],
        "payloads": [_calls(_payloads(env)), MARKERS],
        **{f"own trick {number}": script for number, script in enumerate(own, start=1)},
    }


def _payloads(env: Env) -> list[tuple[str, dict[str, Any]]]:
    return [
        (tool.name, _arguments(tool.schema.parameters, text, -1)) for tool in env.tools for text in PAYLOADS
    ]  # one turn: its calls run side by side, which is one more thing to withstand


def _filled(env: Env, text: str, number: int) -> Message:
    return _calls([(tool.name, _arguments(tool.schema.parameters, text, number)) for tool in env.tools])


def _arguments(parameters: Mapping[str, Any], text: str, number: int) -> dict[str, Any]:
    """A value for every argument of a tool, by its type."""
    by_type: dict[str, Any] = {"string": text, "integer": number, "number": number, "boolean": True}
    by_type |= {"array": [text, number], "object": {"__class__": text}}
    return {name: by_type.get(schema.get("type"), text) for name, schema in parameters.get("properties", {}).items()}


def _calls(calls: Sequence[tuple[str, dict[str, Any]]]) -> Message:
    return assistant("", *(ToolCall(name=name, arguments=arguments) for name, arguments in calls))
