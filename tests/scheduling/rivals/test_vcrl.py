"""A variance gate with a bank. Pain J1."""

from __future__ import annotations

import pytest

from sortie.scheduling import Assignment, GroupResult, TaskRecord
from sortie.scheduling.rivals.vcrl import Vcrl, VcrlConfig, variance_score

RECORDS = [TaskRecord(key=f"e/{i}", environment="e") for i in range(40)]


def result(a: Assignment, successes: int) -> GroupResult:
    """A group of 8."""
    return GroupResult(key=a.key, assignment=a.id, rewards=(1.0,) * successes + (0.0,) * (8 - successes))


@pytest.mark.parametrize(
    ("successes", "n", "score"), [(0, 8, 0), (1, 8, 7 / 16), (2, 8, 12 / 16), (4, 8, 1), (3, 7, 1), (1, 7, 0.5)]
)
def test_scores_are_shares_of_the_largest_variance_of_such_a_group(successes: int, n: int, score: float) -> None:
    """k (n - k) over its largest value: 16 for 8 rewards, 12 for 7."""
    assert variance_score([1.0] * successes + [0.0] * (n - successes)) == pytest.approx(score)


def test_one_reward_has_no_variance() -> None:
    assert variance_score([1.0]) == 0.0


def test_the_gate_is_low_at_first_and_then_high() -> None:
    """Scores of 0, 1, 2 and 4 of 8: 0, 0.44, 0.75, 1. Threshold 0.3, and 0.8 after one step."""
    scheduler = Vcrl(RECORDS, config=VcrlConfig(early_steps=1))
    verdicts = []
    for _ in range(2):
        chosen = scheduler.select(4, 8)
        verdicts.append(scheduler.observe([result(a, k) for a, k in zip(chosen, (0, 1, 2, 4), strict=True)]))
        left = verdicts[-1].count("refill")
        scheduler.observe([result(a, 0) for a in scheduler.select(left, 8)])
    assert verdicts == [["refill", "keep", "keep", "keep"], ["refill", "refill", "refill", "keep"]]


def test_places_are_filled_from_the_bank_by_priority_and_not_gated_again() -> None:
    scheduler = Vcrl(RECORDS, seed=1)
    first = scheduler.select(4, 8)
    assert scheduler.observe([result(a, k) for a, k in zip(first, (4, 2, 3, 2), strict=True)]) == ["keep"] * 4
    second = scheduler.select(3, 8)
    assert scheduler.observe([result(a, 0) for a in second]) == ["refill"] * 3
    third = scheduler.select(3, 8)
    best = [first[0].key, first[2].key]  # scores 1 and 0.94; the other two tie at 0.75
    assert [a.key for a in third[:2]] == best
    assert third[2].key in {first[1].key, first[3].key}
    assert scheduler.observe([result(a, 0) for a in third]) == ["keep"] * 3
    assert scheduler.metrics()["banked"] == 1 / 40  # those that failed have left


def test_priorities_have_momentum() -> None:
    """Score 1, then 0.75: 0.9 * 1 + 0.1 * 0.75 = 0.975, still above a task that scored 0.9375 once."""
    scheduler = Vcrl(RECORDS)
    for key, k in (("e/0", 4), ("e/1", 3), ("e/0", 2)):
        scheduler.observe([GroupResult(key=key, assignment=-1, rewards=(1.0,) * k + (0.0,) * (8 - k))])
    bank = scheduler._tasks.column["bank"]
    assert bank[[0, 1]].tolist() == pytest.approx([0.975, 0.9375])


def test_what_the_bank_cannot_fill_comes_in_turn() -> None:
    scheduler = Vcrl(RECORDS, seed=1)
    first = scheduler.select(5, 8)
    scheduler.observe([result(a, 4 if i == 0 else 0) for i, a in enumerate(first)])
    fill = [a.key for a in scheduler.select(4, 8)]
    assert fill[0] == first[0].key
    assert not set(fill[1:]) & {a.key for a in first}
