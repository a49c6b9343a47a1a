"""The simulated learner: what it is rewarded, and what it learns from that."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.scheduling.learner import Learner
from benchmarks.scheduling.specs import SPECS
from benchmarks.scheduling.worlds import World, build_world
from sortie.scheduling import Assignment, GroupResult


def small(name: str = "base", **changes: object) -> World:
    return build_world(replace(SPECS[name], pairs=60, environments=4, patterns=3, **changes), 0)  # type: ignore[arg-type]


def result(world: World, row: int, *rewards: float) -> GroupResult:
    return GroupResult(key=world.records[row].key, assignment=0, rewards=rewards)


def test_skill_grows_by_realised_variance_and_nowhere_else() -> None:
    world = small()
    learner = Learner(world)
    learner.learn([result(world, 7, 1, 1, 0, 0, 0, 0, 0, 0), result(world, 30, 1, 1, 1, 1, 1, 1, 1, 1)])
    growth = world.spec.rate * 0.25 * 0.75
    for name, places in (("environment", world.domain), ("pattern", world.pattern)):
        assert learner.skill[name][places[7]] == pytest.approx(growth)
        assert learner.skill[name].sum() == pytest.approx(growth), "what one group gives is given once"


def test_rollouts_teach_alike_in_one_large_group_and_in_two_small_ones() -> None:
    world = small()
    one, two = Learner(world), Learner(world)
    one.learn([result(world, 7, 1, 0, 1, 0, 1, 0, 1, 0)])
    two.learn([result(world, 7, 1, 0, 1, 0), result(world, 7, 1, 0, 1, 0)])
    assert one.skill["pattern"] == pytest.approx(two.skill["pattern"])


def test_the_same_pair_meets_the_same_luck_whoever_asks() -> None:
    world = small()
    key, other = world.records[5].key, world.records[6].key
    a, b = Learner(world), Learner(world)
    first = a.roll_out([Assignment(0, key, 8), Assignment(1, other, 8)])
    second = b.roll_out([Assignment(9, other, 8), Assignment(3, key, 4)])
    assert second[0].rewards == first[1].rewards
    assert second[1].rewards == first[0].rewards[:4]
    assert second[1].features == first[0].features
    assert a.roll_out([Assignment(2, key, 8)])[0].features != first[0].features, "another visit, other luck"


def test_rewards_follow_success_and_graded_ones_vary_less() -> None:
    world = small("graded", checks=(4,))
    learner = Learner(world)
    p = learner.success()
    row = int(np.abs(p - 0.5).argmin())
    rewards = np.array(learner.roll_out([Assignment(0, world.records[row].key, 4000)])[0].rewards, dtype=float)
    assert rewards.mean() == pytest.approx(p[row], abs=0.02)
    assert rewards.var() == pytest.approx(p[row] * (1 - p[row]) / 4, rel=0.1)
    assert set(np.unique(rewards)) == {0.0, 0.25, 0.5, 0.75, 1.0}


def test_rollout_features_have_the_shape_of_real_ones_and_tell_the_pattern() -> None:
    world = small(blur=0.0)
    [shown] = Learner(world).roll_out([Assignment(0, world.records[0].key, 8)])
    assert shown.features == world.profiles[int(world.pattern[0])]
    assert {"turns", "tokens", "tool_errors", "parse_errors", "stop:agent_done"} <= set(shown.features)


def test_the_weaker_skill_decides() -> None:
    world = small("weaker")
    learner = Learner(world)
    row = 0
    weaker = min(
        ("environment", "pattern"),
        key=lambda name: -learner.effect[name][{"environment": world.domain, "pattern": world.pattern}[name][row]],
    )
    stronger = "pattern" if weaker == "environment" else "environment"
    before = learner.success()[row]
    learner.skill[stronger] += 1.0
    assert learner.success()[row] == before
    learner.skill[weaker] += 0.1
    assert learner.success()[row] > before


def test_unpractised_skills_are_forgotten() -> None:
    world = small("forgetting")
    learner = Learner(world)
    learner.skill["pattern"][:] = 2.0
    learner.learn([])
    assert learner.skill["pattern"] == pytest.approx(2.0 * 0.99)


def test_drift_moves_half_of_the_effects() -> None:
    world = small("drift")
    learner = Learner(world)
    for skill in learner.skill.values():
        skill[:] = 1.0
    learner.drift()
    assert (learner.effect["environment"] != world.environment_effect).sum() == 2
    assert (learner.effect["pattern"] != world.pattern_effect).sum() == 1
    assert np.array_equal(
        learner.skill["environment"] == 0.0, learner.effect["environment"] != world.environment_effect
    )


@pytest.mark.parametrize("name", ["base", "weaker", "graded"])
def test_gain_is_what_the_score_grows_by(name: str) -> None:
    world = small(name, rate=1e-4)
    learner = Learner(world)
    gain = learner.gain()
    p = learner.success()
    row = int(gain.argmax())
    growth = world.spec.rate * p[row] * (1 - p[row]) / world.checks[row] * 7 / 8
    before = learner.score()
    learner.skill["environment"][world.domain[row]] += growth
    learner.skill["pattern"][world.pattern[row]] += growth
    assert learner.score() - before == pytest.approx(gain[row], rel=1e-2)
