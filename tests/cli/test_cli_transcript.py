"""A rollout for reading."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from sortie.cli.transcript import result, transcript
from sortie.core.messages import ToolCall, assistant
from sortie.core.task import Task
from sortie.core.trajectory import StopReason, ToolRecord, Trajectory


def spelled(token_ids: Sequence[int]) -> str:
    return "".join(map(chr, token_ids))


@pytest.fixture
def rollout() -> Trajectory:
    t = Trajectory(id="x", task_key="e/1", env="e", stop_reason=StopReason.TURN_LIMIT, reward=0.5)
    t.add("prompt", [ord("p")], None)
    t.add("sampled", [ord("a")], 0, logprobs=[-1.0], abandoned=True)
    t.add(
        "sampled", [ord("b"), ord("c")], 0, logprobs=[-1.0, -2.0], message=assistant("", ToolCall(name="", error="no"))
    )
    t.tools.append(ToolRecord(name="calc", arguments={"x": 1}, output="2"))
    t.rewards = {"correct": 0.5, "style": None}
    return t


def test_every_node_is_shown_in_order_with_its_tokens(rollout: Trajectory) -> None:
    lines = transcript(rollout, Task(env="e", prompt="p", id="1", level=3), spelled)
    assert lines[0] == "task e/1, level 3"
    assert [line for line in lines if line.startswith("---")] == [
        "--- prompt (1 token)",
        "--- turn 1 (1 token, mean logprob -1.00, abandoned)",
        "--- turn 1 (2 tokens, mean logprob -1.50)",
    ]
    assert "bc" in lines
    assert "  ! unreadable call: no" in lines


def test_the_end_tells_reason_tools_and_each_reward(rollout: Trajectory) -> None:
    assert result(rollout) == [
        "ended    turn_limit; 1 turn, 3 tokens sampled, 0.0 s",
        "tool     calc(x=1) -> 2",
        "reward   0.5  (correct 0.5, style not scored)",
    ]


def test_an_error_names_where_it_crossed(rollout: Trajectory) -> None:
    rollout.stop_reason, rollout.boundary, rollout.error, rollout.reward = StopReason.ERROR, "env", "it broke", None
    lines = result(rollout)
    assert lines[0].startswith("ended    error at env: it broke;")
    assert lines[-1].startswith("reward   not scored")
