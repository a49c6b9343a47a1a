from __future__ import annotations

import pytest

from sortie.core.group import Assignment, Group
from sortie.core.trajectory import StopReason, Trajectory
from sortie.orchestrator.metrics import duration, rollout_metrics


def member(reward: float | None, stop: StopReason = StopReason.ANSWERED, **fields: object) -> Trajectory:
    t = Trajectory(id="r", task_key="e/1", env="e", reward=reward, stop_reason=stop, **fields)  # type: ignore[arg-type]
    t.add("sampled", [1, 2], t.add("prompt", [0], None).id, logprobs=None if reward is None else [-1.0, -1.0])
    return t


def test_unscored_rollouts_are_in_no_mean_and_limits_are_counted() -> None:
    """Pain E10, F6: errors by boundary, truncation apart from failure."""
    group = Group(
        Assignment(0, "e/1", 3),
        [member(1.0), member(0.0, StopReason.TURN_TOKENS), member(None, StopReason.ERROR, boundary="env")],
    )
    m = rollout_metrics([group])
    assert m["reward"] == 0.5
    assert m["informative"] == 1.0
    assert m["scored"] == pytest.approx(2 / 3)
    assert m["truncated"] == pytest.approx(1 / 3)
    assert m["errors/env"] == 1
    assert m["untrainable_tokens"] == 2
    assert m["stop/turn_tokens"] == pytest.approx(1 / 3)


def test_durations_read_like_a_clock() -> None:
    assert [duration(s) for s in (0.4, 59.6, 724, 3661)] == ["0m00s", "1m00s", "12m04s", "1h01m"]
