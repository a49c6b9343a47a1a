"""The Gaussian model against hand-worked numbers and a dense computation over all logits. Pain J3."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from sortie.scheduling.factors import EXPOSURES, Factors, Floats, Observations
from sortie.scheduling.gaussian import fit
from sortie.scheduling.shared import Reader
from sortie.scheduling.strengths import Strengths, Tuner

NO_SCATTER = np.zeros((EXPOSURES + 1, EXPOSURES + 1))


def world(rng: np.random.Generator, pairs: int) -> tuple[Factors, Observations]:
    """Three environments of two families, four hints, three patterns, and one observation per pair."""
    H, Q = rng.normal(size=(4, 2)), rng.normal(size=(3, 2))
    likeness = [np.exp(-((a[:, None] - a[None]) ** 2).sum(axis=2)) for a in (H, Q)]
    env, hint = rng.integers(3, size=pairs), rng.integers(4, size=pairs)
    factors = Factors(np.array([0, 1, 0]), np.repeat(np.arange(3), 4), 2, *likeness)
    seen = Observations(
        cell=env * 4 + hint,
        hint=hint,
        pattern=rng.integers(3, size=pairs),
        precision=rng.gamma(1.0, size=pairs),
        value=3 * rng.normal(size=pairs),
        exposure=rng.gamma(1.0, size=(pairs, EXPOSURES)),
        scatter=NO_SCATTER,
    )
    return factors, seen


def covariance(s: Strengths, f: Factors, seen: Observations, exposure: Floats, other: Floats, *, own: bool) -> Floats:
    """Prior covariance of the same pairs' logits at two moments, written out."""
    env = f.cell_environment[seen.cell]
    same = lambda a: (a[:, None] == a[None]).astype(float)  # noqa: E731
    mix = lambda a, likeness: (1 - s.similarity) * same(a) + s.similarity * likeness[np.ix_(a, a)]  # noqa: E731
    return np.asarray(
        s.level**2
        + s.family**2 * same(f.family[env])
        + s.environment**2 * same(env)
        + s.cell**2 * same(seen.cell)
        + s.hint**2 * mix(seen.hint, f.hint_likeness)
        + s.pattern**2 * mix(seen.pattern, f.pattern_likeness)
        + s.learning**2 * exposure @ other.T
        + own * s.pair**2 * np.eye(len(env))
    )


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10**6), pairs=st.integers(1, 15))
def test_means_variances_and_evidence_equal_the_dense_computation(seed: int, pairs: int) -> None:
    rng = np.random.default_rng(seed)
    factors, seen = world(rng, pairs)
    s = Strengths(environment=0.9, hint=1.2, pair=0.8, cell=0.7, learning=0.5, similarity=0.4)
    later = seen.exposure + rng.gamma(1.0, size=(pairs, EXPOSURES))
    then_then = covariance(s, factors, seen, seen.exposure, seen.exposure, own=True)
    now_then = covariance(s, factors, seen, later, seen.exposure, own=True)
    total = then_then + np.diag(1 / seen.precision)
    mean = now_then @ np.linalg.solve(total, seen.value)
    var = np.diag(covariance(s, factors, seen, later, later, own=True) - now_then @ np.linalg.solve(total, now_then.T))
    evidence = -0.5 * (seen.value @ np.linalg.solve(total, seen.value) + np.linalg.slogdet(total)[1])

    posterior = fit(s, factors, seen)
    reader = Reader(posterior, np.eye(4, 3))
    shared = reader.shared(seen.cell, seen.hint, seen.pattern)
    got = reader.logits(shared, later, seen.precision, seen.value, seen.exposure)
    assert got[0] == pytest.approx(mean, abs=1e-8)
    assert got[1] == pytest.approx(var, abs=1e-8)
    assert posterior.log_evidence == pytest.approx(evidence, abs=1e-8)


