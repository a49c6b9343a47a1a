"""Bandits over categories: advantages, and draws of categories as a choice of tasks."""

from __future__ import annotations

import numpy as np
import pytest

from sortie.scheduling.keyed import key_hashes
from sortie.scheduling.rivals.arms import absolute_advantages, race, softmax


def test_absolute_advantages_are_in_units_of_the_groups_spread() -> None:
    """1, 0, 0, 0: mean 1/4, deviation sqrt(3)/4, so sqrt(3) once and 1/sqrt(3) three times; mean 2 sqrt(3/16)."""
    advantages = absolute_advantages([1.0, 0.0, 0.0, 0.0])
    assert advantages.tolist() == pytest.approx([3**0.5, *[3**-0.5] * 3])
    assert advantages.mean() == pytest.approx(2 * (3 / 16) ** 0.5)
    assert absolute_advantages([0.7, 0.7]).tolist() == [0, 0]


def test_softmax() -> None:
    assert softmax(np.array([0.1 * np.log(3.0), 0.0]), 0.1).tolist() == pytest.approx([0.75, 0.25])


def test_the_lowest_scores_are_draws_in_proportion_and_run_out_arms_are_left_out() -> None:
    """Chances 0.7, 0.2, 0.1 over 400 selects of 10; an arm of 2 tasks is never asked for a third."""
    arm = np.repeat([0, 1, 2], 50)
    hashes, free = key_hashes([f"k{i}" for i in range(150)]), np.ones(150, dtype=bool)
    drawn = np.zeros(3)
    for select in range(400):
        score = race(arm, np.array([0.7, 0.2, 0.1]), ["a", "b", "c"], free, hashes, 1, select)
        drawn += np.bincount(arm[np.argsort(score)[:10]], minlength=3)
    assert (drawn / 4000).tolist() == pytest.approx([0.7, 0.2, 0.1], abs=0.025)
    few = np.append(np.zeros(2, dtype=np.int64), np.ones(8, dtype=np.int64))
    score = race(few, np.array([1.0, 1e-200]), ["a", "b"], free[:10], hashes[:10], 1, 0)
    assert few[np.argsort(score)].tolist() == [0, 0, *[1] * 8]


def test_tasks_in_flight_come_last_within_their_arm() -> None:
    hashes, free = key_hashes([f"k{i}" for i in range(6)]), np.array([False, True] * 3)
    score = race(np.zeros(6, dtype=np.int64), np.ones(1), ["a"], free, hashes, 1, 0)
    assert set(np.argsort(score)[:3].tolist()) == {1, 3, 5}
