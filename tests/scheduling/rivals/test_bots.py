"""Evidence for tasks that were not rolled out. Pain J1."""

from __future__ import annotations

import pytest

from sortie.core.errors import ConfigError
from sortie.scheduling import GroupResult, TaskRecord, build
from sortie.scheduling.rivals.bots import Bots


def task(key: str, weak: float = 0.0, strong: float = 1.0) -> TaskRecord:
    return TaskRecord(key=key, environment=key.split("/")[0], features={"weak": weak, "strong": strong})


def shown(key: str, *rewards: float) -> GroupResult:
    return GroupResult(key=key, assignment=-1, rewards=rewards)


def posterior(scheduler: Bots, key: str) -> tuple[float, float]:
    row = scheduler._tasks.row[key]
    return float(scheduler._tasks.column["a"][row]), float(scheduler._tasks.column["b"][row])


def bots(records: list[TaskRecord], **options: object) -> Bots:
    made = build("bots", records, **options)
    assert isinstance(made, Bots)
    return made


def test_by_default_others_of_the_environment_learn_a_tenth_of_its_mean() -> None:
    """x/0 shows 3 of 4, x/1 shows 1 of 4: mean 1/2. x/2 gets 0.1 * 4 * 1/2 = 0.2 of each kind; y/0 none.

    First step: a = 0.9 * 1 + 0.1 * 1 + s = 1 + s. Second, x/0 shows 0 of 4: x/0 has 0.9 * 4 + 0.1 = 3.7 successes and
    0.9 * 2 + 0.1 + 4 = 5.9 failures, x/2 has 0.9 * 1.2 + 0.1 + 0 and 0.9 * 1.2 + 0.1 + 0.4.
    """
    scheduler = bots([task(key) for key in ("x/0", "x/1", "x/2", "y/0")])
    scheduler.observe([shown("x/0", 1, 1, 1, 0), shown("x/1", 0, 1, 0, 0)])
    assert posterior(scheduler, "x/0") == pytest.approx((4, 2))
    assert posterior(scheduler, "x/1") == pytest.approx((2, 4))
    assert posterior(scheduler, "x/2") == pytest.approx((1.2, 1.2))
    assert posterior(scheduler, "y/0") == pytest.approx((1, 1))
    scheduler.observe([shown("x/0", 0, 0, 0, 0)])
    assert posterior(scheduler, "x/0") == pytest.approx((3.7, 5.9))
    assert posterior(scheduler, "x/2") == pytest.approx((1.18, 1.58))


def test_with_anchors_the_papers_interpolation_predicts_the_others() -> None:
    """Anchors (0.2, 0.8) and 0.5 of 4 seen: ability (0.5 - 0.2) / 0.6 = 1/2, so (0.4, 1) predicts 0.7: 0.28 and 0.12.

    Then all 4 of a task with (0, 1): ability 1, smoothed 0.9 / 2 + 0.1 = 0.55, so (0.4, 1) predicts 0.4 + 0.33 = 0.73.
    """
    records = [task("x/0", 0.2, 0.8), task("x/1", 0.0, 1.0), task("y/0", 0.4, 1.0)]
    scheduler = bots(records, anchors=("weak", "strong"))
    scheduler.observe([shown("x/0", 1, 1, 0, 0)])
    assert posterior(scheduler, "y/0") == pytest.approx((1.28, 1.12))
    scheduler.observe([shown("x/1", 1, 1, 1, 1)])
    assert posterior(scheduler, "y/0") == pytest.approx((0.9 * 1.28 + 0.1 + 0.292, 0.9 * 1.12 + 0.1 + 0.108))


def test_tasks_without_the_anchors_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"task 'x/9' has no features 'weak' and 'strong' \(scheduler.anchors\)"):
        build("bots", [TaskRecord(key="x/9", environment="x")], anchors=("weak", "strong"))


def test_it_looks_for_one_half_over_all_tasks() -> None:
    scheduler = bots([task(f"x/{i}") for i in range(60)], forget=0.0, implicit=0.0)
    for i in range(60):
        successes = (5, 100, 195)[i % 3]
        scheduler.observe([shown(f"x/{i}", *([1.0] * successes + [0.0] * (200 - successes)))])
    assert {int(a.key[2:]) % 3 for a in scheduler.select(15, 4)} == {1}
