"""Beliefs about success as beta distributions, and keyed draws from them."""

from __future__ import annotations

import numpy as np

from sortie.scheduling.keyed import Hashes, uniforms
from sortie.scheduling.rivals.tasks import Floats

TRIES = 32
"""Rejections in a row that are put up with; each try is accepted with a chance of at least 0.95."""


def beta_draws(a: Floats, b: Floats, hashes: Hashes, seed: int, *counters: int | str) -> Floats:
    """One draw of Beta(a, b) per hash, keyed by `seed` and `counters`: X / (X + Y) of two gamma variables."""
    x = gamma_draws(a, hashes, seed, "a", *counters)
    y = gamma_draws(b, hashes, seed, "b", *counters)
    return x / np.maximum(x + y, 1e-300)


def gamma_draws(shape: Floats, hashes: Hashes, seed: int, *counters: int | str) -> Floats:
    """One draw of Gamma(shape, 1) per hash (Marsaglia & Tsang 2000); keyed, so that no draw depends on another's."""
    boosted = shape < 1.0
    d = np.where(boosted, shape + 1.0, shape) - 1.0 / 3.0
    c = 1.0 / np.sqrt(9.0 * d)
    out = d.copy()
    left = np.arange(len(d))
    for attempt in range(TRIES):
        draws = [uniforms(hashes[left], seed, name, attempt, *counters) for name in ("radius", "angle", "accept")]
        radius, angle, u = (np.maximum(values, 2.0**-54) for values in draws)
        x = np.sqrt(-2.0 * np.log(radius)) * np.cos(2.0 * np.pi * angle)
        v = (1.0 + c[left] * x) ** 3
        with np.errstate(invalid="ignore", divide="ignore"):
            taken = (v > 0) & (np.log(u) < 0.5 * x**2 + d[left] * (1.0 - v + np.log(v)))
        out[left[taken]] = d[left[taken]] * v[taken]
        left = left[~taken]
        if not len(left):
            break
    last = np.maximum(uniforms(hashes, seed, "boost", *counters), 2.0**-54)
    return np.where(boosted, out * last ** (1.0 / shape), out)


def beta_moments(a: Floats, b: Floats) -> tuple[Floats, Floats, Floats]:
    """Mean and standard deviation of p ~ Beta(a, b), and E[p (1 - p)] = ab / ((a + b)(a + b + 1))."""
    total = a + b
    mean = a / total
    return mean, np.sqrt(mean * (1.0 - mean) / (total + 1.0)), a * b / (total * (total + 1.0))
