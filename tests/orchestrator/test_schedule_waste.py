"""Every wasted rollout has one cause, and the dearest comes first."""

from __future__ import annotations

import pytest

from sortie.core.policy import PolicyVersion
from sortie.core.trajectory import StopReason, Trajectory
from sortie.orchestrator.schedule.spent import Expected, SpentGroup
from sortie.orchestrator.schedule.steps import calibrations
from sortie.orchestrator.schedule.waste import TAUGHT, fates, wasted


def group(
    number: int,
    *rewards: float | None,
    stops: tuple[StopReason, ...] = (),
    versions: tuple[int, ...] = (),
    replaced: bool = False,
    expected: Expected | None = None,
) -> SpentGroup:
    rollouts = []
    for i, reward in enumerate(rewards):
        t = Trajectory(id=f"a/{number}@0.{i}", task_key=f"a/{number}", env="a", member=i, reward=reward)
        t.stop_reason = stops[i] if stops else StopReason.ANSWERED
        version = PolicyVersion("policy", versions[i] if versions else 3, "")
        t.add("sampled", range(10), None, version=version)
        rollouts.append(t)
    return SpentGroup(
        id=f"a/{number}@0",
        key=f"a/{number}",
        environment="a",
        step=1,
        rollouts=tuple(rollouts),
        replaced=replaced,
        expected=expected,
    )


LIMIT, CLOCK, FINE = StopReason.TURN_LIMIT, StopReason.TIME, StopReason.ANSWERED


@pytest.mark.parametrize(
    ("made", "causes"),
    [
        (group(1, 0.0, 1.0, stops=(LIMIT, FINE)), [TAUGHT, TAUGHT]),
        (group(1, 0.0, 0.0), ["all failed"] * 2),
        (group(1, 1.0, 1.0), ["all solved"] * 2),
        (group(1, 0.5, 0.5), ["all alike"] * 2),
        (group(1, 0.0, 0.0, 0.0, stops=(LIMIT, CLOCK, FINE)), ["truncated", "out of time", "all failed"]),
        (group(1, None, 0.0, 1.0), ["errored", TAUGHT, TAUGHT]),
        (group(1, None, 0.0), ["errored", "alone"]),
        (group(1, 0.0, 1.0, versions=(2, 3)), ["stale", TAUGHT]),
        (group(1, 0.0, 0.0, replaced=True), ["replaced"] * 2),
    ],
    ids=["taught", "failed", "solved", "alike", "cut", "errored", "alone", "stale", "replaced"],
)
def test_a_rollout_has_one_cause(made: SpentGroup, causes: list[str]) -> None:
    full_range = group(0, 0.0, 1.0)  # so that 1 is known to be the most there is
    assert fates([full_range, made])[1] == causes


def test_costs_add_up_and_the_dearest_comes_first() -> None:
    groups = [group(0, 0.0, 1.0), group(1, 1.0, 1.0), group(2, 0.0, 0.0, 0.0)]
    found = wasted(groups, fates(groups))
    assert [(waste.cause, waste.rollouts, waste.tokens) for waste in found] == [
        ("all failed", 3, 30),
        ("all solved", 2, 20),
    ]
    assert [waste.share for waste in found] == pytest.approx([3 / 7, 2 / 7])


def test_calibration_by_hand() -> None:
    """Two groups, predicted 0.2 and 0.8, came 0 and 1: off by 0.2 each, in the right order."""
    said = [Expected(mean=m, std=0.1, variance=m * (1 - m), chance=m) for m in (0.8, 0.2)]
    informative, variance, success = calibrations(
        [group(1, 1.0, 0.0, expected=said[0]), group(2, 0.0, 0.0, expected=said[1]), group(3, 0.0, 1.0)]
    )
    assert [(b.predicted, b.realised) for b in informative.bins] == [(0.2, 0.0), (0.8, 1.0)]
    assert informative.error == pytest.approx(0.2)
    assert informative.rank_correlation == pytest.approx(1.0)
    assert variance.error == pytest.approx((0.16 + 0.34) / 2)  # 0.16 predicted twice; 0 and 1/2 came
    assert success.error == pytest.approx((0.2 + 0.3) / 2)
    assert success.groups == 2