def test_one_observation_moves_its_pair_and_its_relatives_by_what_they_share() -> None:
    """Six unit terms are shared (level, family, environment, hint, pattern, cell) and 4 is the pair's own: variance 10.
    An observation of 3 with variance 2 gives, by hand, the pair 3 x 10 / 12 = 2.5 and variance 10 - 100 / 12; a pair
    that shares k of the ten 3 k / 12, and variance 10 - k^2 / 12."""
    unit = Strengths(level=1, family=1, environment=1, hint=1, pattern=1, cell=1, pair=2)
    factors = Factors(np.array([0, 0]), np.array([0, 0, 1]), 1, np.eye(2), np.eye(2))
    one = np.zeros(1, dtype=np.int64)
    seen = Observations(one, one, one, np.array([0.5]), np.array([3.0]), np.zeros((1, EXPOSURES)), NO_SCATTER)
    reader = Reader(fit(unit, factors, seen), np.eye(2))
    cell, hint, pattern = np.array([0, 0, 0, 1, 2]), np.array([0, 0, 0, 1, 1]), np.array([0, 0, 1, 1, 1])
    precision, value, none = np.array([0.5, 0, 0, 0, 0]), np.array([3.0, 0, 0, 0, 0]), np.zeros((5, EXPOSURES))
    mean, var = reader.logits(reader.shared(cell, hint, pattern), none, precision, value, none)
    shared = np.array([10, 6, 5, 3, 2])
    assert mean == pytest.approx(3 * shared / 12)
    assert var == pytest.approx(10 - shared**2 / 12)


def test_training_since_an_observation_moves_its_pair_by_the_learned_rate() -> None:
    """Two pairs of one environment, the second seen after 10 units of its training at a logit 2 higher: 0.2 per unit.
    The first, seen at 0, is now expected 2 higher too."""
    s = Strengths(level=100, environment=1e-3, family=1e-3, hint=1e-3, pattern=1e-3, cell=1e-3, pair=1e-3, learning=10)
    factors = Factors(np.zeros(1, dtype=np.int64), np.zeros(1, dtype=np.int64), 1, np.eye(1), np.eye(1))
    zero = np.zeros(2, dtype=np.int64)
    then = np.array([[0.0, 0, 0, 0], [10.0, 0, 0, 0]])
    seen = Observations(zero, zero, zero, np.full(2, 1e4), np.array([0.0, 2.0]), then, NO_SCATTER)
    posterior = fit(s, factors, seen)
    assert posterior.mean[factors.exposures][0] == pytest.approx(0.2, abs=1e-3)
    reader = Reader(posterior, np.eye(1))
    now = np.array([[10.0, 0, 0, 0]] * 2)
    mean, _ = reader.logits(reader.shared(zero, zero, zero), now, seen.precision, seen.value, then)
    assert mean == pytest.approx([2.0, 2.0], abs=0.01)


def test_the_fit_of_the_evidence_recovers_known_strengths() -> None:
    """3,000 pairs, 60 environments, 40 hints, drawn from the model itself: every strength within 30%, from starts that
    are off by a factor of 2 or more."""
    rng = np.random.default_rng(4)
    E, H, n = 60, 40, 3000
    env, hint = rng.integers(E, size=n), rng.integers(H, size=n)
    true = {"environment": 1.0, "hint": 2.0, "cell": 0.6, "pair": 0.5}
    cell = env * H + hint
    logit = true["environment"] * rng.normal(size=E)[env] + true["hint"] * rng.normal(size=H)[hint]
    logit += true["cell"] * rng.normal(size=E * H)[cell] + true["pair"] * rng.normal(size=n)
    none = np.zeros(n, dtype=np.int64)
    factors = Factors(np.zeros(E, dtype=np.int64), np.repeat(np.arange(E), H), 1, np.eye(H), np.eye(1))
    seen = Observations(
        cell, hint, none, np.full(n, 4.0), logit + 0.5 * rng.normal(size=n), np.zeros((n, EXPOSURES)), NO_SCATTER
    )
    tuner = Tuner(Strengths(environment=0.4, hint=0.8, cell=1.5, pair=1.5))
    for _ in range(30):
        tuner.improve(lambda strengths: fit(strengths, factors, seen).log_evidence, 5)
    for name, value in true.items():
        assert getattr(tuner.strengths, name) == pytest.approx(value, rel=0.3), name
