"""Beta posteriors and Thompson draws. Pain J1."""

from __future__ import annotations

import pytest

from sortie.scheduling import GroupResult, TaskRecord, build

RECORDS = [TaskRecord(key=f"e/{i}", environment="e") for i in range(100)]


def shown(key: str, *rewards: float | None) -> GroupResult:
    return GroupResult(key=key, assignment=-1, rewards=rewards)


def test_evidence_halves_when_the_next_group_comes() -> None:
    """3 of 4: Beta(1 + 3, 1 + 1) = (4, 2). Then 0 of 4: (4/2 + 1/2 + 0, 2/2 + 1/2 + 4) = (2.5, 5.5), mean 2.5 / 8."""
    scheduler = build("mopps", RECORDS)
    assert scheduler.predict(["e/0"]).mean == (0.5,)
    scheduler.observe([shown("e/0", 1.0, 1.0, 0.0, 1.0)])
    assert scheduler.predict(["e/0"]).mean == pytest.approx((4 / 6,))
    assert scheduler.predict(["e/0"]).variance == pytest.approx((8 / 42,))
    scheduler.observe([shown("e/0", 0.0, 0.0, None, 0.0, 0.0)])
    prediction = scheduler.predict(["e/0", "e/1"])
    assert prediction.mean == pytest.approx((2.5 / 8, 0.5))
    assert prediction.std[0] == pytest.approx((2.5 * 5.5 / (64 * 9)) ** 0.5)


def test_a_graded_reward_counts_as_part_of_a_success() -> None:
    """Rewards 0.5 and 1 of a range of [0, 2]: 0.25 + 0.5 successes of 2, so Beta(1.75, 2.25)."""
    scheduler = build("mopps", RECORDS)
    scheduler.observe([shown("e/1", 2.0, 0.0)])
    scheduler.observe([shown("e/0", 0.5, 1.0)])
    assert scheduler.predict(["e/0"]).mean == pytest.approx((2 * 1.75 / 4,))


def test_tasks_near_one_half_are_taken_of_all_that_are_in_the_pool() -> None:
    """With sharp posteriors at 0.05, 0.5 and 0.95 the middle third is taken, if the pool holds all."""
    scheduler = build("mopps", RECORDS, decay=1.0)
    for i, record in enumerate(RECORDS):
        successes = (10, 100, 190)[i % 3]
        scheduler.observe([shown(record.key, *([1.0] * successes + [0.0] * (200 - successes)))])
    chosen = scheduler.select(20, 4)  # 8 x 20 candidates: all
    assert {int(a.key[2:]) % 3 for a in chosen} == {1}


def test_a_pool_of_one_per_place_is_uniform_choice() -> None:
    scheduler = build("mopps", RECORDS, decay=1.0, pool=1)
    for record in RECORDS[:50]:
        scheduler.observe([shown(record.key, *[0.0] * 200)])
    hopeless = sum(int(a.key[2:]) < 50 for a in scheduler.select(40, 4))
    assert 10 <= hopeless <= 30
