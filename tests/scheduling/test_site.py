"""A group's rewards as a Gaussian, against quadrature on a fine grid."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from sortie.scheduling.site import site


@settings(max_examples=40, deadline=None)
@given(m=st.floats(-5, 5), sd=st.floats(0.2, 3), n=st.integers(1, 64), share=st.floats(0, 1))
def test_a_site_gives_the_moments_of_the_true_posterior(m: float, sd: float, n: int, share: float) -> None:
    k = share * n
    precision, linear = site(np.array([m]), np.array([sd**2]), np.array([k]), np.array([float(n)]))
    f = m + sd * np.linspace(-40, 40, 80001)
    log = k * f - n * np.logaddexp(0, f) - 0.5 * ((f - m) / sd) ** 2
    p = np.exp(log - log.max())
    p /= p.sum()
    mean = (p * f).sum()
    var = (p * (f - mean) ** 2).sum()
    after = 1 / (precision[0] + 1 / sd**2)
    assert after == pytest.approx(var, rel=1e-3)
    assert after * (linear[0] + m / sd**2) == pytest.approx(mean, abs=1e-3)


def test_an_even_group_says_even_and_more_rollouts_say_it_louder() -> None:
    zeros, ones = np.zeros(2), np.ones(2)
    precision, linear = site(zeros, ones, np.array([2.0, 8.0]), np.array([4.0, 16.0]))
    assert linear == pytest.approx([0.0, 0.0], abs=1e-9)
    # The Fisher information of a logit at p = 1/2 is n / 4; averaging over the prior makes it a little less.
    assert 0.75 * 1.0 < precision[0] < 1.0
    assert 0.75 * 4.0 < precision[1] < 4.0


def test_a_group_of_thousands_is_not_certainty() -> None:
    precision, _ = site(np.zeros(1), np.array([9.0]), np.array([5e4]), np.array([1e5]))
    assert precision[0] < 1e4
