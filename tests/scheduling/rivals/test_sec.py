"""Values of categories by TD(0). Pain J1."""

from __future__ import annotations

import pytest

from sortie.scheduling import GroupResult, TaskRecord
from sortie.scheduling.rivals.sec import Sec, SecConfig

RECORDS = [
    TaskRecord(key=f"{env}/{level}-{i}", environment=env, features={"level": level})
    for env in "xy"
    for level in (1, 2)
    for i in range(100)
]


def shown(key: str, *rewards: float) -> GroupResult:
    return GroupResult(key=key, assignment=-1, rewards=rewards)


def test_values_move_towards_this_steps_mean_absolute_advantage() -> None:
    """(1, 0) and (0, 0) together have mean |A| 1/2: Q = 0 + 0.5 * 0.5 = 0.25. Then 1: 0.25 + 0.5 * 0.75 = 0.625."""
    scheduler = Sec(RECORDS)
    scheduler.observe([shown("x/1-0", 1.0, 0.0), shown("x/1-1", 0.0, 0.0), shown("y/2-0", 0.0, 0.0)])
    assert scheduler.state_dict()["value"] == pytest.approx({"x level 1": 0.25, "y level 2": 0.0})
    scheduler.observe([shown("x/1-0", 1.0, 0.0)])
    assert scheduler.state_dict()["value"]["x level 1"] == pytest.approx(0.625)
    assert scheduler.predict(["x/1-7"]).variance == pytest.approx((0.625**2 / 4,))


def test_without_levels_a_category_is_an_environment() -> None:
    scheduler = Sec(RECORDS, config=SecConfig(level=None))
    scheduler.observe([shown("x/1-0", 1.0, 0.0), shown("x/2-1", 1.0, 0.0)])
    assert scheduler.state_dict()["value"] == pytest.approx({"x": 0.5})


def test_places_follow_the_softmax_of_the_values() -> None:
    """Q = 1 for one of four categories, t = 0.5: it gets e^2 / (e^2 + 3) = 71%."""
    scheduler = Sec(RECORDS, config=SecConfig(rate=1.0))
    scheduler.observe([shown("y/2-0", 1.0, 0.0)])
    drawn = [a.key[:3] for _ in range(6) for a in scheduler.select(15, 1)]
    assert drawn.count("y/2") / 90 == pytest.approx(0.71, abs=0.15)
