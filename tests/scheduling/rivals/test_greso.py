"""Passing over what showed no variance. Pain J1."""

from __future__ import annotations

import numpy as np
import pytest

from sortie.scheduling import Assignment, GroupResult, TaskRecord
from sortie.scheduling.rivals.greso import Greso, GresoConfig

RECORDS = [TaskRecord(key=f"e/{i}", environment="e") for i in range(12)]


def result(a: Assignment, *rewards: float) -> GroupResult:
    return GroupResult(key=a.key, assignment=a.id, rewards=rewards)


def shown(scheduler: Greso, key: str, *rewards: float) -> None:
    scheduler.observe([GroupResult(key=key, assignment=-1, rewards=rewards)])


def chance(scheduler: Greso, key: str) -> float:
    """That the task is taken when its turn comes."""
    return 1.0 - float(scheduler.skip_chance()[[record.key for record in RECORDS].index(key)])


def test_a_task_is_taken_with_p_to_the_length_of_its_streak_but_at_least_a_hundredth() -> None:
    """p = 1/2: 1, 1/2, 1/4, ... 1/64, then 0.01 (1/128 is less); a streak ends with a group of another kind."""
    scheduler = Greso(RECORDS, config=GresoConfig(most=1))
    expected = [1, 1 / 2, 1 / 4, 1 / 8, 1 / 16, 1 / 32, 1 / 64, 0.01, 0.01]
    for value in expected:
        assert chance(scheduler, "e/3") == pytest.approx(value)
        shown(scheduler, "e/3", 0.0, 0.0)
    shown(scheduler, "e/3", 1.0, 1.0)  # now easy, for the first time
    assert chance(scheduler, "e/3") == pytest.approx(1 / 2)
    shown(scheduler, "e/3", 1.0, 0.0)
    assert chance(scheduler, "e/3") == 1.0
    assert chance(scheduler, "e/4") == 1.0


def test_each_p_moves_a_hundredth_per_step_once_the_first_epoch_is_over() -> None:
    """Targets 1/12 for easy and 1/6 for hard: of 12 groups, 1 easy is enough, 1 hard is too few, 2 hard are enough."""
    scheduler = Greso(RECORDS, config=GresoConfig(most=1))

    def step(easy: int, hard: int) -> tuple[float, float]:
        chosen = scheduler.select(12, 2)
        kinds = [(1.0, 1.0)] * easy + [(0.0, 0.0)] * hard + [(0.0, 1.0)] * (12 - easy - hard)
        scheduler.observe([result(a, *rewards) for a, rewards in zip(chosen, kinds, strict=True)])
        return scheduler.metrics()["p_easy"], scheduler.metrics()["p_hard"]

    scheduler.select(11, 2)
    shown(scheduler, "e/0", 0.0, 0.0)
    assert scheduler.metrics()["p_hard"] == 0.5  # one task has not had its turn
    scheduler.remove([record.key for record in RECORDS])
    scheduler.add(RECORDS)
    assert step(easy=1, hard=1) == pytest.approx((0.49, 0.51))
    assert step(easy=0, hard=2) == pytest.approx((0.50, 0.50))
    for _ in range(60):
        p = step(easy=0, hard=12)
    assert p == pytest.approx((0.95, 0.05))


def test_graded_groups_without_variance_are_easy_in_the_upper_half_of_the_range_shown() -> None:
    scheduler = Greso(RECORDS, config=GresoConfig(most=1))
    shown(scheduler, "e/0", -1.0, 3.0)
    shown(scheduler, "e/1", 1.2, 1.2)
    shown(scheduler, "e/2", 0.8, 0.8)
    column = scheduler._tasks.column
    rows = [scheduler._tasks.row[key] for key in ("e/0", "e/1", "e/2")]
    assert column["easy"][rows].tolist() == [0, 1, 0]
    assert column["hard"][rows].tolist() == [0, 0, 1]


def test_hopeless_tasks_are_passed_over_about_as_often_as_the_formula_says() -> None:
    """Half of 400 tasks never succeed. Of the turns, they get p^k of those of the others: 1, 1/2, 1/4, 1/8, ..."""
    records = [TaskRecord(key=f"e/{i}", environment="e") for i in range(400)]
    scheduler = Greso(records, seed=4, config=GresoConfig(most=1, step=0.0))
    drawn = np.zeros(2)
    for _ in range(40):
        chosen = scheduler.select(20, 2)
        hopeless = [int(a.key[2:]) < 200 for a in chosen]
        drawn += (hopeless.count(True), hopeless.count(False))
        scheduler.observe([result(a, 0.0, float(not bad)) for a, bad in zip(chosen, hopeless, strict=True)])
    # 800 groups: 400 in the first epoch, then 300 in the second (100 + 200), then 100 of the third's 250 (50 : 200).
    assert drawn[0] == pytest.approx(200 + 100 + 20, abs=30)
