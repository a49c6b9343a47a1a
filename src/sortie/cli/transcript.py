"""A rollout for reading: every token the model saw or drew, and what came of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sortie.core.task import Task
from sortie.core.trajectory import Node, Trajectory


def transcript(trajectory: Trajectory, task: Task, decode: Callable[[Sequence[int]], str]) -> list[str]:
    """Lines: the task, each node's text as tokens spell it, then `result`."""
    level = "" if task.level is None else f", level {task.level}"
    out = [f"task {task.key}{level}"]
    turn = 1
    for node in trajectory.nodes:
        out += ["", _heading(node, turn), decode(node.token_ids).strip("\n")]
        turn += node.kind == "sampled" and not node.abandoned
        if node.message is not None:
            out += [f"  ! unreadable call: {call.error}" for call in node.message.tool_calls if call.error]
    return [*out, "", *result(trajectory)]


def result(trajectory: Trajectory) -> list[str]:
    """Why it ended, what the tools did, and how it scored."""
    t = trajectory
    end = f"{t.stop_reason.value}" + (f" at {t.boundary}: {t.error}" if t.error else "")
    out = [f"ended    {end}; {_count(t.turns, 'turn')}, {_count(t.sampled_tokens, 'token')} sampled, {t.seconds:.1f} s"]
    for call in t.tools:
        arguments = ", ".join(f"{name}={value!r}" for name, value in call.arguments.items())
        out.append(f"tool     {call.name}({arguments}) -> {call.output}")
    if t.answer is not None:
        out.append(f"answer   {t.answer}")
    parts = ", ".join(f"{name} {_number(value)}" for name, value in t.rewards.items())
    out.append(f"reward   {_number(t.reward)}" + (f"  ({parts})" if parts else ""))
    return out


def _heading(node: Node, turn: int) -> str:
    notes = [_count(len(node.token_ids), "token")]
    if node.kind == "sampled" and node.logprobs:
        notes.append(f"mean logprob {sum(node.logprobs) / len(node.logprobs):.2f}")
    if node.abandoned:
        notes.append("abandoned")
    name = f"turn {turn}" if node.kind == "sampled" else node.kind
    agent = "" if node.agent == "main" else f" of {node.agent}"
    return f"--- {name}{agent} ({', '.join(notes)})"


def _count(number: int, what: str) -> str:
    return f"{number} {what}" + ("" if number == 1 else "s")


def _number(value: float | None) -> str:
    return "not scored" if value is None else f"{value:g}"
