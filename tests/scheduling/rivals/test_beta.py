"""Keyed draws from beta and gamma distributions."""

from __future__ import annotations

import numpy as np
import pytest

from sortie.scheduling.keyed import key_hashes
from sortie.scheduling.rivals.beta import beta_draws, beta_moments, gamma_draws

HASHES = key_hashes([f"k{i}" for i in range(20000)])


@pytest.mark.parametrize("shape", [0.3, 1.0, 1.5, 4.0, 40.0])
def test_gamma_draws_have_the_moments_of_the_gamma_distribution(shape: float) -> None:
    """Mean and variance are both the shape, the third central moment is twice it."""
    x = gamma_draws(np.full(len(HASHES), shape), HASHES, 1)
    assert x.mean() == pytest.approx(shape, rel=0.03)
    assert x.var() == pytest.approx(shape, rel=0.06)
    assert ((x - x.mean()) ** 3).mean() == pytest.approx(2 * shape, rel=0.35)


def test_draws_of_beta_2_1_follow_its_distribution_function() -> None:
    """F(x) = x^2: the largest gap to the empirical one stays below the 0.1% point of Kolmogorov's test."""
    n = len(HASHES)
    x = np.sort(beta_draws(np.full(n, 2.0), np.ones(n), HASHES, 7))
    assert np.abs(x**2 - (np.arange(n) + 0.5) / n).max() < 1.95 / np.sqrt(n)


def test_a_draw_depends_on_its_own_key_alone() -> None:
    a, b = np.linspace(1, 9, 50), np.linspace(3, 1, 50)
    whole = beta_draws(a, b, HASHES[:50], 3, "rate", 2)
    assert beta_draws(a[10:20], b[10:20], HASHES[10:20], 3, "rate", 2).tolist() == whole[10:20].tolist()
    assert beta_draws(a, b, HASHES[:50], 3, "rate", 3).tolist() != whole.tolist()


def test_moments_of_beta_3_2() -> None:
    """Mean 3/5, variance 6 / (25 * 6) = 1/25, E[p (1 - p)] = 6 / (5 * 6) = 1/5."""
    mean, std, signal = beta_moments(np.array([3.0]), np.array([2.0]))
    assert (mean[0], std[0], signal[0]) == pytest.approx((0.6, 0.2, 0.2))
