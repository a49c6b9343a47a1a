"""A rollout as plain data and back: the index line that people read, and the token arrays.

`to_line` and `from_line` are inverse up to JSON: what was a tuple inside task data comes back as a list, and numbers
that are not finite come back as None (rewards) or NaN (logprobs).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sortie.core.messages import Message, ToolCall
from sortie.core.policy import PolicyVersion
from sortie.core.task import Task
from sortie.core.trajectory import Node, StopReason, ToolRecord, Trajectory

Tokens = list[tuple[list[int], list[float] | None]]
"""Per node: token ids, and their logprobs where the sampler gave them."""

_PLAIN = (
    "id",
    "task_key",
    "env",
    "member",
    "answer",
    "reward",
    "rewards",
    "error",
    "boundary",
    "parse_errors",
    "prefix_breaks",
    "cut_turns",
    "tokens_unseen",
    "attempts",
    "seconds",
)
"""Fields of a Trajectory that are JSON as they are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RolloutRecord:
    """One journalled rollout."""

    serial: int
    """Position in the run's journal."""
    step: int
    """Training step it belongs to; 0: before the first."""
    phase: str
    """What it was for: `train`, or an evaluation."""
    at: float
    """When it ended, in seconds since the epoch."""
    task: Task
    trajectory: Trajectory


def to_line(trajectory: Trajectory, task: Task) -> dict[str, Any]:
    """Everything but the token arrays."""
    return {
        **{name: getattr(trajectory, name) for name in _PLAIN},
        "stop_reason": trajectory.stop_reason.value,
        "task": _task_to_dict(task),
        "tools": [_slots(record) for record in trajectory.tools],
        "nodes": [_node_to_dict(node) for node in trajectory.nodes],
    }


def tokens_of(trajectory: Trajectory) -> Tokens:
    """The token arrays, node by node."""
    return [(list(n.token_ids), None if n.logprobs is None else list(n.logprobs)) for n in trajectory.nodes]


def from_line(line: Mapping[str, Any], tokens: Sequence[tuple[Sequence[int], list[float] | None]]) -> RolloutRecord:
    """Put a line and its token arrays together again.

    Raises: ValueError if their lengths do not match: they are not of one rollout.
    """
    if [len(ids) for ids, _ in tokens] != [node["tokens"] for node in line["nodes"]]:
        raise ValueError(f"rollout {line['id']!r}: its token arrays are of other lengths than its index line says")
    trajectory = Trajectory(**{name: line[name] for name in _PLAIN})
    trajectory.stop_reason = StopReason(line["stop_reason"])
    trajectory.tools = [ToolRecord(**record) for record in line["tools"]]
    trajectory.nodes = [
        _node_from_dict(i, node, *arrays) for i, (node, arrays) in enumerate(zip(line["nodes"], tokens, strict=True))
    ]
    return RolloutRecord(
        serial=line["serial"],
        step=line["step"],
        phase=line["phase"],
        at=line["at"],
        task=_task_from_dict(line["task"]),
        trajectory=trajectory,
    )


def _node_to_dict(node: Node) -> dict[str, Any]:
    version = node.version
    return {
        "kind": node.kind,
        "parent": node.parent,
        "agent": node.agent,
        "tokens": len(node.token_ids),
        "version": None if version is None else _slots(version),
        "message": None if node.message is None else _message_to_dict(node.message),
        "abandoned": node.abandoned,
        "seconds": node.seconds,
    }


def _node_from_dict(number: int, data: Mapping[str, Any], ids: Sequence[int], logprobs: list[float] | None) -> Node:
    return Node(
        id=number,
        parent=data["parent"],
        kind=data["kind"],
        token_ids=ids,
        agent=data["agent"],
        logprobs=None if logprobs is None else [math.nan if value is None else value for value in logprobs],
        version=None if data["version"] is None else PolicyVersion(**data["version"]),
        message=None if data["message"] is None else _message_from_dict(data["message"]),
        abandoned=data["abandoned"],
        seconds=data["seconds"],
    )


def _message_to_dict(message: Message) -> dict[str, Any]:
    """Unlike the OpenAI shape, keeps why a call could not be read."""
    return {**_slots(message), "tool_calls": [_slots(call) for call in message.tool_calls]}


def _message_from_dict(data: Mapping[str, Any]) -> Message:
    return Message(**{**data, "tool_calls": tuple(ToolCall(**call) for call in data["tool_calls"])})


def _task_to_dict(task: Task) -> dict[str, Any]:
    prompt = task.prompt if isinstance(task.prompt, str) else [_message_to_dict(m) for m in task.prompt]
    return {**_slots(task), "prompt": prompt}


def _task_from_dict(data: Mapping[str, Any]) -> Task:
    prompt = data["prompt"]
    return Task(**{**data, "prompt": prompt if isinstance(prompt, str) else tuple(map(_message_from_dict, prompt))})


def _slots(record: Any) -> dict[str, Any]:
    """One level of a dataclass's fields; `asdict` would copy deep and choke on read-only mappings."""
    return {name: getattr(record, name) for name in record.__dataclass_fields__}
