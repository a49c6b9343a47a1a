"""Learning signals and second moments against hand-worked numbers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from sortie.scheduling.rewards import EnvironmentStats
from sortie.scheduling.signal import outlook, quick_outlook


def stats_of(*groups: tuple[float, ...]) -> EnvironmentStats:
    stats = EnvironmentStats()
    stats.rows(["e"], lambda _: 0.0)
    for group in groups:
        stats.learn(0, stats.scale(0, group), 1.0)
    return stats


def test_a_known_success_of_one_quarter() -> None:
    """p (1 - p) = 3/16, and two rollouts differ with 1 - 1/16 - 9/16 = 6/16."""
    o = outlook(np.array([-np.log(3)]), np.array([0.0]), 2)
    assert (o.mean[0], o.variance[0], o.chance[0]) == pytest.approx((0.25, 3 / 16, 6 / 16))
    assert (o.mean_sd[0], o.variance_sd[0], o.chance_sd[0]) == pytest.approx((0, 0, 0), abs=1e-7)


@settings(max_examples=60, deadline=None)
@given(mean=st.floats(-6, 6), sd=st.floats(0, 3), n=st.integers(2, 32))
def test_expectations_match_a_fine_grid(mean: float, sd: float, n: int) -> None:
    z = np.linspace(-9, 9, 20001)
    w = np.exp(-0.5 * z * z)
    w /= w.sum()
    p = 1 / (1 + np.exp(-(mean + sd * z)))
    o = outlook(np.array([mean]), np.array([sd**2]), n)
    assert o.mean[0] == pytest.approx(w @ p, abs=0.01)
    assert o.variance[0] == pytest.approx(w @ (p * (1 - p)), abs=0.01)
    assert o.chance[0] == pytest.approx(w @ (1 - p**n - (1 - p) ** n), abs=0.01)
    assert o.mean_sd[0] == pytest.approx(np.sqrt(w @ (p - w @ p) ** 2), abs=0.01)


def test_the_same_mean_is_worth_more_the_less_it_is_unsure() -> None:
    """E[p (1 - p)] = m (1 - m) - var(p): certainty of 1/2 beats a bet between 0 and 1."""
    o = outlook(np.zeros(3), np.array([0.0, 1.0, 9.0]), 8)
    assert list(np.argsort(-o.variance)) == [0, 1, 2]
    assert o.variance == pytest.approx(0.25 - o.mean_sd**2, abs=1e-9)


@given(groups=st.lists(st.lists(st.sampled_from([0.0, 1.0]), min_size=1, max_size=8), max_size=6))
def test_binary_rewards_have_the_spread_of_binary_rewards(groups: list[list[float]]) -> None:
    stats = stats_of(*map(tuple, groups))
    assert stats.spread[0] == pytest.approx(1.0)
    assert stats.differing[0] == pytest.approx(1.0)


def test_graded_rewards_keep_a_second_moment() -> None:
    """For 0.2, 0.4: v = 0.02, m (1 - m) + v / 2 = 0.22."""
    assert stats_of((0.2, 0.4)).spread[0] == pytest.approx(1.02 / 1.22)


def test_equal_partial_credit_is_no_signal() -> None:
    stats = stats_of(*[(0.2, 0.2, 0.2, 0.2)] * 40)
    assert stats.spread[0] < 0.15
    assert stats.differing[0] < 0.03


def test_rewards_are_scaled_by_the_range_seen() -> None:
    stats = stats_of((0.5, 3.0))
    assert stats.scale(0, [-1.0, 1.0, 3.0]) == [0.0, 0.5, 1.0]
    assert stats.scale(0, [0.0]) == [0.25]


@pytest.mark.parametrize("n", [2, 8, 32])
def test_the_table_agrees_with_the_quadrature(n: int) -> None:
    rng = np.random.default_rng(0)
    mean, var = rng.uniform(-16, 16, size=4000), rng.uniform(0, 5, size=4000) ** 2
    exact, quick = outlook(mean, var, n), quick_outlook(mean, var, n)
    for name in ("mean", "variance", "chance"):
        assert np.abs(getattr(exact, name) - getattr(quick, name)).max() < 0.02, name
