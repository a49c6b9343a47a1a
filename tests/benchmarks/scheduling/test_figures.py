"""Figures on curves drawn by hand."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.scheduling import figures, table
from benchmarks.scheduling.runner import Curve
from benchmarks.scheduling.specs import SPECS


def line(*scores: float, spent: float = 256.0) -> Curve:
    """A curve with one point per update of `spent` rollouts."""
    n = len(scores)
    return Curve([int(spent * i) for i in range(n)], [spent * i for i in range(n)], list(scores), [0.5] * n)


UNIFORM = line(0.0, 0.1, 0.2, 0.3, 0.4)
FAST = line(0.0, 0.2, 0.4, 0.6, 0.8)
SLOW = line(0.0, 0.05, 0.1, 0.15, 0.2)


def test_a_curve_twice_as_fast() -> None:
    steps, area, final = figures.read(FAST, UNIFORM, "rollouts", 1024)
    assert (steps, area, final) == pytest.approx((0.5, 0.4, 0.8))


def test_a_curve_half_as_fast_goes_on_the_same_measure() -> None:
    steps, area, final = figures.read(SLOW, UNIFORM, "rollouts", 1024)
    assert (steps, area, final) == pytest.approx((2.0, 0.1, 0.2))


def test_uniform_against_itself() -> None:
    assert figures.read(UNIFORM, UNIFORM, "rollouts", 1024) == pytest.approx((1.0, 0.2, 0.4))


def test_refills_count_in_rollouts_and_not_in_updates() -> None:
    """A step that costs double is twice as far along the axis of rollouts."""
    doubled = line(0.0, 0.2, 0.4, spent=512)
    assert figures.read(doubled, UNIFORM, "updates", 4)[0] == pytest.approx(0.5)
    assert figures.read(doubled, UNIFORM, "rollouts", 1024)[0] == pytest.approx(1.0)


def test_fewer_updates_that_fall_short_by_a_hair_still_count_as_fewer() -> None:
    hair = line(0.0, 0.2, 0.3999, spent=512)
    assert figures.read(hair, UNIFORM, "updates", 4)[0] == pytest.approx(0.5, abs=1e-3)
    assert figures.read(hair, UNIFORM, "rollouts", 1024)[0] == pytest.approx(1.0, abs=1e-3)


def test_reaching_means_staying() -> None:
    x = np.arange(5.0)
    assert figures.reaches(x, np.array([0.0, 0.5, 0.1, 0.3, 0.5]), 0.4) == pytest.approx(3.5)
    assert figures.reaches(x, np.array([0.0, 0.5, 0.1, 0.3, 0.2]), 0.4) is None
    assert figures.reaches(x, np.array([0.4, 0.5, 0.6, 0.7, 0.8]), 0.4) == 0.0


def test_what_lies_beyond_the_budget_does_not_count() -> None:
    steps, area, final = figures.read(line(0.0, 0.1, 0.2, 0.3, 0.4, 0.9, 1.0), UNIFORM, "rollouts", 1024)
    assert (steps, area, final) == pytest.approx((1.0, 0.2, 0.4))


def test_steps_count_from_the_drift_on() -> None:
    uniform = line(0.0, 0.4, 0.1, 0.2, 0.3)  # falls at half of the budget
    fast = line(0.0, 0.4, 0.1, 0.3, 0.5)
    assert figures.read(fast, uniform, "rollouts", 1024, start=0.5)[0] == pytest.approx(0.5)


def test_share_is_of_means_and_its_interval_is_paired() -> None:
    uniform = np.array([0.1, 0.3, 0.5])
    found = figures.share(uniform + 0.15, uniform, uniform + 0.2)
    assert (found.value, found.low, found.high) == pytest.approx((0.75, 0.75, 0.75))


def test_intervals_shrink_with_seeds() -> None:
    rng = np.random.default_rng(0)
    few, many = figures.mean(rng.normal(size=10)), figures.mean(rng.normal(size=1000))
    assert many.high - many.low < 0.3 * (few.high - few.low)
    assert many.low < 0 < many.high


def test_targets_are_met_or_missed_by_the_figures() -> None:
    runs = {
        name: dict.fromkeys(range(3), curve)
        for name, curve in (("uniform", UNIFORM), ("oracle", FAST), ("mopps", SLOW), ("envsched", FAST))
    }
    met = {row["name"]: row["met"] for row in table.targets(SPECS["base"], runs, 4)}
    assert met == {
        "base: share of uniform's rollouts": True,
        "base: share of the oracle's gain": True,
        "base: area ahead of uniform": True,
        "base: area ahead of mopps": True,
    }
    runs["envsched"], runs["mopps"] = runs["mopps"], runs["envsched"]
    assert not any(row["met"] for row in table.targets(SPECS["base"], runs, 4))
    assert not any(row["met"] for row in table.targets(SPECS["noise"], runs, 4))


def test_rows_carry_every_interval() -> None:
    runs = {"uniform": {0: UNIFORM, 1: UNIFORM}, "oracle": {0: FAST, 1: FAST}}
    rows = [table.flat(row) for row in table.rows(SPECS["base"], runs, 4)]
    assert [row["scheduler"] for row in rows] == ["uniform", "oracle"]
    assert rows[1]["steps"] == rows[1]["steps_low"] == rows[1]["steps_high"] == pytest.approx(0.5)
    assert rows[1]["share"] == pytest.approx(1.0)
    assert [row["matched"] for row in table.rows(SPECS["costs"], runs, 4)] == ["rollouts"] * 2 + ["cost"] * 2
