"""The Gaussian that stands for a group's rewards in the model of logits."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_GRID = np.linspace(-7.0, 7.0, 161)


def site(mean: Floats, var: Floats, successes: Floats, trials: Floats) -> tuple[Floats, Floats]:
    """Precision and linear term of the Gaussian that stands for each group's likelihood.

    It makes the posterior moments of f ~ N(mean, var) right under sigmoid(f)^k sigmoid(-f)^(n - k), with k successes of
    n: assumed-density filtering (Opper 1998; Minka 2001, ch. 3), by quadrature on a grid around the mode.
    Successes may be fractional: graded rewards in [0, 1] enter as their sum.
    """
    # The posterior falls off from its mode at least as fast as the prior does, which is what the grid spans.
    f = _mode(mean, var, successes, trials)[:, None] + np.sqrt(var)[:, None] * _GRID
    prior = -0.5 * (f - mean[:, None]) ** 2 / var[:, None]
    log_posterior = successes[:, None] * f - trials[:, None] * np.logaddexp(0.0, f) + prior
    p = np.exp(log_posterior - log_posterior.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    after = (p * f).sum(axis=1)
    # No narrower than a grid cell: a group of thousands must not look like certainty.
    cell_var = var * (_GRID[1] - _GRID[0]) ** 2 / 12
    after_var = np.maximum((p * (f - after[:, None]) ** 2).sum(axis=1), cell_var)
    precision = np.maximum(
        1.0 / after_var - 1.0 / var, 1e-9
    )  # the likelihood is log-concave: positive but for rounding
    return precision, after * (precision + 1.0 / var) - mean / var


def _mode(mean: Floats, var: Floats, successes: Floats, trials: Floats) -> Floats:
    """Where k - n sigmoid(f) = (f - mean) / var, by bisection: the left side lies in [-n, n] and falls in f."""
    low, high = mean - trials * var, mean + trials * var
    for _ in range(40):
        middle = 0.5 * (low + high)
        rises = successes - trials * np.exp(-np.logaddexp(0.0, -middle)) > (middle - mean) / var
        low, high = np.where(rises, middle, low), np.where(rises, high, middle)
    return np.asarray(0.5 * (low + high))
