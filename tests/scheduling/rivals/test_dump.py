"""Upper confidence bounds per environment. Pain J1."""

from __future__ import annotations

import numpy as np
import pytest

from sortie.scheduling import GroupResult, TaskRecord
from sortie.scheduling.rivals.dump import Dump, DumpConfig

RECORDS = [TaskRecord(key=f"{env}/{i}", environment=env) for env in "xy" for i in range(200)]


def shown(key: str, *rewards: float) -> GroupResult:
    return GroupResult(key=key, assignment=-1, rewards=rewards)


def test_the_bound_is_the_mean_absolute_advantage_and_a_bonus_for_few_rollouts() -> None:
    """x: (1, 0) has |A| 1, 1, and (0, 0) has 0, 0: mean 1/2 of 4. y: none. N = 4: bonuses sqrt(2 ln 5 / 5) and / 1."""
    scheduler = Dump(RECORDS)
    assert scheduler.bounds().tolist() == [0, 0]
    scheduler.observe([shown("x/0", 1.0, 0.0), shown("x/1", 0.0, 0.0)])
    bonus = (2 * np.log(5)) ** 0.5
    assert scheduler.bounds().tolist() == pytest.approx([0.5 + bonus / 5**0.5, bonus])


def test_only_the_last_rollouts_count_for_the_mean_but_all_for_the_bonus() -> None:
    scheduler = Dump(RECORDS, config=DumpConfig(window=4))
    scheduler.observe([shown("x/0", 1.0, 0.0), shown("x/1", 0.0, 0.0), shown("x/2", 0.5, 0.5)])
    assert scheduler.bounds()[0] == pytest.approx(0.0 + (2 * np.log(7) / 7) ** 0.5)


def test_places_follow_the_softmax_of_the_bounds() -> None:
    """20,000 rollouts each leave bonuses of 0.03. Mean |A| 0.9 against 0.79: y gets 1 / (1 + e^1.1) = 25%."""
    scheduler = Dump(RECORDS, seed=1)
    for env, mixed in (("x", 90), ("y", 79)):
        rewards = [(1.0, 0.0)] * mixed + [(0.0, 0.0)] * (100 - mixed)
        for _ in range(100):
            scheduler.observe([shown(f"{env}/{i}", *pair) for i, pair in enumerate(rewards)])
    drawn = [a.key[0] for _ in range(4) for a in scheduler.select(40, 1)]
    assert scheduler.bounds()[0] - scheduler.bounds()[1] == pytest.approx(0.11, abs=0.05)
    assert drawn.count("y") / 160 == pytest.approx(0.25, abs=0.12)
