"""One stored rollout for reading: its nodes with masks and timings, its text, its tokens, why it ended."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

from sortie.core.errors import UsageError
from sortie.core.records import RolloutRecord, to_line, tokens_of
from sortie.core.run_folder import RunFolder
from sortie.core.trajectory import Node, Trajectory

Decode = Callable[[Sequence[int]], str]

LIST_COLUMNS = ("serial", "step", "phase", "id", "reward", "ended", "turns", "tokens", "seconds")
NODE_COLUMNS = ("node", "kind", "after", "tokens", "trains", "mean logprob", "lowest", "seconds", "policy")
TOOL_COLUMNS = ("tool", "seconds", "error", "arguments")
TOKEN_COLUMNS = ("node", "kind", "position", "id", "text", "mask", "logprob")


def list_row(record: RolloutRecord) -> dict[str, Any]:
    """One line of a listing."""
    t = record.trajectory
    return {
        "serial": record.serial,
        "step": record.step,
        "phase": record.phase,
        "id": t.id,
        "reward": t.reward,
        "ended": t.stop_reason.value,
        "turns": t.turns,
        "tokens": t.sampled_tokens,
        "seconds": t.seconds,
    }


def find(folder: RunFolder, wanted: str) -> list[RolloutRecord]:
    """The rollouts of that id, or of that serial number, the newest last; evaluations repeat ids.

    Raises: UsageError if there is none, naming one that there is.
    """
    records = list(folder.trajectories())
    found = [record for record in records if wanted in (record.trajectory.id, str(record.serial))]
    if not found:
        example = f"; there is {records[-1].trajectory.id}, serial {records[-1].serial}" if records else ""
        raise UsageError(f"run {folder.name!r} has no rollout {wanted!r}{example} (`sortie runs show RUN --rollouts`)")
    return found


def heading(found: Sequence[RolloutRecord]) -> list[str]:
    """Which one is shown, and where else its id occurs."""
    record = found[-1]
    at = datetime.fromtimestamp(record.at).strftime("%Y-%m-%d %H:%M:%S")
    lines = [f"rollout {record.serial}: {record.phase}, step {record.step}, ended {at}, environment {record.task.env}"]
    if len(found) > 1:
        others = ", ".join(f"{other.serial} ({other.phase}, step {other.step})" for other in found[:-1])
        lines.append(f"the same id also as {others}")
    return lines


def trains(trajectory: Trajectory, node: Node) -> bool:
    """Whether its tokens carry mask 1 in the one row that trains them."""
    live = not any(above.abandoned for above in trajectory.path(node.id))
    return node.kind == "sampled" and node.logprobs is not None and live


def node_rows(trajectory: Trajectory) -> list[dict[str, Any]]:
    """One line per node."""
    return [
        {
            "node": node.id,
            "kind": node.kind if node.agent == "main" else f"{node.kind} of {node.agent}",
            "after": node.parent,
            "tokens": len(node.token_ids),
            "trains": len(node.token_ids) if trains(trajectory, node) else 0,
            "mean logprob": sum(node.logprobs) / len(node.logprobs) if node.logprobs else None,
            "lowest": min(node.logprobs) if node.logprobs else None,
            "seconds": node.seconds if node.kind == "sampled" else None,
            "policy": f"{node.version} ({node.version.digest})" if node.version else None,
        }
        for node in trajectory.nodes
    ]


def tool_rows(trajectory: Trajectory) -> list[dict[str, Any]]:
    """One line per executed call."""
    return [
        {
            "tool": call.name,
            "seconds": call.seconds,
            "error": "yes" if call.error else "no",
            "arguments": ", ".join(f"{name}={value!r}" for name, value in call.arguments.items()),
        }
        for call in trajectory.tools
    ]


def token_rows(trajectory: Trajectory, decode: Decode) -> list[dict[str, Any]]:
    """One line per token; `position` is its place in its row."""
    rows = []
    for node in trajectory.nodes:
        start = sum(len(before.token_ids) for before in trajectory.path(node.id)[:-1])
        mask = int(trains(trajectory, node))
        for i, token in enumerate(node.token_ids):
            rows.append(
                {
                    "node": node.id,
                    "kind": node.kind,
                    "position": start + i,
                    "id": int(token),
                    "text": repr(decode([token])),
                    "mask": mask,
                    "logprob": node.logprobs[i] if node.logprobs is not None else None,
                }
            )
    return rows


def to_dict(record: RolloutRecord) -> dict[str, Any]:
    """Everything that is stored of it, and which nodes train."""
    t = record.trajectory
    head = {"serial": record.serial, "step": record.step, "phase": record.phase, "at": record.at}
    return {
        **head,
        **to_line(t, record.task),
        "tokens": tokens_of(t),
        "trains": [trains(t, node) for node in t.nodes],
    }


def decoder_of(model: str, renderer: str) -> Decode:
    """How a run's tokens are spelled; where its model is not on this machine, how many there are."""
    from sortie import models
    from sortie.inference.renderers import renderer_for

    try:
        folder = models.show(model).folder
        if folder is not None:
            return renderer_for(folder, renderer).decode
    except UsageError:  # moved or removed since: the numbers can be shown all the same
        folder = None
    return lambda ids: f"[{len(ids)} tokens; {model} is not on this machine to spell them]"
