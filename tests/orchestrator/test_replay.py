"""Stored rollouts under a changed reward."""

from __future__ import annotations

from pathlib import Path

import pytest
from stored_run import rollout, stored

import sortie
from sortie.core.errors import UsageError
from sortie.core.trajectory import StopReason
from sortie.orchestrator.replay import replay


@sortie.reward(inline=True)
def correct(answer: str, target: str) -> bool:
    return answer == target


@sortie.reward(inline=True, weight=0.5)
def brief(trajectory: sortie.Trajectory) -> float:
    return float(trajectory.sampled_tokens < 5)


def shop(*rewards: object, name: str = "shop") -> sortie.Env:
    return sortie.Env(name, tasks=[{"prompt": "p", "target": "yes", "limit": 1}], rewards=rewards)  # type: ignore[arg-type]


async def test_task_data_and_the_record_are_enough_to_score_anew(tmp_path: Path) -> None:
    """What was 1 and 0 by the old reward is 1.5 and 0.5 by the new one, and the groups differ as before."""
    folder = stored(tmp_path, [[rollout(1.0), rollout(0.0, 0, 1, answer="no")]])
    found = await replay(folder.trajectories(), shop(correct, brief))
    assert [(r.before, r.after) for r in found.rollouts] == [(1.0, 1.5), (0.0, 0.5)]
    assert found.rollouts[0].rewards == {"correct": 1.0, "brief": 1.0}
    assert found.totals() == {
        "n": 2,
        "changed": 2,
        "unscored": 0,
        "reward": {"before": 0.5, "after": 1.0},
        "informative": {"before": 1.0, "after": 1.0},
    }


async def test_a_reward_that_needs_live_state_keeps_its_recorded_value(tmp_path: Path) -> None:
    @sortie.reward(inline=True, name="correct", weight=2.0)
    def by_state(state: object) -> float:
        raise AssertionError("there is no state to look at")

    found = await replay(stored(tmp_path, [[rollout(0.25)]]).trajectories(), shop(by_state, brief))
    assert found.live == {"correct": "state"}
    assert found.rollouts[0].after == 2.0 * 0.25 + 0.5


async def test_when_no_reward_can_be_asked_again_it_is_said_why(tmp_path: Path) -> None:
    @sortie.reward(inline=True)
    def stock(state: object, ctx: sortie.RunContext) -> float:
        return 1.0

    with pytest.raises(UsageError, match="no reward of 'shop' can be asked again: stock needs state, ctx"):
        await replay(stored(tmp_path, [[rollout()]]).trajectories(), shop(stock))


async def test_a_rollout_whose_reward_broke_gets_its_score_now(tmp_path: Path) -> None:
    """The case replay is for; one that broke before it could be scored stays unscored."""
    broken = [
        rollout(None, 0, 0, stop_reason=StopReason.ANSWERED, error="division by zero", boundary="reward"),
        rollout(None, 0, 1, stop_reason=StopReason.ERROR, error="no shelf", boundary="env"),
    ]
    found = await replay(stored(tmp_path, [broken]).trajectories(), shop(correct))
    assert [r.after for r in found.rollouts] == [1.0, None]


async def test_a_reward_that_raises_is_no_zero(tmp_path: Path) -> None:
    @sortie.reward(inline=True)
    def fragile(trajectory: sortie.Trajectory) -> float:
        return 1 / trajectory.member

    found = await replay(stored(tmp_path, [[rollout(1.0), rollout(1.0, 0, 1)]]).trajectories(), shop(fragile))
    assert [r.after for r in found.rollouts] == [None, 1.0]
    assert "fragile" in str(found.rollouts[0].error)
    assert found.totals()["reward"]["after"] == 1.0


async def test_an_environment_the_run_never_met_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no stored rollout is of environment 'bank'; there: shop"):
        await replay(stored(tmp_path, [[rollout()]]).trajectories(), shop(correct, name="bank"))
