"""Rollouts go where they are worth the most, and a select's budget is spent exactly. Pain J1."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from sortie.core.errors import ConfigError
from sortie.core.group import Assignment
from sortie.scheduling import GroupResult, TaskRecord, TaskScheduler, build
from sortie.scheduling.allocation import allocate, bounds
from sortie.scheduling.envsched import EnvSched
from sortie.scheduling.keyed import uniform
from sortie.scheduling.signal import added_chance, outlook

RECORDS = [
    TaskRecord(key=f"env{e}/{i}", environment=f"env{e}", features={"level": i % 3}) for e in range(3) for i in range(20)
]


def rewards_of(assignment: Assignment) -> tuple[float, ...]:
    """env0 passes half of the time, env1 now and then, env2 never."""
    p = (0.5, 0.15, 0.0)[int(assignment.key[3])]
    return tuple(float(uniform(5, assignment.id, i) < p) for i in range(assignment.rollouts))


def result(assignment: Assignment, version: int) -> GroupResult:
    return GroupResult(key=assignment.key, assignment=assignment.id, rewards=rewards_of(assignment), version=version)


def step(scheduler: TaskScheduler, version: int, groups: int = 6, group_size: int = 8) -> list[Assignment]:
    chosen = scheduler.select(groups, group_size)
    scheduler.observe([result(a, version) for a in chosen])
    return chosen


def test_bounds_by_hand() -> None:
    assert bounds(8, 2.0) == (4, 16)
    assert bounds(8, 4.0) == (2, 32)
    assert bounds(8, 8.0) == (2, 64), "a single rollout tells of no difference"
    assert bounds(8, 1.0) == (8, 8)
    assert bounds(8, 3.0) == (3, 24), "8 / 3 rounded up"
    assert bounds(10, 1.1) == (10, 11)
    assert bounds(2, 2.0) == (2, 4)
    assert bounds(1, 4.0) == (1, 4)


def test_rollouts_of_constant_worth_fill_the_best_groups() -> None:
    """3 x 8 = 24; with 4 each, 12 are left: 8 fill the best group up to its 12, and 4 go to the second."""
    worth = np.repeat(np.array([[0.3], [0.1], [0.2]]), 8, axis=1)
    assert allocate(worth, 8, 4).tolist() == [12, 4, 8]


def test_falling_worth_spreads_rollouts() -> None:
    """2 x 3 = 6; with 2 each, 2 are left: the largest two of 4, 3, 2 and 5, 1, 1 are 5 and 4, one for each group.
    With 5, 4.5, 1 both would go to the second."""
    assert allocate(np.array([[4.0, 3.0, 2.0], [5.0, 1.0, 1.0]]), 3, 2).tolist() == [3, 3]
    assert allocate(np.array([[4.0, 3.0, 2.0], [5.0, 4.5, 1.0]]), 3, 2).tolist() == [2, 4]


def test_groups_of_equal_worth_are_of_equal_size() -> None:
    assert allocate(np.full((5, 12), 0.25), 8, 4).tolist() == [8] * 5


@settings(max_examples=60, deadline=None)
@given(
    worth=st.lists(st.floats(0, 1), min_size=1, max_size=12),
    group_size=st.integers(1, 12),
    stretch=st.floats(1, 6),
)
def test_the_budget_is_exact_and_sizes_are_within_bounds(worth: list[float], group_size: int, stretch: float) -> None:
    least, most = bounds(group_size, stretch)
    sizes = allocate(np.repeat(np.array(worth)[:, None], most - least, axis=1), group_size, least)
    assert sizes.sum() == len(worth) * group_size
    assert least <= sizes.min() <= sizes.max() <= most
    assert least <= group_size <= most


def test_the_chance_added_by_a_rollout_by_hand() -> None:
    """p = 1/4: after one rollout 2 x 3/16 = 6/16; after two (1/16)(3/4) + (9/16)(1/4) = 12/64."""
    added = added_chance(np.array([-np.log(3.0)]), np.zeros(1), 1, 3)
    assert added[0] == pytest.approx([6 / 16, 12 / 64])


@settings(max_examples=40, deadline=None)
@given(mean=st.floats(-6, 6), sd=st.floats(0, 3))
def test_added_chances_fall_and_sum_to_the_chance(mean: float, sd: float) -> None:
    at = np.array([mean]), np.array([sd**2])
    added = added_chance(*at, 1, 16)[0]
    assert (np.diff(added) <= 1e-12).all()
    assert added.sum() == pytest.approx(outlook(*at, 16).chance[0])


def test_rare_success_gets_many_tries_by_chance_and_few_by_variance() -> None:
    """Logits 0 and -2.2 (p = 0.1), both certain. A third rollout is worth 2/8 and 0.01 x 0.9 + 0.81 x 0.1 = 0.09; an
    eleventh 0.5^10 = 0.001 and 0.9^10 x 0.1 = 0.035. By variance every one is worth 0.25 and 0.09."""
    at = np.array([0.0, -np.log(9.0)]), np.zeros(2)
    by_chance = allocate(added_chance(*at, 2, 32), 8, 2)
    by_variance = allocate(np.repeat(outlook(*at, 8).variance[:, None], 30, axis=1), 8, 2)
    assert by_chance[1] > by_chance[0]
    assert by_variance.tolist() == [14, 2]


@pytest.mark.parametrize("signal", ["variance", "informative"])
def test_more_is_spent_where_rewards_differ_and_the_sum_stays(signal: str) -> None:
    scheduler = build("envsched", RECORDS, stretch=2.0, signal=signal, seed=3)
    sizes: dict[str, list[int]] = {f"env{e}": [] for e in range(3)}
    for version in range(12):
        chosen = step(scheduler, version)
        assert sum(a.rollouts for a in chosen) == 48
        assert len({a.key for a in chosen}) == 6
        assert all(4 <= a.rollouts <= 16 for a in chosen)
        for a in chosen:
            sizes[a.key.partition("/")[0]].append(a.rollouts)
    if signal == "variance":
        assert np.mean(sizes["env0"]) > 1.3 * np.mean(sizes["env2"])


def test_a_stretch_of_one_is_a_fixed_number() -> None:
    scheduler = build("envsched", RECORDS, stretch=1.0)
    assert {a.rollouts for version in range(5) for a in step(scheduler, version)} == {8}


def test_cheap_tasks_get_the_rollouts_of_dear_ones() -> None:
    """Equal but for cost, by which values are divided; the two cheap ones are equal, and share alike."""
    records = [TaskRecord(key=f"a/{i}", environment="a", cost=10.0 if i < 2 else 1.0) for i in range(4)]
    chosen = build("envsched", records, stretch=2.0, random_share=0.0).select(4, 8)
    assert {a.key: a.rollouts for a in chosen} == {"a/0": 4, "a/1": 4, "a/2": 12, "a/3": 12}


@settings(max_examples=8, deadline=None)
@given(stop=st.integers(1, 7), signal=st.sampled_from(["variance", "informative"]))
def test_a_resumed_run_allocates_as_the_uninterrupted_one(stop: int, signal: str) -> None:
    def run(interrupt: bool) -> list[list[tuple[int, str, int]]]:
        scheduler = build("envsched", RECORDS, stretch=3.0, signal=signal, seed=4)
        out = []
        for version in range(8):
            if interrupt and version == stop:
                state = json.loads(json.dumps(scheduler.state_dict()))
                scheduler = build("envsched", RECORDS[::-1], stretch=3.0, signal=signal, seed=4)
                scheduler.load_state_dict(state)
            out.append([(a.id, a.key, a.rollouts) for a in step(scheduler, version)])
        return out

    assert run(interrupt=True) == run(interrupt=False) == run(interrupt=False)


def test_the_predicted_share_counts_every_group_by_its_own_size() -> None:
    """One group of 2 and one of 14, each expected to be informative by its own number."""
    scheduler = build("envsched", RECORDS, seed=3)
    assert isinstance(scheduler, EnvSched)
    scheduler.select(2, 8)
    scheduler._note(np.array([0, 1]), np.array([2, 14]))
    mean, var = scheduler._belief.logits(np.array([0, 1]))
    expected = outlook(mean[:1], var[:1], 2).chance[0], outlook(mean[1:], var[1:], 14).chance[0]
    assert scheduler.metrics()["predicted_informative_share"] == pytest.approx(np.mean(expected))


def test_a_stretch_below_one_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"stretch: .*greater than or equal to 1, got 0.5"):
        build("envsched", RECORDS, stretch=0.5)
