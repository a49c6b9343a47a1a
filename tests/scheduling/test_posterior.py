"""The Gaussian model against hand-worked numbers and a dense solve."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from sortie.scheduling.posterior import Places, Prior, Sizes, fit, site, with_own

UNIT = Prior(shared=1, environment=1, hint=1, pattern=1, cell=1, pair=2)


def places(*rows: tuple[int, int, int, int]) -> Places:
    columns = np.array(rows, dtype=np.int64).reshape(-1, 4).T
    return Places(*columns)


def test_one_group_moves_its_pair_and_its_relatives_by_what_they_share() -> None:
    """Prior variance of a logit: 5 shared by kind + 4 of its own = 9. A site of mean 3, variance 1 gives, by hand,
    the pair 3 x 9 / 10 = 2.7 with variance 0.9, and pairs that share k of the 5 kinds 3 k / 10 with 5 - k^2 / 10."""
    at, sizes = places((0, 0, 0, 0)), Sizes(environments=2, hints=2, patterns=2, cells=3)
    posterior = fit(UNIT, sizes, at, np.array([1.0]), np.array([3.0]))
    mean, var = posterior.of(at)
    assert (mean[0], var[0]) == pytest.approx((1.5, 2.5))
    own = with_own(UNIT, mean, var, np.array([1.0]), np.array([3.0]))
    assert (own[0][0], own[1][0]) == pytest.approx((2.7, 0.9))
    relatives = places((0, 0, 0, 0), (0, 0, 1, 0), (0, 1, 1, 1), (1, 1, 1, 2))
    mean, var = posterior.of(relatives)
    shared = np.array([5, 4, 2, 1])
    assert mean == pytest.approx(0.3 * shared)
    assert var == pytest.approx(5 - shared**2 / 10)


def test_without_any_group_the_posterior_is_the_prior() -> None:
    nothing = np.zeros(0)
    posterior = fit(UNIT, Sizes(1, 1, 1, 1), places(), nothing, nothing)
    mean, var = posterior.of(places((0, 0, 0, 0)))
    assert (mean[0], var[0]) == pytest.approx((0.0, 5.0))
    assert with_own(UNIT, mean, var, np.zeros(1), np.zeros(1))[1] == pytest.approx([9.0])


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10**6), pairs=st.integers(1, 12))
def test_it_equals_the_dense_solution_over_all_logits(seed: int, pairs: int) -> None:
    rng = np.random.default_rng(seed)
    prior = Prior(shared=0.7, environment=1.1, hint=0.9, pattern=0.4, cell=0.8, pair=1.3)
    env, hint, pattern = rng.integers(3, size=pairs), rng.integers(2, size=pairs), rng.integers(4, size=pairs)
    at = Places(env, hint, pattern, env * 2 + hint)
    precision, linear = rng.gamma(1.0, size=pairs), rng.normal(size=pairs)
    same = lambda a: (a[:, None] == a[None, :]).astype(float)  # noqa: E731
    K = prior.shared**2 + prior.environment**2 * same(env) + prior.hint**2 * same(hint)
    K += prior.pattern**2 * same(pattern) + prior.cell**2 * same(at.cell) + prior.pair**2 * np.eye(pairs)
    cov = np.linalg.inv(np.linalg.inv(K) + np.diag(precision))
    posterior = fit(prior, Sizes(3, 2, 4, 6), at, precision, linear)
    mean, var = with_own(prior, *posterior.of(at), precision, linear)
    assert mean == pytest.approx(cov @ linear, abs=1e-8)
    assert var == pytest.approx(np.diag(cov), abs=1e-8)


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
