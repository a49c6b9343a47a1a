"""A rollout with something of everything in it."""

from __future__ import annotations

from sortie.core.messages import ToolCall, assistant, system, tool_result, user
from sortie.core.policy import PolicyVersion
from sortie.core.task import Task
from sortie.core.trajectory import StopReason, ToolRecord, Trajectory


def make_rollout(member: int = 0, reward: float | None = 1.0) -> tuple[Trajectory, Task]:
    """Two turns and a tool call, after a first turn that was abandoned; the last turn has no logprobs."""
    task = Task(env="shop", prompt=(system("Be brief."), user("2+2?")), data={"answer": "4"}, level=2)
    trajectory = Trajectory(id=f"{task.key}@0.{member}", task_key=task.key, env="shop", member=member)
    prompt = trajectory.add("prompt", [1, 2, 3], None)
    version = PolicyVersion("main", 3, "abc")
    broken = ToolCall(name="calc", error="not JSON")
    trajectory.add(
        "sampled",
        [4, 5],
        prompt.id,
        logprobs=[-0.1, -0.2],
        version=version,
        message=assistant("", broken),
        abandoned=True,
    )
    call = ToolCall(name="calc", arguments={"expression": "2+2"}, id="1")
    turn = trajectory.add(
        "sampled", [6, 7], prompt.id, logprobs=[-0.3, -1 / 3], version=version, message=assistant("", call)
    )
    seen = trajectory.add("observation", [8], turn.id, message=tool_result("4", "calc", "1"))
    trajectory.add("sampled", [9], seen.id, message=assistant("4"), seconds=0.5)
    trajectory.tools.append(ToolRecord(name="calc", arguments={"expression": "2+2"}, output="4", seconds=0.1))
    trajectory.stop_reason = StopReason.ANSWERED
    trajectory.answer, trajectory.reward, trajectory.rewards = "4", reward, {"correct": reward, "style": None}
    trajectory.parse_errors, trajectory.attempts, trajectory.seconds = 1, 2, 1.5
    return trajectory, task
