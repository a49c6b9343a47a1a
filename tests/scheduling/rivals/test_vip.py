"""A Gaussian process over tasks. Pain J1."""

from __future__ import annotations

import numpy as np
import pytest

from sortie.scheduling import GroupResult, TaskRecord, build


def task(key: str, at: float) -> TaskRecord:
    return TaskRecord(key=key, environment=key.split("/")[0], features={"at": at})


def shown(key: str, *rewards: float) -> GroupResult:
    return GroupResult(key=key, assignment=-1, rewards=rewards)


def logit(p: float) -> float:
    return float(np.log(p / (1 - p)))


def test_what_a_group_shows_moves_every_task_by_its_kernel() -> None:
    """Tasks at 0, 1 and 2 of one environment, and at 0 of another.

    Of the distances by features that are not 0, three are 1 and two are 2: the length scale is 1. Kernels with x/0 are
    exp(-1/2) and exp(-2), and exp(-1/2) for the other environment, one length scale off. 3 of 4 has logit ln 3.
    """
    scheduler = build("vip", [task("x/0", 0), task("x/1", 1), task("x/2", 2), task("y/0", 0)])
    scheduler.observe([shown("x/0", 1, 1, 1, 0)])
    mean = scheduler.predict(["x/0", "x/1", "x/2", "y/0"]).mean
    step = np.log(3) / (1 + 1e-4)
    expected = [step, step * np.exp(-0.5), step * np.exp(-2), step * np.exp(-0.5)]
    assert [logit(p) for p in mean] == pytest.approx(expected)


def test_two_groups_are_solved_together_and_the_next_step_starts_from_there() -> None:
    """K = [[1, k], [k, 1]], k = exp(-1/2): weights K^-1 g, here for g = (ln 3, -ln 3): +-ln 3 / (1 - k)."""
    records = [task("x/0", 0), task("x/1", 1), task("x/2", 2)]
    scheduler = build("vip", records)
    scheduler.observe([shown("x/0", 1, 1, 1, 0), shown("x/1", 0, 0, 0, 1)])
    k, far = np.exp(-0.5), np.exp(-2)
    third = logit(scheduler.predict(["x/2"]).mean[0])
    assert third == pytest.approx(np.log(3) / (1 - k) * (far - k), rel=1e-3)
    scheduler.observe([shown("x/2", 1, 0)])  # logit 0: takes back what was believed of it, and a share from others
    logits = [logit(p) for p in scheduler.predict(["x/1", "x/2"]).mean]
    assert logits == pytest.approx([-np.log(3) - third * k, 0.0], abs=2e-3)


@pytest.mark.parametrize(("clip", "rate"), [(None, 1 / 8), (0.01, 0.01)])
def test_a_group_that_all_failed_counts_as_half_a_success_or_as_told(clip: float | None, rate: float) -> None:
    scheduler = build("vip", [task("x/0", 0)], clip=clip)
    scheduler.observe([shown("x/0", 0, 0, 0, 0)])
    assert scheduler.predict(["x/0"]).mean[0] == pytest.approx(rate, rel=1e-3)


def test_rollouts_go_where_rewards_are_predicted_to_vary() -> None:
    scheduler = build("vip", [task("x/0", 0), task("x/1", 9)])
    for _ in range(3):
        scheduler.observe([shown("x/0", 1, 0), shown("x/1", *[0.0] * 60)])
    sizes = {a.key: a.rollouts for a in scheduler.select(2, 8)}
    assert sum(sizes.values()) == 16
    assert sizes["x/1"] == 3


def test_texts_stand_in_for_features() -> None:
    texts = ["add two numbers", "add three numbers", "open the red door"]
    scheduler = build("vip", [TaskRecord(key=f"x/{i}", environment="x", text=text) for i, text in enumerate(texts)])
    scheduler.observe([shown("x/0", *[0.0] * 8)])
    _, near, far = scheduler.predict(["x/0", "x/1", "x/2"]).mean
    assert near < far < 0.5
